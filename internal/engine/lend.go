package engine

import (
	"context"

	"scrimp/internal/content/blob/scopedcreds"
)

// Lender is implemented by drivers that can lend agents credentials for a checkpoint store. The
// agents may run on any engine, since a job can resume on another engine with the same store.
type Lender interface {
	// Lends returns the store; ok is false if none is declared.
	Lends() (s scopedcreds.Store, ok bool)
	// Lend creates temporary credentials for one prefix of the store's bucket, which belongs to a
	// job. An error that is scopedcreds.ErrDenied needs a change of a role; other errors are transient.
	Lend(ctx context.Context, prefix, job string) (scopedcreds.Credentials, error)
}
