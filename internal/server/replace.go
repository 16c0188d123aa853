package server

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
)

// mostReplaced bounds the servers that a starting one replaces: commands may start another in between.
const mostReplaced = 5

// openFree opens the log in the folder of a server, as openLocal does, after Options.Replace has ended the server that
// a command started there.
func openFree(ctx context.Context, o *Options) (*sqlite.Store, error) {
	if o.Replace == nil || o.DB != "" {
		return openLocal(o)
	}
	for n := 1; ; n++ {
		if err := o.Replace(ctx); err != nil {
			return nil, err
		}
		st, err := openLocal(o)
		if err == nil || n == mostReplaced || !errors.Is(err, store.ErrLocked) {
			return st, err
		}
		if err := wait.For(ctx, time.Second/2); err != nil { // it begins, and does not answer yet
			return nil, err
		}
	}
}
