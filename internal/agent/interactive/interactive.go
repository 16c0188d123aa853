// Package interactive runs the program of a session: a shell with a terminal that users attach, or Jupyter. It knows
// whether anybody or anything uses the session, and warns its users before the session ends.
package interactive

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"scrimp/internal/agent/session"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
)

// Kinds of sessions.
const (
	Shell    = "shell"
	Notebook = "notebook"
)

// Variables by which a user's commands beside a notebook find it.
const (
	PortVariable  = "SCRIMP_NOTEBOOK_PORT"
	TokenVariable = "JUPYTER_TOKEN"
)

// runShell starts the best shell of the machine.
const runShell = `command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i`

// runNotebook starts Jupyter in the work folder, at a port that only this machine reaches.
const runNotebook = `set -- --no-browser --ip=127.0.0.1 "--port=$SCRIMP_NOTEBOOK_PORT" --ServerApp.port_retries=0
[ "$(id -u)" = 0 ] && set -- "$@" --allow-root
for p in jupyter-lab jupyter-notebook jupyter-server; do
	command -v "$p" >/dev/null 2>&1 && exec "$p" "$@"
done
echo "scrimp: Jupyter is not installed on this machine: begin the session with --setup 'pip install jupyterlab'," \
	"or in an --image that has it" >&2
exit 127`

// Seat is the session of an attempt. It is nil for an attempt that is not a session; the methods of nil do nothing.
type Seat struct {
	kind    string
	job     string
	grace   time.Duration // between a stop and the kill
	idle    time.Duration // how long the session may be idle; 0: without limit
	now     func() time.Time
	console *session.Console // of a shell
	copied  chan struct{}    // closed once the console has all output
	over    chan struct{}    // closed once the program has ended
	address string           // of the notebook
	token   string           // of the notebook

	mu       sync.Mutex
	typed    bool      // since the last measurement
	conns    int       // open forwarded connections
	idleFrom time.Time // zero: in use
	warned   bool      // that the idle session ends soon
	spending spending
	warnedAt time.Duration // the last warning of warnBefore; 0: none
}

// New returns the seat of a task, or nil if the task is not a session.
func New(a *api.Assignment, now func() time.Time) *Seat {
	if a.Session == "" {
		return nil
	}
	return &Seat{kind: a.Session, job: a.Job, grace: a.Grace, idle: a.Idle, now: now, over: make(chan struct{}),
		copied: make(chan struct{}), idleFrom: now()}
}

// Program returns what to start, its environment, and its terminal, which is nil for a notebook.
func (s *Seat) Program(env []string, user int) (args, with []string, terminal *os.File, err error) {
	switch s.kind {
	case Shell:
		if s.console, err = session.OpenConsole(user); err != nil {
			return nil, nil, nil, fmt.Errorf("open a terminal: %w", err)
		}
		env = append(env, "TERM=xterm-256color", "HISTFILE=") // commands of a session do not stay on the machine
		return []string{"/bin/sh", "-c", runShell}, env, s.console.Terminal(), nil
	case Notebook:
		port, err := freePort()
		if err != nil {
			return nil, nil, nil, fmt.Errorf("find a free port for Jupyter: %w", err)
		}
		s.address, s.token = net.JoinHostPort("127.0.0.1", port), strings.ToLower(rand.Text())
		env = append(env, PortVariable+"="+port, TokenVariable+"="+s.token)
		return []string{"/bin/sh", "-c", runNotebook}, env, nil, nil
	}
	return nil, nil, nil, fmt.Errorf("this agent knows no session of kind %q: it is older than its server", s.kind)
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}

// Started collects the output of the program, which has its terminal now.
func (s *Seat) Started() {
	if s == nil || s.console == nil {
		return
	}
	go func() {
		defer close(s.copied)
		s.console.Run()
	}()
}

// Ended disconnects users from the program, which has ended.
func (s *Seat) Ended() {
	if s == nil {
		return
	}
	if s.console != nil {
		s.console.Close()
		<-s.copied
	}
	close(s.over)
}

// Within returns a context that ends with ctx or once the program has ended, so that commands beside it do not change
// its files while they are saved. Without a session the context ends with ctx only.
func (s *Seat) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s != nil {
		go func() {
			select {
			case <-ctx.Done():
			case <-s.over:
				cancel()
			}
		}()
	}
	return ctx, cancel
}

