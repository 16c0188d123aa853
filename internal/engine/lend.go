package engine

import (
	"context"

	"scrimp/internal/content/blob/lent"
)

// Lender is what a driver also does that lends the agents of jobs credentials for a store of checkpoints, on whatever
// engine they run: a job goes on from another engine's machine with the same store.
type Lender interface {
	// Lends is the store; ok is false where none is declared.
	Lends() (s lent.Store, ok bool)
	// Lend makes credentials for what lies below a prefix of the store's bucket, a job's own, for a while. An error that
	// is lent.ErrDenied needs somebody who changes a role; others pass by themselves.
	Lend(ctx context.Context, prefix, job string) (lent.Credentials, error)
}
