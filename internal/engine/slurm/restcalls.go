package slurm

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
)

func (c *rest) cluster(ctx context.Context, partitions []string) (*cluster, error) {
	all := &cluster{at: time.Now(), partitions: map[string]partition{}, killWait: usualKillWait}
	var parts struct {
		Partitions []restPartition `json:"partitions"`
	}
	if err := c.ask(ctx, http.MethodGet, "slurm", "/partitions", nil, &parts); err != nil {
		return nil, err
	}
	for n := range parts.Partitions {
		all.partitions[parts.Partitions[n].Name] = parts.Partitions[n].partition()
	}
	var nodes struct {
		Nodes []restNode `json:"nodes"`
	}
	if err := c.ask(ctx, http.MethodGet, "slurm", "/nodes", nil, &nodes); err != nil {
		return nil, err
	}
	for n := range nodes.Nodes {
		for _, p := range nodes.Nodes[n].Partitions {
			if slices.Contains(partitions, p) && nodes.Nodes[n].CPUs > 0 {
				all.nodes = append(all.nodes, nodes.Nodes[n].node(p))
			}
		}
	}
	return all, nil
}

type restJobs struct {
	Jobs []restJob `json:"jobs"`
}

func (c *rest) jobs(ctx context.Context) (all []*job, err error) {
	var answer restJobs
	if err := c.ask(ctx, http.MethodGet, "slurm", "/jobs", nil, &answer); err != nil {
		return nil, err
	}
	for n := range answer.Jobs {
		if j := &answer.Jobs[n]; strings.HasPrefix(j.Name, namePrefix) && j.of(c.User) {
			all = append(all, j.job())
		}
	}
	return all, nil
}

func (c *rest) accounts(ctx context.Context, ids []string) (map[string]*job, error) {
	jobs := map[string]*job{}
	for _, id := range ids {
		var answer struct {
			Jobs []restAccount `json:"jobs"`
		}
		err := c.ask(ctx, http.MethodGet, "slurmdb", "/job/"+id, nil, &answer)
		if no, ok := errors.AsType[*commandError](err); ok && (errors.Is(no.err, errStatus(http.StatusNotFound)) ||
			strings.Contains(no.text, "not configured") || strings.Contains(no.text, "storage is disabled")) {
			return nil, errNoAccounts
		}
		if err != nil {
			return nil, err
		}
		for n := range answer.Jobs {
			jobs[id] = answer.Jobs[n].job() // the newest of that number is the last
		}
	}
	return jobs, nil
}

// restSubmission is what slurmrestd takes as a batch job.
type restSubmission struct {
	Script string         `json:"script"`
	Job    map[string]any `json:"job"`
}

func (c *rest) submit(ctx context.Context, o *order) (job string, err error) {
	script, err := os.ReadFile(o.script())
	if err != nil {
		return "", fmt.Errorf("read the allocation's script: %w", err)
	}
	version, err := c.speaks(ctx)
	if err != nil {
		return "", err
	}
	job, err = c.hand(ctx, restSubmission{string(script), o.description(version)})
	if job != "" {
		return job, nil // what else is said of it is why it waits
	}
	return "", refusal(err)
}

// hand hands in a job. It returns its number also where something is said of it.
func (c *rest) hand(ctx context.Context, s restSubmission) (job string, err error) {
	var answer struct {
		Job int64 `json:"job_id"`
	}
	err = c.ask(ctx, http.MethodPost, "slurm", "/job/submit", s, &answer)
	if answer.Job > 0 {
		return strconv.FormatInt(answer.Job, 10), err
	}
	if err == nil {
		err = errors.New("slurmrestd answers no job")
	}
	return "", err
}

// trialAfter is when a job that is only tried would begin, had it not been taken back.
const trialAfter = 10 * 365 * 24 * time.Hour

// try submits a job that is not to begin for years, and takes it back: slurmrestd has no trial, and of a job that is
// held Slurm does not ask whether any node has what it needs.
func (c *rest) try(ctx context.Context, o *order) error {
	jobs, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs { // of a trial whose answer was lost
		if j.name == trialName && waits[j.state] {
			if err := c.cancel(ctx, j.id); err != nil {
				return err
			}
		}
	}
	version, err := c.speaks(ctx)
	if err != nil {
		return err
	}
	description := o.description(version)
	description["current_working_directory"], description["standard_output"] = "/", "/dev/null"
	description["begin_time"] = later(version, time.Now().Add(trialAfter))
	job, err := c.hand(ctx, restSubmission{"#!/bin/sh\ntrue\n", description})
	if job == "" {
		return refusal(err)
	}
	if no := c.cancel(ctx, job); no != nil {
		return no
	}
	if err != nil {
		return refusal(err)
	}
	return nil
}

// cancelPending holds a job first, so that it cannot begin between the question and the end.
func (c *rest) cancelPending(ctx context.Context, job string) error {
	path := "/job/" + job
	if err := c.ask(ctx, http.MethodPost, "slurm", path, map[string]any{"hold": true}, nil); err != nil {
		if no, ok := errors.AsType[*commandError](err); ok && (strings.Contains(no.text, "already finished") ||
			strings.Contains(no.text, "no longer pending")) {
			return nil
		}
		return err
	}
	var answer restJobs
	if err := c.ask(ctx, http.MethodGet, "slurm", path, nil, &answer); err != nil {
		return err
	}
	if len(answer.Jobs) == 0 {
		return fmt.Errorf("slurmrestd holds job %s, and does not show it", job)
	}
	switch state := answer.Jobs[len(answer.Jobs)-1].State.last(); {
	case waits[state]:
		return c.cancel(ctx, job)
	case runs[state]:
		return c.ask(ctx, http.MethodPost, "slurm", path, map[string]any{"hold": false}, nil)
	}
	return nil
}

func (c *rest) cancel(ctx context.Context, job string) error {
	return c.ask(ctx, http.MethodDelete, "slurm", "/job/"+job, nil, nil)
}

// endRanks writes the files that an allocation looks for: slurmrestd signals no single steps.
func (c *rest) endRanks(_ context.Context, _, folder string, ranks []int) (err error) {
	for _, k := range ranks {
		path := filepath.Join(folder, fmt.Sprintf("given.%d", k))
		if _, no := os.Stat(path); no != nil {
			err = errors.Join(err, replace(path, nil))
		}
	}
	return err
}

func (c *rest) ready(ctx context.Context) engine.Finding {
	f := engine.Finding{Name: "slurmrestd"}
	version, err := c.speaks(ctx)
	if err != nil {
		f.Name, f.Text = c.advice(ctx, err)
		return f
	}
	f.OK, f.Text = true, fmt.Sprintf("%s speaks %s", c.URL, version)
	if version != tried {
		f.Text += ", whose forms are known by their documentation: " + tried + " has been tried"
	}
	return f
}

// advice tells what slurmrestd does not take from what does not answer.
func (c *rest) advice(_ context.Context, err error) (about, text string) {
	text = err.Error()
	if errors.Is(err, errToken) || errors.Is(err, errUnknown) {
		return "credentials", text
	}
	return "slurmrestd", text + ": " + c.URL + " is what is asked; correct url under rest in engines.yaml, or start " +
		"slurmrestd"
}
