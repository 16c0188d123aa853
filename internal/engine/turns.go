package engine

import (
	"context"
	"sync"
)

// Turns is a mutex per key for a driver's calls. The zero Turns is ready to use.
type Turns struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is the mutex of one key.
type turn struct {
	taken chan struct{}
	users int // goroutines that hold it or wait for it
}

// Take locks a key. It returns the function that unlocks it.
func (s *Turns) Take(ctx context.Context, key string) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	t := s.turns[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		if s.turns == nil {
			s.turns = map[string]*turn{}
		}
		s.turns[key] = t
	}
	t.users++
	s.mu.Unlock()
	left := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(s.turns, key)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; left() }, nil
	case <-ctx.Done():
		left()
		return nil, context.Cause(ctx)
	}
}
