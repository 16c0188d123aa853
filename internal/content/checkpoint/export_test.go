package checkpoint

import (
	"time"
)

// SetPartSize cuts files of this store at multiples of n, so that small files have many parts.
func (s *Store) SetPartSize(n int64) { s.part = n }

// Token names the writer's claim.
func (w *Writer) Token() string { return w.token.String() }

// SetPatience is how long the follower waits for rank 0 once its part is stored.
func (f *Follower) SetPatience(d time.Duration) { f.patience = d }

// SetStore has the follower use another way to the store.
func (f *Follower) SetStore(s *Store) { f.store = s }
