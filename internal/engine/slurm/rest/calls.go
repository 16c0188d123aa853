package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/durable"
)

// Cluster implements scheduler.Scheduler.
func (c *Client) Cluster(ctx context.Context, partitions []string) (*scheduler.Cluster, error) {
	all := &scheduler.Cluster{At: time.Now(), Partitions: map[string]scheduler.Partition{},
		KillWait: scheduler.UsualKillWait}
	var parts struct {
		Partitions []partitionForm `json:"partitions"`
	}
	if err := c.ask(ctx, http.MethodGet, "slurm", "/partitions", nil, &parts); err != nil {
		return nil, err
	}
	for n := range parts.Partitions {
		all.Partitions[parts.Partitions[n].Name] = parts.Partitions[n].partition()
	}
	var nodes struct {
		Nodes []nodeForm `json:"nodes"`
	}
	if err := c.ask(ctx, http.MethodGet, "slurm", "/nodes", nil, &nodes); err != nil {
		return nil, err
	}
	for n := range nodes.Nodes {
		for _, p := range nodes.Nodes[n].Partitions {
			if slices.Contains(partitions, p) && nodes.Nodes[n].CPUs > 0 {
				all.Nodes = append(all.Nodes, nodes.Nodes[n].node(p))
			}
		}
	}
	return all, nil
}

type jobList struct {
	Jobs []jobForm `json:"jobs"`
}

// Jobs implements scheduler.Scheduler.
func (c *Client) Jobs(ctx context.Context) (all []*scheduler.Job, err error) {
	var answer jobList
	if err := c.ask(ctx, http.MethodGet, "slurm", "/jobs", nil, &answer); err != nil {
		return nil, err
	}
	for n := range answer.Jobs {
		if j := &answer.Jobs[n]; strings.HasPrefix(j.Name, scheduler.NamePrefix) && j.of(c.User) {
			all = append(all, j.job())
		}
	}
	return all, nil
}

// Accounts implements scheduler.Scheduler.
func (c *Client) Accounts(ctx context.Context, ids []string) (map[string]*scheduler.Job, error) {
	jobs := map[string]*scheduler.Job{}
	for _, id := range ids {
		var answer struct {
			Jobs []accountForm `json:"jobs"`
		}
		err := c.ask(ctx, http.MethodGet, "slurmdb", "/job/"+id, nil, &answer)
		if no, ok := errors.AsType[*scheduler.Error](err); ok && (errors.Is(no.Err, errStatus(http.StatusNotFound)) ||
			strings.Contains(no.Text, "not configured") || strings.Contains(no.Text, "storage is disabled")) {
			return nil, scheduler.ErrNoAccounts
		}
		if err != nil {
			return nil, err
		}
		for n := range answer.Jobs {
			jobs[id] = answer.Jobs[n].job() // the last is the newest of that number
		}
	}
	return jobs, nil
}

// submission is slurmrestd's request for a batch job.
type submission struct {
	Script string         `json:"script"`
	Job    map[string]any `json:"job"`
}

// Submit implements scheduler.Scheduler.
func (c *Client) Submit(ctx context.Context, o *scheduler.Order) (job string, err error) {
	script, err := os.ReadFile(o.Script())
	if err != nil {
		return "", fmt.Errorf("read the allocation's script: %w", err)
	}
	version, err := c.speaks(ctx)
	if err != nil {
		return "", err
	}
	job, err = c.hand(ctx, submission{string(script), describe(o, version)})
	if job != "" {
		return job, nil // warnings only say why it waits
	}
	return "", scheduler.Refusal(err)
}

// hand submits a job. It returns the job's number even with an error.
func (c *Client) hand(ctx context.Context, s submission) (job string, err error) {
	var answer struct {
		Job int64 `json:"job_id"`
	}
	err = c.ask(ctx, http.MethodPost, "slurm", "/job/submit", s, &answer)
	if answer.Job > 0 {
		return strconv.FormatInt(answer.Job, 10), err
	}
	if err == nil {
		err = errors.New("slurmrestd returned no job id")
	}
	return "", err
}

