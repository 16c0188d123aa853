package auth

import (
	"fmt"
	"sync"
)

// Streams counts what callers have open: streams or transfers.
type Streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Open counts one more for the caller, or returns an error if there are too many: each is the limit of a caller,
// most that of all callers.
func (s *Streams) Open(caller string, each, most int) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= most:
		return nil, fmt.Errorf("%d streams are open, which is the limit of this server", s.all)
	case s.of[caller] >= each:
		return nil, fmt.Errorf("%d streams are open, which is the limit of one caller", s.of[caller])
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[caller]--; s.of[caller] == 0 {
			delete(s.of, caller)
		}
	}, nil
}
