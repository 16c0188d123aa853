package submit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/measured"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/wire/api"
)

// How far back runs of a name are looked for: among so many jobs, for so many runs, as
// scrimp check does.
const (
	earlierJobs     = 20_000
	earlierArchived = 2_000 // which are read from the log
	earlierRuns     = 5
)

// proven refuses a long run on spot whose checkpoints no earlier run has shown to work, where
// the client does not accept that. A market that runs faster than the wall risks nothing.
func (d *Desk) proven(ctx context.Context, c identity.Caller, b api.Submission, j spec.Job) *reply.Refusal {
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

// runsOf are the newest runs of a name that are over and that the caller sees, with what they
// prove of their checkpoints.
func (d *Desk) runsOf(ctx context.Context, c identity.Caller, name string) (runs []check.Run, err error) {
	seen := 0
	enough := func() bool { seen++; return seen > earlierJobs || len(runs) == earlierRuns }
	take := func(j *core.Job) {
		if of := j.Terms().Name; (of == name || of == measured.Profile(name)) && jobs.Closed(j) && auth.Sees(c, j) {
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
	for j, err := range d.Control.Past(ctx, store.ArchivedPage{Limit: earlierArchived, Backwards: true}) {
		if err != nil || enough() {
			return runs, err
		}
		take(j)
	}
	return runs, nil
}

// resumesOf are the times from a machine to a program that went on from a checkpoint and came further.
func resumesOf(j *core.Job) (list []time.Duration) {
	for _, a := range j.Attempts() {
		if !a.Started().IsZero() && a.Restored() != "" && a.Step() > a.First() {
			list = append(list, a.Started().Sub(a.From()))
		}
	}
	return list
}
