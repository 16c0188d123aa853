// Package blockhash hashes the blocks of a stream in separate goroutines, so that the reader of the stream does not
// wait for the hashes.
package blockhash

import (
	"hash"
	"sync"
	"sync/atomic"
)

// Blocks of Size bytes bound the memory of a stream.
const (
	Blocks = 4
	Size   = 512 << 10
)

// Stream passes the same bytes to several hashes. One goroutine uses it at a time.
type Stream struct {
	hashes []hash.Hash
	free   chan []byte
	queues []chan *block // one for each hash; none until the first Put of a whole block
	behind sync.WaitGroup
}

// block is what a Put passes to the hashes.
type block struct {
	memory []byte
	n      int
	left   atomic.Int32 // hashes that have not seen it
}

// New returns a stream for hashes, which nobody else uses before Wait returns.
func New(hashes ...hash.Hash) *Stream { return &Stream{hashes: hashes} }

// Write hashes b before it returns. It fits streams that are small or read from a local file.
func (s *Stream) Write(b []byte) (int, error) {
	s.behind.Wait()
	for _, h := range s.hashes {
		_, _ = h.Write(b) // a hash never fails
	}
	return len(b), nil
}

// Block returns memory for the next bytes of a stream that has about most more. It waits while the hashes are Blocks
// behind.
func (s *Stream) Block(most int64) []byte {
	if s.free == nil {
		if most < Size {
			return make([]byte, most)
		}
		s.begin()
	}
	return <-s.free
}

func (s *Stream) begin() {
	s.free = make(chan []byte, Blocks)
	for range Blocks {
		s.free <- make([]byte, Size)
	}
	for _, h := range s.hashes {
		queue := make(chan *block, Blocks)
		s.queues = append(s.queues, queue)
		go func() {
			for b := range queue {
				_, _ = h.Write(b.memory[:b.n]) // as above
				if b.left.Add(-1) == 0 {
					s.free <- b.memory
				}
				s.behind.Done()
			}
		}()
	}
}

// Put hashes the first n bytes of memory that Block returned. The caller does not use the memory again.
func (s *Stream) Put(memory []byte, n int) {
	if s.free == nil {
		_, _ = s.Write(memory[:n])
		return
	}
	b := &block{memory: memory, n: n}
	b.left.Store(int32(len(s.hashes)))
	s.behind.Add(len(s.hashes))
	for _, q := range s.queues {
		q <- b
	}
}

// Wait returns once the hashes have seen all bytes.
func (s *Stream) Wait() { s.behind.Wait() }

// Close waits, and ends the goroutines. Only Write may follow.
func (s *Stream) Close() {
	s.Wait()
	for _, q := range s.queues {
		close(q)
	}
	s.queues, s.free = nil, nil
}
