// Package receipts answers from the log what jobs did: their receipts, decisions and metrics, the runs that were
// measured, the market as it was seen, and whether log and ledger are consistent. It changes nothing.
package receipts

import (
	"context"
	"iter"
	"net/http"

	"scrimp/internal/control"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/view"
)

// Log is the log with its postings.
type Log interface {
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error]
}

// Service answers requests about jobs from the log, as far as the core has read it.
type Service struct {
	Control *control.Control
	Log     Log
	View    *view.View // the log by job
	// Machines returns the telemetry of a job's machines, and what bringing inputs to them took; nil: there is none.
	Machines func(ctx context.Context, j *core.Job) (*receipt.Telemetry, *receipt.DataUse, error)
}

// known returns the job that a request names, or answers that there is none.
func (b *Service) known(w http.ResponseWriter, r *http.Request) (j view.Job, known bool) {
	id := r.PathValue("id")
	known = b.Control.Job(id, func(m *core.Machine, job *core.Job) { j = jobOf(m, job) })
	if !known {
		reply.UnknownJob(w, "", id)
	}
	return j, known
}

// jobOf returns the job for a read of its events, up to its latest change. A reader waits until that event is
// durable.
func jobOf(m *core.Machine, j *core.Job) view.Job {
	return view.Job{ID: j.ID(), Submitted: j.Event(), UpTo: m.ChangedAt(j)}
}

// events calls f with each event about a job that matches what, and with its facts.
func (b *Service) events(ctx context.Context, j view.Job, what view.What,
	f func(seq uint64, e core.Event, facts []core.Fact) error,
) error {
	return b.View.Events(ctx, j, what, func(r store.Record) error {
		e, facts, err := replay.Decode(r)
		if err != nil {
			return err
		}
		return f(r.Seq, e, facts)
	})
}
