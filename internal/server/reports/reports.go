// Package reports builds the reports of spending from the ledger: costs by job, user or team, chargeback, exports and
// unusual spending. It changes nothing of the ledger.
package reports

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/projection"
)

// Log is the ledger of the log, and its metadata.
type Log interface {
	PostingsOf(ctx context.Context, tenant string, after, upTo uint64) iter.Seq2[ledger.Posting, error]
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// Books answers requests for reports from the log, as far as the core has read it.
type Books struct {
	Control *control.Control
	Log     Log
	Errors  *slog.Logger
	// Fees returns the shared costs of a month, given by its first moment, that are not charges in the ledger.
	Fees func(ctx context.Context, month time.Time) ([]client.Fee, error)
	// HasTeam reports whether the team exists.
	HasTeam func(name string) bool
	// Names returns the names of users.
	Names func() *identity.Names

	spent spent
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
