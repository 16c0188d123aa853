package programapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Every process on the machine can connect to the program's API, even those of other tasks, and
// each connection costs the agent a file descriptor. Without limits, a program that only connects
// would leave the agent none for its reports.
const (
	maxConnections = 256
	headerTime     = 10 * time.Second // to read the header of a request
	bodyTime       = 30 * time.Second // to read its body
	restTime       = time.Minute      // between two requests
)

// connections tracks the open connections to the program's API.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
}

// connection is one open connection.
type connection struct {
	owner *connections
	since time.Time // when it was opened
	known bool      // it has presented the program's token
	rests bool      // idle between two requests
}

type connectionKey struct{}

// context registers a new connection. If there are too many, it closes another: the oldest that has
// not presented the token, or else the oldest idle one.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	one := &connection{owner: c, since: time.Now()}
	c.mu.Lock()
	c.open[conn] = one
	drop := c.surplus()
	delete(c.open, drop)
	c.mu.Unlock()
	if drop != nil {
		_ = drop.Close() // no request waits for it
	}
	return context.WithValue(ctx, connectionKey{}, one)
}

// surplus returns a connection to close, or nil if there is room. The caller holds mu.
func (c *connections) surplus() (worst net.Conn) {
	if len(c.open) <= maxConnections {
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

// state updates a connection's state.
func (c *connections) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == http.StateClosed || s == http.StateHijacked {
		delete(c.open, conn)
	} else if n := c.open[conn]; n != nil {
		n.rests = s == http.StateIdle
	}
}

// proven records that the request of ctx presented the token.
func proven(ctx context.Context) {
	if n, ok := ctx.Value(connectionKey{}).(*connection); ok {
		n.owner.mu.Lock()
		defer n.owner.mu.Unlock()
		n.known = true
	}
}
