package auth

import (
	"errors"
	"net/http"
	"sync"

	"scrimp/internal/server/reply"
)

// How much memory bodies hold that are read or acted on. A body that is larger than a request of its kind
// may be is refused before; these are for many at once.
const (
	callerBodies = 32 << 20  // of one user, machine or attempt: four of the largest submissions
	userBodies   = 256 << 20 // of all users together
	agentBodies  = 256 << 20 // of all machines and attempts: users keep none of them waiting
)

// Bodies counts the memory that requests' bodies hold.
type Bodies struct {
	most int64 // of all

	mu  sync.Mutex
	all int64
	of  map[string]int64
}

// NewBodies is one of so many bytes together.
func NewBodies(most int64) *Bodies { return &Bodies{most: most, of: map[string]int64{}} }

// take counts n more bytes of a caller, where there is room for them.
func (b *Bodies) take(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+n > b.most || b.of[caller]+n > callerBodies {
		return reply.ErrCrowded
	}
	b.all += n
	b.of[caller] += n
	return nil
}

// give takes n bytes of a caller back.
func (b *Bodies) give(caller string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	if b.of[caller] -= n; b.of[caller] <= 0 {
		delete(b.of, caller)
	}
}

// errNobody is a body that is read before it is known who sends it: a bug of ours.
var errNobody = errors.New("nobody is known to send it")

// Hold implements reply.Holder.
func (b *patientBody) Hold(n int64) error {
	if b.bodies == nil {
		return errNobody
	}
	err := b.bodies.take(b.caller, n)
	if err == nil {
		b.held += n
	}
	return err
}

// release gives back what the body has held.
func (b *patientBody) release() {
	if b.bodies != nil {
		b.bodies.give(b.caller, b.held)
		b.held = 0
	}
}

// sentBy says who sends the body of a request.
func sentBy(r *http.Request, bodies *Bodies, caller string) {
	if b, ok := r.Body.(*patientBody); ok {
		b.bodies, b.caller = bodies, caller
	}
}

// Held is how many bytes are held of all, and the most of one caller.
func (b *Bodies) Held() (all, most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.of {
		most = max(most, n)
	}
	return b.all, most
}
