package auth

import (
	"errors"
	"net/http"
	"sync"

	"scrimp/internal/server/reply"
)

// Limits on the memory of request bodies in use. The server refuses a body above the limit of its kind earlier;
// these limits are for many bodies at once.
const (
	callerBodies = 32 << 20  // of one user, machine or attempt: four of the largest submissions
	userBodies   = 256 << 20 // of all users
	agentBodies  = 256 << 20 // of all machines and attempts: users cannot make them wait
)

// Bodies counts the memory of request bodies.
type Bodies struct {
	most int64 // limit for all callers

	mu  sync.Mutex
	all int64
	of  map[string]int64
}

// NewBodies returns a counter with a limit of most bytes for all callers.
func NewBodies(most int64) *Bodies { return &Bodies{most: most, of: map[string]int64{}} }

// take counts n more bytes for a caller, if there is room.
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

// give releases n bytes of a caller.
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

// errNobody means that a handler read a body before the caller was known: a bug of the server.
var errNobody = errors.New("the sender of the body is unknown")

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

// release releases all bytes of the body.
func (b *patientBody) release() {
	if b.bodies != nil {
		b.bodies.give(b.caller, b.held)
		b.held = 0
	}
}

// attribute counts the body of a request for a caller.
func attribute(r *http.Request, bodies *Bodies, caller string) {
	if b, ok := r.Body.(*patientBody); ok {
		b.bodies, b.caller = bodies, caller
	}
}

// Held returns the bytes held by all callers, and the most of any one caller.
func (b *Bodies) Held() (all, most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.of {
		most = max(most, n)
	}
	return b.all, most
}
