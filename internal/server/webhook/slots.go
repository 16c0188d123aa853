package webhook

import (
	"context"
	"sync"
)

// Limits on concurrent calls, each with a connection of its own: for one user's jobs, and for all.
const (
	userSlots = 8
	allSlots  = 256
)

// slots limits concurrent calls. A thousand jobs of one user whose webhook does not answer use up neither the
// server's file descriptors nor the slots of others.
type slots struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*users
}

// users holds the slots of one user.
type users struct {
	taken  chan struct{}
	wanted int
}

func newSlots() *slots { return &slots{all: make(chan struct{}, allSlots), of: map[string]*users{}} }

// take waits for a slot of the user, then for one of all.
func (s *slots) take(ctx context.Context, user string) (done func(), err error) {
	s.mu.Lock()
	mine := s.of[user]
	if mine == nil {
		mine = &users{taken: make(chan struct{}, userSlots)}
		s.of[user] = mine
	}
	mine.wanted++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine.wanted--; mine.wanted == 0 {
			delete(s.of, user)
		}
	}
	select {
	case mine.taken <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
	select {
	case s.all <- struct{}{}:
	case <-ctx.Done():
		<-mine.taken
		leave()
		return nil, context.Cause(ctx)
	}
	return func() {
		<-s.all
		<-mine.taken
		leave()
	}, nil
}
