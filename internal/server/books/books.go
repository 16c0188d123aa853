// Package books reads the log and its ledger for people: what was spent and on what, receipts, decisions,
// what runs have measured, and whether the ledger is right. It changes nothing.
package books

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
)

// Log is the log with its postings, and what is kept beside it.
type Log interface {
	Records(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error]
	PostingsOf(ctx context.Context, tenant string, after, upTo uint64) iter.Seq2[ledger.Posting, error]
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// Books answers from a log, up to which the core has come.
type Books struct {
	Control *control.Control
	Log     Log
	Errors  *slog.Logger

	spent spent
}

// known answers who asks about a job that is not.
func (b *Books) known(w http.ResponseWriter, r *http.Request) bool {
	id := r.PathValue("id")
	known := b.Control.Job(id, func(*core.Machine, *core.Job) {})
	if !known {
		reply.UnknownJob(w, "", id)
	}
	return known
}
