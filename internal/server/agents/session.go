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

// Limits of sessions. The server keeps sessions in memory only: a session ends with the server, with its reader and
// with the attempt.
const (
	sessionsOfRank = 4                // at once, per rank
	sessionBuffer  = 1 << 20          // bytes of pending output, and of pending input
	sessionTaken   = 30 * time.Second // until its agent and its reader must have connected
	sessionSilent  = 30 * time.Second // until an agent that sends nothing counts as gone
	sessionPoll    = 5 * time.Second  // how long an agent's poll for input waits
	sessionBeat    = 10 * time.Second // between heartbeats to the reader
	sessionLook    = time.Second      // between looks at whether the attempt still runs
)

// errNoSession means that the session has ended or belongs to another user.
var errNoSession = errors.New("the session is over")

// session is a command with input and output that a user follows while it runs.
type session struct {
	rank, user string
	exec       api.Exec
	given      bool          // its agent has received it
	followed   bool          // its reader has connected
	changed    chan struct{} // closed at each change
	heard      time.Time     // time of the agent's last request

	input    []byte
	taken    int64 // bytes of earlier input, which the agent has
	ended    bool
	told     bool // its agent knows that it has ended
	terminal *api.Terminal

	output []byte
	got    int64 // bytes of output that the agent has sent
	result *api.ExecResult
}

// sessions holds the sessions that have not ended.
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

// change wakes everyone who waits for the session; the caller holds the lock.
func (s *session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// BeginSession starts a session on the machine of a rank, for a user.
func (d *Service) BeginSession(rank, user string, e api.Exec) (id string, err error) {
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
		return "", fmt.Errorf("%d sessions are open on this machine, which is the limit", n)
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

// drop ends a session if the condition holds. Its agent learns it on its next request.
func (a *sessions) drop(id string, where func(*session) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.of[id]; s != nil && where(s) {
		delete(a.of, id)
		s.change()
	}
}

// next returns the sessions that a rank has to start.
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

// end records the result of a session.
func (a *sessions) end(id, rank string, result api.ExecResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.of[id]; s != nil && s.rank == rank && s.result == nil {
		s.output, s.result = append(s.output, result.Output...), &result
		s.change()
	}
}

// FollowSession streams the output of a user's session until the session or ctx ends. The session ends with the
// stream.
func (d *Service) FollowSession(ctx context.Context, id, user string, send func(api.ExecOutput) error) error {
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
	return all.follow(ctx, s, d.Control.Live, send)
}

// follow sends the output of a session, and heartbeats, until the session, its attempt or ctx ends.
func (a *sessions) follow(ctx context.Context, s *session, live func(attempt string) bool,
	send func(api.ExecOutput) error) error {
	var sent time.Time
	for {
		out, changed := a.outputOf(s, live)
		if now := time.Now(); len(out.Output) > 0 || out.Over || now.Sub(sent) >= sessionBeat {
			if err := send(out); err != nil || out.Over {
				return err
			}
			sent = now
		}
		if len(out.Output) > 0 {
			continue
		}
		look := time.NewTimer(sessionLook)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-look.C:
		}
		look.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// outputOf takes the pending output of a session, or its result.
func (a *sessions) outputOf(s *session, live func(attempt string) bool) (out api.ExecOutput, changed chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out.Output, s.output = s.output, nil
	attempt, _, _ := api.ParseRank(s.rank)
	switch {
	case len(out.Output) > 0:
		s.change() // there is room for more output
	case s.result != nil:
		out.Over, out.Exit, out.Error = true, s.result.Exit, s.result.Error
	case !live(attempt):
		out.Over, out.Exit, out.Error = true, 1, "the job's attempt on this machine is over"
	case time.Since(s.heard) > sessionSilent:
		out.Over, out.Exit, out.Error = true, 1, "no answer from the machine"
	}
	return out, s.changed
}

// errSlow means that the command reads its input more slowly than it arrives.
var errSlow = errors.New("the command is not reading its input")

// TypeSession queues input for a user's session. It waits a little for room, and reports whether there was any.
func (d *Service) TypeSession(ctx context.Context, id, user string, in api.ExecInput) (room bool, err error) {
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

// take queues input if there is room; otherwise it returns a channel to wait on.
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

// sessionOfAgent returns the session that the requesting agent runs. It returns nil after it has answered that there is
// none.
func (d *Service) sessionOfAgent(w http.ResponseWriter, r *http.Request) (s *session, offset int64) {
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

// SessionInput sends the agent the input from an offset on. If there is none, it waits a little.
func (d *Service) SessionInput(w http.ResponseWriter, r *http.Request) {
	s, offset := d.sessionOfAgent(w, r)
	if s == nil {
		return
	}
	late := time.NewTimer(sessionPoll)
	defer late.Stop()
	for first := true; ; first = false {
		d.sessions.mu.Lock()
		if had := min(max(0, offset-s.taken), int64(len(s.input))); had > 0 { // drop what the agent has
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

// SessionOutput takes output of a session, and waits until its reader has room for more.
func (d *Service) SessionOutput(w http.ResponseWriter, r *http.Request) {
	s, offset := d.sessionOfAgent(w, r)
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
			if had := s.got - offset; had >= 0 && had < int64(len(b)) { // drop what arrived before
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
