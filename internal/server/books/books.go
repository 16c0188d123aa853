// Package books builds reports from the log and its ledger: costs, receipts, decisions, measurements of runs, and
// whether the ledger is consistent. It changes nothing.
package books

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/view"
	"scrimp/internal/view/projection"
)

// Log is the log with its postings and metadata.
type Log interface {
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error]
	PostingsOf(ctx context.Context, tenant string, after, upTo uint64) iter.Seq2[ledger.Posting, error]
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// Books answers requests for reports from the log, as far as the core has read it.
type Books struct {
	Control *control.Control
	Log     Log
	View    *view.View // the log by job
	Errors  *slog.Logger
	// Telemetry returns the telemetry of a job's machines; nil: not known.
	Telemetry func(ctx context.Context, j *core.Job) (*receipt.Telemetry, error)
	// Fees returns the shared costs of a month, given by its first moment, that are not charges in the ledger.
	Fees func(ctx context.Context, month time.Time) ([]client.Fee, error)
	// HasTeam reports whether the team exists.
	HasTeam func(name string) bool

	spent spent
}

// known returns the job that a request names, or answers that there is none.
func (b *Books) known(w http.ResponseWriter, r *http.Request) (j view.Job, known bool) {
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
func (b *Books) events(ctx context.Context, j view.Job, what view.What,
	f func(seq uint64, e core.Event, facts []core.Fact) error,
) error {
	return b.View.Events(ctx, j, what, func(r store.Record) error {
		e, facts, err := control.Decode(r)
		if err != nil {
			return err
		}
		return f(r.Seq, e, facts)
	})
}

// Unread answers that the server could not read the events of a job.
func Unread(w http.ResponseWriter, title string, err error) {
	var behind *projection.BehindError
	if errors.As(err, &behind) {
		reply.Problem(w, http.StatusServiceUnavailable, "the answer is still being built from the log",
			"ask again in a minute", err)
		return
	}
	reply.Problem(w, http.StatusInternalServerError, title, "scrimp ledger verify says where the log is broken", err)
}
