package checkpoint

// SetPartSize cuts files of this store at multiples of n, so that small files have many parts.
func (s *Store) SetPartSize(n int64) { s.part = n }

// Token names the writer's claim.
func (w *Writer) Token() string { return w.token.String() }