// trialAfter is when a trial job would start if it were not cancelled.
const trialAfter = 10 * 365 * 24 * time.Hour

// Try submits a job with a start in some years, and cancels it: slurmrestd has no trial, and Slurm does not check
// whether nodes can hold a held job.
func (c *Client) Try(ctx context.Context, o *scheduler.Order) error {
	jobs, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs { // left by a trial whose answer was lost
		if j.Name == scheduler.TrialName && scheduler.Waits[j.State] {
			if err := c.Cancel(ctx, j.ID); err != nil {
				return err
			}
		}
	}
	version, err := c.speaks(ctx)
	if err != nil {
		return err
	}
	description := describe(o, version)
	description["current_working_directory"], description["standard_output"] = "/", "/dev/null"
	description["begin_time"] = later(version, time.Now().Add(trialAfter))
	job, err := c.hand(ctx, submission{"#!/bin/sh\ntrue\n", description})
	if job == "" {
		return scheduler.Refusal(err)
	}
	if no := c.Cancel(ctx, job); no != nil {
		return no
	}
	if err != nil {
		return scheduler.Refusal(err)
	}
	return nil
}

// CancelPending holds a job first, so that it cannot start between the check and the end.
func (c *Client) CancelPending(ctx context.Context, job string) error {
	path := "/job/" + job
	if err := c.ask(ctx, http.MethodPost, "slurm", path, map[string]any{"hold": true}, nil); err != nil {
		if no, ok := errors.AsType[*scheduler.Error](err); ok && (strings.Contains(no.Text, "already finished") ||
			strings.Contains(no.Text, "no longer pending")) {
			return nil
		}
		return err
	}
	var answer jobList
	if err := c.ask(ctx, http.MethodGet, "slurm", path, nil, &answer); err != nil {
		return err
	}
	if len(answer.Jobs) == 0 {
		return fmt.Errorf("slurmrestd holds job %s, and does not show it", job)
	}
	switch state := answer.Jobs[len(answer.Jobs)-1].State.last(); {
	case scheduler.Waits[state]:
		return c.Cancel(ctx, job)
	case scheduler.Runs[state]:
		return c.ask(ctx, http.MethodPost, "slurm", path, map[string]any{"hold": false}, nil)
	}
	return nil
}

// Cancel implements scheduler.Scheduler.
func (c *Client) Cancel(ctx context.Context, job string) error {
	return c.ask(ctx, http.MethodDelete, "slurm", "/job/"+job, nil, nil)
}

// EndRanks writes files that an allocation watches for: slurmrestd cannot signal single steps.
func (c *Client) EndRanks(_ context.Context, _, folder string, ranks []int) (err error) {
	for _, k := range ranks {
		path := filepath.Join(folder, fmt.Sprintf("given.%d", k))
		if _, no := os.Stat(path); no != nil {
			err = errors.Join(err, durable.Replace(path, nil))
		}
	}
	return err
}

// Ready implements scheduler.Scheduler.
func (c *Client) Ready(ctx context.Context) engine.Finding {
	f := engine.Finding{Name: "slurmrestd"}
	version, err := c.speaks(ctx)
	if err != nil {
		f.Name, f.Text = c.Advice(ctx, err)
		return f
	}
	f.OK, f.Text = true, fmt.Sprintf("%s speaks %s", c.URL, version)
	if version != Tried {
		f.Text += ", which scrimp knows from the documentation only: " + Tried + " has been tried"
	}
	return f
}

// Advice distinguishes what slurmrestd refuses from what does not answer.
func (c *Client) Advice(_ context.Context, err error) (about, text string) {
	text = err.Error()
	if errors.Is(err, errToken) || errors.Is(err, errUnknown) {
		return "credentials", text
	}
	return "slurmrestd", text + ": " + c.URL + " is the configured address; correct url under rest in engines.yaml, or " +
		"start " +
		"slurmrestd"
}
