package front

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// mostGuests is how many connections the network may hold at most; see guests.
const mostGuests = 10_000

// guests counts the connections of the network. Where there are more than most, the
// one goes that has rested longest, and where none rests the newest: who opens
// connections and asks for nothing takes neither the files that the log and the
// data folder's socket need, nor the place of those who ask.
type guests struct {
	most int

	mu      sync.Mutex
	resting *list.List                 // of connections without a request, longest first
	at      map[net.Conn]*list.Element // nil: has a request
}

// newGuests leaves half of the files that this process may open to others than guests.
func newGuests() *guests {
	most := mostGuests
	var l syscall.Rlimit
	//nolint:unconvert // its type differs between systems
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil && l.Cur/2 < uint64(most) {
		most = int(l.Cur / 2)
	}
	return &guests{most: max(1, most), resting: list.New(), at: map[net.Conn]*list.Element{}}
}

// state is an http.Server's ConnState.
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
		_ = goes.Close() // whose end is not waited for
	}
}
