package agents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Limits of sessions. A session lives in the memory of this server only: it ends with it, with its reader, and with
// the attempt.
const (
	sessionsOfRank = 4                // at once
	sessionBuffer  = 1 << 20          // bytes of output, and of input, that wait
	sessionTaken   = 30 * time.Second // until its agent and its reader have come
	sessionSilent  = 30 * time.Second // until an agent that says nothing is given up
	sessionPoll    = 5 * time.Second  // how long an agent waits for input
	sessionBeat    = 10 * time.Second // between signs of life to the reader
)

// errNoSession says that a session is over, or another's.
var errNoSession = errors.New("the session is over")

// session is a command with input that a user follows while it runs.
type session struct {
	rank, user string
	exec       api.Exec
	given      bool          // its agent has it
	followed   bool          // its reader has come
	changed    chan struct{} // is closed at each change
	heard      time.Time     // when its agent asked last

	input    []byte
	taken    int64 // bytes of input before that, which the agent has
	ended    bool
	told     bool // its agent was told that it has ended
	terminal *api.Terminal

	output []byte
	got    int64 // bytes of output that the agent has sent
	result *api.ExecResult
}

// sessions are those that are not over.
type sessions struct {
	mu sync.Mutex
	of map[string]*session
}

// has reports whether the rank has a session of that name.
func (a *sessions) has(id, rank string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of[id]
	return s != nil && s.rank == rank
}

// change wakes who waits for the session; the caller holds the lock.
func (s *session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// BeginSession begins one on the machine of a rank, for a user.
func (d *Desk) BeginSession(rank, user string, e api.Exec) (id string, err error) {
	all := &d.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	n := 0
	for _, s := range all.of {
		if s.rank == rank {
			n++
		}
	}
	if n >= sessionsOfRank {
		return "", fmt.Errorf("%d sessions are open on this machine, which is as many as one has", n)
	}
	if all.of == nil {
		all.of = map[string]*session{}
	}
	e.ID = fmt.Sprintf("s%d-%d", time.Now().UnixNano(), len(all.of))
	all.of[e.ID] = &session{rank: rank, user: user, exec: e, terminal: e.Terminal, changed: make(chan struct{}),
		heard: time.Now()}
	time.AfterFunc(sessionTaken, func() { all.drop(e.ID, func(s *session) bool { return !s.followed }) })
	return e.ID, nil
}

// drop ends a session where that holds: its agent learns it when it asks next.
func (a *sessions) drop(id string, where func(*session) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.of[id]; s != nil && where(s) {
		delete(a.of, id)
		s.change()
	}
}

// next are the sessions that a rank has to begin.
func (a *sessions) next(rank string) (list []api.Exec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.of {
		if s.rank == rank && !s.given {
			s.given, s.heard = true, time.Now()
			list = append(list, s.exec)
		}
	}
	return list
}

// end takes how a session ended.
func (a *sessions) end(id, rank string, result api.ExecResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.of[id]; s != nil && s.rank == rank && s.result == nil {
		s.output, s.result = append(s.output, result.Output...), &result
		s.change()
	}
}

// FollowSession sends a user's session to them until it ends or ctx does; the session ends with it.
func (d *Desk) FollowSession(ctx context.Context, id, user string, send func(api.ExecOutput) error) error {
	all := &d.sessions
	all.mu.Lock()
	s := all.of[id]
	if s == nil || s.user != user || s.followed {
		all.mu.Unlock()
		return errNoSession
	}
	s.followed = true
	all.mu.Unlock()
	defer all.drop(id, func(*session) bool { return true })
	for {
		out, changed := all.outputOf(s, d.Control.Live)
		if err := send(out); err != nil || out.Over {
			return err
		}
		if len(out.Output) > 0 {
			continue
		}
		beat := time.NewTimer(sessionBeat)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-beat.C:
		}
		beat.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// outputOf takes what a session has printed since, or how it ended.
func (a *sessions) outputOf(s *session, live func(attempt string) bool) (out api.ExecOutput, changed chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out.Output, s.output = s.output, nil
	attempt, _, _ := api.ParseRank(s.rank)
	switch {
	case len(out.Output) > 0:
		s.change() // there is room for more
	case s.result != nil:
		out.Over, out.Exit, out.Error = true, s.result.Exit, s.result.Error
	case !live(attempt):
		out.Over, out.Exit, out.Error = true, 1, "the job's attempt on this machine is over"
	case time.Since(s.heard) > sessionSilent:
		out.Over, out.Exit, out.Error = true, 1, "no answer from the machine"
	}
	return out, s.changed
}

// errSlow says that a session's command does not read its input as fast as it comes.
var errSlow = errors.New("the command does not read its input now")

// TypeSession takes input for a user's session. It waits a little for room, and reports whether there was any.
func (d *Desk) TypeSession(ctx context.Context, id, user string, in api.ExecInput) (room bool, err error) {
	late := time.NewTimer(sessionPoll)
	defer late.Stop()
	for {
		changed, err := d.sessions.take(id, user, in)
		if !errors.Is(err, errSlow) {
			return true, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-late.C:
			return false, nil
		case <-changed:
		}
	}
}

// take takes input where there is room for it, else says what to wait for.
func (a *sessions) take(id, user string, in api.ExecInput) (changed chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of[id]
	switch {
	case s == nil || s.user != user || s.result != nil:
		return nil, errNoSession
	case len(s.input)+len(in.Input) > sessionBuffer:
		return s.changed, errSlow
	}
	s.input, s.ended = append(s.input, in.Input...), s.ended || in.End
	if in.Terminal != nil && s.terminal != nil {
		s.terminal = in.Terminal
	}
	s.change()
	return nil, nil
}

// ofAgent is the session that the agent who asks runs; s is nil where it was answered that there is none.
func (d *Desk) ofAgent(w http.ResponseWriter, r *http.Request) (s *session, offset int64) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return nil, 0
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		reply.FieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes", "give how many were sent",
			err)
		return nil, 0
	}
	d.sessions.mu.Lock()
	defer d.sessions.mu.Unlock()
	if s = d.sessions.of[r.PathValue("id")]; s == nil || s.rank != api.Rank(attempt, node) {
		reply.Problem(w, http.StatusNotFound, errNoSession.Error(), "end its program", nil)
		return nil, 0
	}
	s.heard = time.Now()
	return s, offset
}

