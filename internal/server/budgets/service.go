// Package budgets sets and shows limits, and warns about spending. The core enforces the limits.
package budgets

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"scrimp/internal/control"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/webhook"
)

// Meta stores metadata beside the log.
type Meta interface {
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// Service answers requests about limits.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Meta    Meta
	Hooks   webhook.Sender
	Log     *slog.Logger
	// Spent returns the amounts booked under limits in their current windows, up to the event asOf.
	Spent func(ctx context.Context, limits []budget.Limit) (base map[string]state.Spent, asOf uint64, err error)

	setting sync.Mutex  // serializes changes of limits
	ruled   atomic.Bool // the rules of an old release are in the log

	// by warning: those that no webhook has accepted; used by the Guard goroutine only
	owed map[string]owed
}
