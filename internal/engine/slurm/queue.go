package slurm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
)

// view is Slurm's report on this user's jobs, including recently ended ones.
type view struct {
	begun time.Time // before the query
	jobs  map[string]*scheduler.Job
	names map[string][]*scheduler.Job
}

// look returns a view queried no earlier than newer. Concurrent callers share an answer.
func (d *Driver) look(ctx context.Context, newer time.Time) (*view, error) {
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	if d.view != nil && !d.view.begun.Before(newer) {
		return d.view, nil
	}
	v := &view{begun: time.Now(), jobs: map[string]*scheduler.Job{}, names: map[string][]*scheduler.Job{}}
	jobs, err := d.slurm.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if strings.HasPrefix(j.Name, scheduler.NamePrefix) {
			v.jobs[j.ID] = j
			v.names[j.Name] = append(v.names[j.Name], j)
		}
	}
	if err := d.observe(ctx, v); err != nil {
		return nil, err
	}
	d.view = v
	return v, nil
}

// never maps the reasons of jobs that will never start to the fix.
var never = map[string]string{
	"PartitionConfig":          "no node of the partition has what the job requests: correct it in engines.yaml",
	"PartitionNodeLimit":       "the partition has fewer nodes, or allows fewer per job",
	"PartitionTimeLimit":       "set a shorter time for the partition in engines.yaml",
	"BadConstraints":           "no node has what the job requests: correct constraint and options in engines.yaml",
	"InvalidAccount":           "set account in engines.yaml: sacctmgr show assoc user=$USER lists yours",
	"InvalidQOS":               "set qos in engines.yaml: sacctmgr show assoc user=$USER lists yours",
	"JobHeldAdmin":             "an administrator holds it: ask why",
	"JobHeldUser":              "somebody holds it: scontrol release releases it",
	"JobLaunchFailure":         "its nodes could not start it: sinfo -R, and the log of slurmd there",
	"DependencyNeverSatisfied": "it depends on a job that will not end as required",
}

// refusedFor returns why a waiting job is given up, and whether a quota is the reason; empty if it may start.
func refusedFor(reason string) (why string, quota bool) {
	if fix, ok := never[reason]; ok {
		return fmt.Sprintf("%s: %s", reason, fix), strings.HasPrefix(reason, "Invalid")
	}
	quota = strings.HasPrefix(reason, "QOS") || strings.HasPrefix(reason, "Assoc")
	if quota && (strings.Contains(reason, "PerJob") || strings.Contains(reason, "WallDuration") ||
		strings.Contains(reason, "MinCpu") ||
		strings.Contains(reason, "MinGRES") || strings.Contains(reason, "MinMemory") || strings.Contains(reason, "MinNode")) {
		return reason + ": it requests more, or less, than the account or QOS allows for a job: sacctmgr " +
			"show assoc user=$USER", true
	}
	return "", false
}