// Console returns the terminal of a shell; nil: there is none.
func (s *Seat) Console() *session.Console {
	if s == nil {
		return nil
	}
	return s.console
}

// Typed records input of a user.
func (s *Seat) Typed() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed = true
}

// Connected records forwarded connections that were opened or closed.
func (s *Seat) Connected(change int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns += change
	s.typed = true // counts even if the connection has ended by now
}

// InUse reports whether the session was used since the last call, by a user or by its programs; nil: not a session. It
// warns users of a session that ends soon because nobody uses it.
func (s *Seat) InUse(ctx context.Context, u api.Usage) *bool {
	if s == nil {
		return nil
	}
	busy := u.CPU >= state.IdleBelow || u.GPU != nil && *u.GPU >= state.GPUIdleBelow || s.kernelBusy(ctx)
	s.mu.Lock()
	busy = busy || s.typed || s.conns > 0
	s.typed = false
	warning := s.warnIdle(busy)
	s.mu.Unlock()
	if warning != "" {
		s.say(warning)
	}
	return &busy
}

// warnIdle returns a warning if the session ends soon. The caller holds the lock.
func (s *Seat) warnIdle(busy bool) string {
	now := s.now()
	switch {
	case busy:
		s.idleFrom, s.warned = time.Time{}, false
	case s.idleFrom.IsZero():
		s.idleFrom = now
	case s.idle > 0 && !s.warned && now.Sub(s.idleFrom) >= s.idle-lead(s.idle):
		left := max(0, s.idle-now.Sub(s.idleFrom)).Round(time.Second)
		s.warned = true
		return fmt.Sprintf("nobody uses this session: in %v scrimp saves its files and ends it, unless it is used", left)
	}
	return ""
}

// lead is how long before the end of an idle session its users are warned.
func lead(idle time.Duration) time.Duration { return min(idle/4, 2*time.Minute) }

// warnBefore lists how long before the budget is spent users are warned.
var warnBefore = []time.Duration{20 * time.Second, 2 * time.Minute}

// rateSpan is the shortest time over which the agent measures how fast a session spends its budget.
const rateSpan = time.Second

// Budget warns users some minutes, and again shortly, before the budget is spent. The server has already
// subtracted the cost of the grace.
func (s *Seat) Budget(o api.Orders) {
	if s == nil || o.BudgetLeft == "" {
		return
	}
	left, err := money.Parse(o.BudgetLeft)
	spent, wrong := money.Parse(o.Spent)
	if err != nil || wrong != nil {
		return // the server's amounts are valid
	}
	s.mu.Lock()
	lasts, known := s.spending.lasts(s.now(), left, spent)
	lasts -= s.grace
	warning := ""
	for _, before := range warnBefore {
		if known && lasts <= before && (s.warnedAt == 0 || before < s.warnedAt) {
			s.warnedAt = before
			warning = fmt.Sprintf("the budget of %s is spent in about %v: then scrimp saves the files and ends the session, "+
				"unless scrimp update %s --budget gives it more", money.Short(left.Add(spent), money.Currency(o.Currency)),
				max(0, lasts).Round(time.Second), s.job)
			break
		}
	}
	s.mu.Unlock()
	if warning != "" {
		s.say(warning)
	}
}

// spending measures how fast a session spends its budget.
type spending struct {
	at    time.Time
	spent money.Amount // at that time
}

// lasts returns how long the rest of a budget lasts at the present rate; known is false if that is unknown.
func (p *spending) lasts(now time.Time, left, spent money.Amount) (d time.Duration, known bool) {
	if p.at.IsZero() {
		*p = spending{now, spent}
	}
	span, rate := now.Sub(p.at), 0.0
	if span >= rateSpan {
		rate = spent.Sub(p.spent).Float() / span.Seconds() // a statistic: it decides on a warning only
	}
	if rate <= 0 {
		return 0, false
	}
	return time.Duration(min(left.Float()/rate, maxLasts.Seconds()) * float64(time.Second)), true
}

// maxLasts bounds the time that a warning says the budget still lasts.
const maxLasts = 10 * 365 * 24 * time.Hour

// Stopping tells users why the session ends.
func (s *Seat) Stopping(why string) {
	if s != nil {
		s.say("scrimp saves the files of this session and leaves the machine: " + strings.ReplaceAll(why, "_", " "))
	}
}

// say shows users a line, if they have a terminal.
func (s *Seat) say(line string) {
	if s.console != nil {
		s.console.Say(line)
	}
}