// SessionInput gives the agent what was typed from an offset on, and waits for it a little.
func (d *Desk) SessionInput(w http.ResponseWriter, r *http.Request) {
	s, offset := d.ofAgent(w, r)
	if s == nil {
		return
	}
	late := time.NewTimer(sessionPoll)
	defer late.Stop()
	for first := true; ; first = false {
		d.sessions.mu.Lock()
		if had := min(max(0, offset-s.taken), int64(len(s.input))); had > 0 { // the agent has those
			s.input, s.taken = s.input[had:], s.taken+had
			s.change()
		}
		in := api.SessionInput{Input: s.input, End: s.ended, Terminal: s.terminal}
		changed, over, news := s.changed, d.sessions.of[s.exec.ID] != s, len(s.input) > 0 || s.ended && !s.told
		s.told = s.told || news && s.ended
		d.sessions.mu.Unlock()
		if over {
			reply.Problem(w, http.StatusNotFound, errNoSession.Error(), "end its program", nil)
			return
		}
		if news || !first {
			reply.JSON(w, in)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-late.C:
		}
	}
}

// SessionOutput takes what a session has printed, and waits until its reader has room for more.
func (d *Desk) SessionOutput(w http.ResponseWriter, r *http.Request) {
	s, offset := d.ofAgent(w, r)
	if s == nil {
		return
	}
	b, ok := reply.Bytes(w, r, sessionBuffer)
	if !ok {
		return
	}
	late := time.NewTimer(sessionPoll)
	defer late.Stop()
	for full := true; full; {
		d.sessions.mu.Lock()
		if full = len(s.output) >= sessionBuffer; !full {
			if had := s.got - offset; had >= 0 && had < int64(len(b)) { // what came twice is there once
				s.output, s.got = append(s.output, b[had:]...), offset+int64(len(b))
				s.change()
			}
		}
		changed := s.changed
		d.sessions.mu.Unlock()
		if !full {
			break
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-late.C:
			w.Header().Set("Retry-After", "1")
			reply.Problem(w, http.StatusServiceUnavailable, "the reader is slow", "send it again", nil)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
