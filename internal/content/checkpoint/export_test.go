package checkpoint

import (
	"time"
)

// SetPartSize cuts files of this store at multiples of n, so that small files have many parts.
func (s *Store) SetPartSize(n int64) { s.objects.PartSize = n }

// Token returns the name of the writer's claim.
func (w *Writer) Token() string { return w.token.String() }

// SetPatience sets how long the follower waits for rank 0 once its part is stored.
func (f *Follower) SetPatience(d time.Duration) { f.patience = d }

// SetStore makes the follower use another store.
func (f *Follower) SetStore(s *Store) { f.store = s }
