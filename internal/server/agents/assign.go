package agents

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/terms"
	"scrimp/internal/spec"
)

// assign is what the agent of the attempt has to do.
func (d *Desk) assign(ctx context.Context, job core.Job, a core.Attempt) (api.Assignment, error) {
	raw, _, err := d.Control.Spec(ctx, job.ID())
	if err != nil {
		return api.Assignment{}, err
	}
	j, err := spec.Decode(raw)
	if err != nil {
		d.Errors.Error("job file not read", "job", job.ID(), "error", err)
	}
	clock := d.Control.Clock()
	env := map[string]string{"WANDB_RUN_ID": job.ID(), "WANDB_RESUME": "allow"}
	for k, v := range j.Env {
		env[k] = v
	}
	command, args := j.Command, slices.Clone(j.Args)
	for i, v := range j.AnyOf {
		if a.Variant() != "" && terms.Variant(j, i) == a.Variant() {
			if len(args) > 0 {
				args = append(args, v.Args...)
			} else {
				command += quoted(v.Args)
			}
			maps.Copy(env, v.Env)
		}
	}
	signal, lead := signalOf(j.Signal)
	as := api.Assignment{
		Job: job.ID(), Name: j.Name, Attempt: a.ID(), Nodes: 1, Epoch: a.Epoch(),
		AttemptToken: d.Gate.Tickets.For(auth.AttemptTicket, a.ID()),
		Setup:        j.Setup, Command: command, Args: args, Workdir: api.ServerWork, Env: env, Secrets: d.secrets(job.ID()),
		Outputs: j.Outputs, OutputsURL: api.ServerStore, OutputsPrefix: kept.OwnKeys(job.ID()),
		Signal: signal, SignalLead: lead, Grace: terms.Grace(j),
		Progress:  api.Progressing{Pattern: j.Progress.Pattern, Saved: j.Progress.Saved, File: j.Progress.File},
		Total:     j.Work.Steps,
		Metric:    j.Metric.Name,
		Retryable: j.Retry.Codes, Report: 500 * time.Millisecond, Silence: 5 * time.Minute, Speed: clock.Speed,
	}
	if p := a.Portion(); p != nil {
		as.Part = &api.Part{CPUs: p.CPUs, Memory: p.Memory, Devices: slices.Clone(p.Devices)}
	}
	if !job.Terms().Deadline.IsZero() {
		as.Deadline = clock.ToWall(job.Terms().Deadline)
	}
	if j.Checkpoint.Dir != "" {
		as.Checkpoint = d.checkpoints(j, job.ID())
		as.Checkpoint.Seeded = job.Source() != nil
	}
	return as, nil
}

// checkpoints is how and where the job's checkpoints are kept.
func (d *Desk) checkpoints(j spec.Job, id string) api.Checkpoints {
	interval := time.Duration(0)
	d.Control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(id); ok {
			interval = m.Interval(j)
		}
	})
	return api.Checkpoints{
		Dir: j.Checkpoint.Dir, URL: cmp.Or(j.Checkpoint.Store, api.ServerStore), Prefix: kept.OwnKeys(id),
		Interval: d.Control.Clock().Shrink(interval), KeepLast: cmp.Or(j.Checkpoint.Keep, terms.Standard.Checkpoint.Keep),
		KeepBest: j.Checkpoint.Best, KeepNth: j.Checkpoint.EveryNth, Metric: j.Metric.Name, Goal: j.Metric.Goal,
	}
}

// signalOf splits USR1@90s.
func signalOf(text string) (name string, lead time.Duration) {
	name, span, ok := strings.Cut(strings.TrimPrefix(text, "SIG"), "@")
	if ok {
		lead, _ = time.ParseDuration(span) // validated
	}
	if name == "" {
		name = "TERM"
	}
	return name, lead
}

// quoted is args as a shell reads them, each after a space.
func quoted(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" '" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}

// secrets returns what was kept for the job; nil where nothing was.
func (d *Desk) secrets(job string) map[string]string {
	m, err := d.Vault.Open(job)
	if err != nil {
		d.Errors.Error("secrets not read", "job", job, "error", err)
	}
	return m
}
