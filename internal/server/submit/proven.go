package submit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
)

// Limits of the search for earlier runs of a name: jobs to search and runs to find, as for scrimp check.
const (
	earlierJobs     = 20_000
	earlierArchived = 2_000 // read from the log
	earlierRuns     = 5
)

// proven refuses a long run on spot if no earlier run has shown that its checkpoints work, unless the client accepts
// that. A simulated clock that is faster than real time risks nothing.
func (d *Service) proven(ctx context.Context, c identity.Caller, b api.Submission, j spec.Job) *reply.Refusal {
	if b.AcceptUnproven || time.Duration(j.Work.Time) <= check.LongRun || d.Control.Clock().Speed != 1 {
		return nil
	}
	runs, err := d.runsOf(ctx, c, j.Name)
	if err != nil {
		return unread(err)
	}
	for _, f := range check.Check(check.Case{Job: j, Runs: runs}).Findings {
		if f.ID == "spot-proven" && f.Verdict == check.Fail {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "accept_unproven",
				Title: "a long run on spot whose checkpoints are not proven",
				Fix:   "run a short one, interrupt it and see it go on; or send accept_unproven", Err: errors.New(f.Evidence)}
		}
	}
	return nil
}

// runsOf returns the newest finished runs of a name that the caller sees, with the evidence about their checkpoints.
func (d *Service) runsOf(ctx context.Context, c identity.Caller, name string) (runs []check.Run, err error) {
	seen := 0
	enough := func() bool { seen++; return seen > earlierJobs || len(runs) == earlierRuns }
	take := func(j *core.Job) {
		if of := j.Terms().Name; (of == name || of == runhistory.Profile(name)) && j.Priced() && auth.Sees(c, j) {
			runs = append(runs, check.Run{Job: j.ID(), State: string(j.State()), Resumes: resumesOf(j)})
		}
	}
	d.Control.Read(func(m *core.Machine) {
		for j := range m.State().JobsTo(0) {
			if enough() {
				return
			}
			take(j)
		}
	})
	for j, err := range d.Control.Past(ctx, view.ArchivedPage{Limit: earlierArchived, Backwards: true}) {
		if err != nil || enough() {
			return runs, err
		}
		take(j)
	}
	return runs, nil
}

// resumesOf returns the times from the grant of a machine to the start of a program that resumed from a checkpoint
// and made progress.
func resumesOf(j *core.Job) (list []time.Duration) {
	for _, a := range j.Attempts() {
		if !a.Started().IsZero() && a.Restored() != "" && a.Step() > a.First() {
			list = append(list, a.Started().Sub(a.From()))
		}
	}
	return list
}
