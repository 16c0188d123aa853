// Package budgets lets limits be set and seen, and warns of what is spent. The core keeps them.
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

// Meta is what the store keeps beside the log.
type Meta interface {
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// Desk is where limits are set and seen.
type Desk struct {
	Gate    *auth.Gate
	Control *control.Control
	Meta    Meta
	Hooks   webhook.Sender
	Log     *slog.Logger
	// Spent is what was booked of limits in the windows that are open now, up to the event asOf.
	Spent func(ctx context.Context, limits []budget.Limit) (base map[string]state.Spent, asOf uint64, err error)

	setting sync.Mutex  // held while limits are changed
	ruled   atomic.Bool // what a release before kept of budgets is taken into the log

	// by warning of a limit: those that no webhook has taken; of the goroutine that looks at the limits
	owed map[string]owed
}
