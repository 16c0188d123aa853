package server

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/spec"
)

// assign is what the agent of the attempt has to do.
func (s *Server) assign(ctx context.Context, job core.Job, a core.Attempt) (api.Assignment, error) {
	raw, _, err := s.control.Spec(ctx, job.ID())
	if err != nil {
		return api.Assignment{}, err
	}
	j, err := spec.Decode(raw)
	if err != nil {
		s.opts.Log.Error("job file not read", "job", job.ID(), "error", err)
	}
	clock := s.control.Clock()
	env := map[string]string{"WANDB_RUN_ID": job.ID(), "WANDB_RESUME": "allow"}
	for k, v := range j.Env {
		env[k] = v
	}
	command, args := j.Command, slices.Clone(j.Args)
	for i, v := range j.AnyOf {
		if a.Variant() != "" && variant(j, i) == a.Variant() {
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
		Job: job.ID(), Name: j.Name, Attempt: a.ID(), Tasks: 1, Epoch: a.Epoch(), AttemptToken: s.ticket("attempt", a.ID()),
		Setup: j.Setup, Command: command, Args: args, Workdir: api.ServerWork, Env: env, Secrets: s.secrets(job.ID()),
		Outputs: j.Outputs, OutputsURL: api.ServerStore, OutputsPrefix: OwnKeys(job.ID()),
		Signal: signal, SignalLead: lead, Grace: grace(j),
		Progress:  api.Progressing{Pattern: j.Progress.Pattern, Saved: j.Progress.Saved, File: j.Progress.File},
		Total:     j.Work.Steps,
		Metric:    j.Metric.Name,
		Retryable: j.Retry.Codes, Report: 500 * time.Millisecond, Silence: 5 * time.Minute, Speed: clock.Speed,
	}
	if !job.Terms().Deadline.IsZero() {
		as.Deadline = clock.ToWall(job.Terms().Deadline)
	}
	if j.Checkpoint.Dir != "" {
		as.Checkpoint = s.checkpoints(j, job.ID())
		as.Checkpoint.Seeded = job.Source() != nil
	}
	return as, nil
}

// checkpoints is how and where the job's checkpoints are kept.
func (s *Server) checkpoints(j spec.Job, id string) api.Checkpoints {
	interval := time.Duration(0)
	s.control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(id); ok {
			interval = m.Interval(j)
		}
	})
	return api.Checkpoints{
		Dir: j.Checkpoint.Dir, URL: cmp.Or(j.Checkpoint.Store, api.ServerStore), Prefix: OwnKeys(id),
		Interval: s.control.Clock().Shrink(interval), KeepLast: cmp.Or(j.Checkpoint.Keep, standard.Checkpoint.Keep),
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
