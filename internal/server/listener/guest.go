package listener

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// mostGuests bounds the connections from the network; see guests.
const mostGuests = 10_000

// guests limits the connections from the network. Above most, it closes the one that has been idle longest, or, if
// none is idle, the newest. So a client that opens connections without requests takes neither the file descriptors
// that the log and the data folder's socket need, nor the place of active clients.
type guests struct {
	most int

	mu      sync.Mutex
	resting *list.List                 // connections without a request, longest first
	at      map[net.Conn]*list.Element // nil: has a request
}

// newGuests reserves half of the process's file descriptors for other uses.
func newGuests() *guests {
	most := mostGuests
	var l syscall.Rlimit
	//nolint:unconvert // its type differs between systems
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil && l.Cur/2 < uint64(most) {
		most = int(l.Cur / 2)
	}
	return &guests{most: max(1, most), resting: list.New(), at: map[net.Conn]*list.Element{}}
}

// state implements http.Server.ConnState.
func (g *guests) state(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	if e := g.at[c]; e != nil {
		g.resting.Remove(e)
	}
	var goes net.Conn
	switch s {
	case http.StateNew, http.StateIdle:
		g.at[c] = g.resting.PushBack(c)
		if first := g.resting.Front(); len(g.at) > g.most && s == http.StateNew {
			goes = first.Value.(net.Conn) //nolint:forcetypeassert // nothing else is in the list
			g.resting.Remove(first)
			delete(g.at, goes)
		}
	case http.StateActive:
		g.at[c] = nil
	case http.StateHijacked, http.StateClosed:
		delete(g.at, c)
	}
	g.mu.Unlock()
	if goes != nil {
		_ = goes.Close() // no need to wait for its end
	}
}
