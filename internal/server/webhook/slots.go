package webhook

import (
	"context"
	"sync"
)

// How many webhooks are asked at once, each with a connection of its own: of one user's jobs, and of all.
const (
	userSlots = 8
	allSlots  = 256
)

// slots are taken while a webhook is asked. A thousand jobs of one user whose webhook does not answer keep neither
// the server's files nor the webhooks of others.
type slots struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*users
}

// users are the slots of one user.
type users struct {
	taken  chan struct{}
	wanted int
}

func newSlots() *slots { return &slots{all: make(chan struct{}, allSlots), of: map[string]*users{}} }

// take waits for one of the user's, and then for one of all.
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
