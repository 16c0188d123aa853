package object

import (
	"context"
	"sync"
	"sync/atomic"

	"scrimp/internal/content/checkpoint/format"
)

// wholeParts pools buffers for parts of the usual size, for publish, verification and restore: fresh memory for each
// part cost up to a tenth of the copying.
var wholeParts = sync.Pool{New: func() any { return new([format.PartSize]byte) }}

// lend returns a buffer of size bytes and a function that returns it to the pool.
func lend(size int64) (buffer []byte, giveBack func()) {
	if size <= format.PartSize/2 || size > format.PartSize {
		return make([]byte, size), func() {}
	}
	whole, _ := wholeParts.Get().(*[format.PartSize]byte)
	return whole[:size], func() { wholeParts.Put(whole) }
}

// Lend returns a buffer for the largest of the parts and a function that returns it to the pool.
func Lend(parts []format.Part) (buffer []byte, giveBack func()) { return lend(bufferFor(parts)) }

// parallel calls do for 0 to n-1 from the store's workers, each with its own buffer of size bytes, waits for them,
// and returns the first error. After an error it starts no more calls.
func (s *Store) parallel(ctx context.Context, n int, size int64,
	do func(ctx context.Context, buffer []byte, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, s.workers) {
		wg.Go(func() {
			buffer, giveBack := lend(size)
			defer giveBack()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, buffer, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
