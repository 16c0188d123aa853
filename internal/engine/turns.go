package engine

import (
	"context"
	"sync"
)

// Turns lets one call of a driver at a time work on a key. The zero Turns is ready.
type Turns struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is of the calls that work on one key, one at a time.
type turn struct {
	taken chan struct{}
	users int // that have or want it
}

// Take waits for the turn of a key. It returns what ends the turn.
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
