package programapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Every process of the machine reaches the program's API, those of other tasks too, and each connection costs the
// agent a file: without bounds a program that only connects leaves the agent none to report with.
const (
	mostConnections = 256
	headerTime      = 10 * time.Second // for the head of a request
	bodyTime        = 30 * time.Second // and for its body
	restTime        = time.Minute      // between two requests
)

// connections are those that the program's API has open.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
}

// connection is one of them.
type connection struct {
	owner *connections
	since time.Time // it was opened
	known bool      // it has shown the program's token
	rests bool      // between two requests
}

type connectionKey struct{}

// context notes a connection that is opened, and closes another where there are too many: the oldest that has not
// shown the token, then the oldest that rests.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	one := &connection{owner: c, since: time.Now()}
	c.mu.Lock()
	c.open[conn] = one
	drop := c.surplus()
	delete(c.open, drop)
	c.mu.Unlock()
	if drop != nil {
		_ = drop.Close() // nobody waits for it
	}
	return context.WithValue(ctx, connectionKey{}, one)
}

// surplus is a connection to close; nil: there is room. The caller holds mu.
func (c *connections) surplus() (worst net.Conn) {
	if len(c.open) <= mostConnections {
		return nil
	}
	rank := func(n *connection) int {
		switch {
		case !n.known:
			return 2
		case n.rests:
			return 1
		}
		return 0
	}
	for conn, n := range c.open {
		if w := c.open[worst]; w == nil || rank(n) > rank(w) || rank(n) == rank(w) && n.since.Before(w.since) {
			worst = conn
		}
	}
	return worst
}

// state follows what becomes of a connection.
func (c *connections) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == http.StateClosed || s == http.StateHijacked {
		delete(c.open, conn)
	} else if n := c.open[conn]; n != nil {
		n.rests = s == http.StateIdle
	}
}

// proven notes that the request of a context has shown the token.
func proven(ctx context.Context) {
	if n, ok := ctx.Value(connectionKey{}).(*connection); ok {
		n.owner.mu.Lock()
		defer n.owner.mu.Unlock()
		n.known = true
	}
}
