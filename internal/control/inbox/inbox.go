// Package inbox turns the messages of agents into events. It buffers progress and usage that decide nothing, so that
// few events carry many messages.
package inbox

import (
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/engine"
	"scrimp/internal/wire/api"
)

// Latest is the newest status of one rank of an attempt. It may be newer than the rank's last event.
type Latest struct {
	Attempt string
	Node    int

	Heard time.Time // wall time
	Step  api.Step
	Usage api.Usage
	// Trouble describes a current problem on the machine; empty means none.
	Trouble string

	top     int64       // highest message acknowledged for good; 0: the core knows
	said    int64       // highest message that is an event
	put     int64       // highest message in events that are being proposed; 0: none
	told    time.Time   // when progress last became an event, wall time
	used    time.Time   // when usage last became an event, wall time
	taken   int64       // highest message whose progress or usage has been buffered here
	step    api.Message // newest progress that is not an event yet
	values  []heard     // metric values that are not events yet, in order
	decides bool        // one of the values ends the job
	usage   api.Message // newest usage that is not an event yet; CPU is the mean of count reports
	count   int
	noticed bool      // the agent announced an interruption of its machine
	idle    bool      // the last usage event was idle
	low     time.Time // start of the current run of idle reports, wall time; zero: the newest is not idle
	history History
	known   bool       // history has been read from the core
	began   time.Time  // first progress or usage, wall time
	orders  api.Orders // last orders sent to the agent
	ordered time.Time  // when orders were sent, wall time; zero: never
	// proposing holds a value while a goroutine turns the attempt's messages into events, so that no value enters two
	// events.
	proposing chan struct{}
}

// History is what the core knows of the job's metric and an attempt.
type History struct {
	Metric policy.Metric
	Seen   policy.Seen // the metric's history so far
	Trial  bool        // a search waits for each value
	Since  time.Time   // when the attempt was requested, market time: none of its values is older
}

// heard is a value of the job's metric, with the number and wall time of its message.
type heard struct {
	message int64
	at      time.Time
	value   policy.Value
}

// Values returns the metric values of messages in (after, upTo] that are not events yet.
func (l *Latest) Values(after, upTo int64) (list policy.Values) {
	for _, v := range l.values {
		if after < v.message && v.message <= upTo {
			list = append(list, v.value)
		}
	}
	return list
}

// ranks holds the status of an attempt's agents by node; nil means that the agent has not reported.
type ranks []*Latest

// of returns the status of a node's agent; nil means that it has not reported.
func (r ranks) of(node int) *Latest {
	if node < 0 || node >= len(r) {
		return nil
	}
	return r[node]
}

// heard returns the ranks that have reported.
func (r ranks) heard() ranks {
	return slices.DeleteFunc(slices.Clone(r), func(l *Latest) bool { return l == nil })
}

// Config configures an Inbox.
type Config struct {
	Clock   engine.Clock  // dates all events
	Tenant  string        // owner of the log
	Silence time.Duration // how long an agent may be silent, wall time
}

// Inbox holds the recent reports of agents. It is neither event nor state: after a restart the agents report again.
type Inbox struct {
	Config
	mu   sync.Mutex
	by   map[string]ranks // by attempt
	live int              // machines that may still report, as of the last poll
}

// New returns an empty inbox.
func New(c Config) *Inbox { return &Inbox{Config: c, by: map[string]ranks{}} }

// Hear notes that the agent of a rank has reported.
func (in *Inbox) Hear(attempt string, node int, now time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hear(attempt, node, now)
}

// HearReport notes that the agent of a rank has sent a report. several reports whether other ranks of the attempt have
// reported, too.
func (in *Inbox) HearReport(r api.Report, now time.Time) (l *Latest, several bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l = in.hear(r.Attempt, r.Node, now)
	l.Trouble = r.Trouble
	return l, len(in.by[r.Attempt].heard()) > 1
}

// Top returns the highest message acknowledged for good, and whether Learn was called.
func (in *Inbox) Top(l *Latest) (top int64, known bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return l.top, l.known
}

// Learn sets the history of a rank unless it is known.
func (in *Inbox) Learn(l *Latest, h History) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !l.known {
		l.history, l.known = h, true
	}
}

// Orders returns the last orders sent to the agent, and when, wall time; zero means never.
func (in *Inbox) Orders(l *Latest) (api.Orders, time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return l.orders, l.ordered
}

// SetOrders notes which orders are sent to the agent.
func (in *Inbox) SetOrders(l *Latest, o api.Orders, wall time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.orders, l.ordered = o, wall
}

// Live returns the number of machines that may still report, as of the last poll.
func (in *Inbox) Live() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.live
}

// Latest returns the newest status of one rank of the attempt.
func (in *Inbox) Latest(attempt string, node int) (Latest, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l := in.by[attempt].of(node); l != nil {
		return *l, true
	}
	return Latest{}, false
}

// now returns the market time.
func (in *Inbox) now() time.Time { return in.Clock.ToMarket(time.Now()) }

// hear notes that the agent of a rank has reported. The caller holds the lock.
func (in *Inbox) hear(attempt string, node int, now time.Time) *Latest {
	r := in.by[attempt]
	for len(r) <= node {
		r = append(r, nil)
	}
	if r[node] == nil {
		r[node] = &Latest{Attempt: attempt, Node: node, proposing: make(chan struct{}, 1)}
	}
	in.by[attempt] = r
	r[node].Heard = now
	return r[node]
}

// Last returns when the rank last reported; zero means never.
func (in *Inbox) Last(attempt string, node int) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l := in.by[attempt].of(node); l != nil {
		return l.Heard
	}
	return time.Time{}
}

// RanksOf returns the ranks of the attempt that have reported.
func (in *Inbox) RanksOf(attempt string) []*Latest {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.by[attempt].heard()
}

// HearAll marks every agent as heard now.
func (in *Inbox) HearAll(now time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, r := range in.by {
		for _, l := range r.heard() {
			l.Heard = now
		}
	}
}

// Keep drops attempts that are not in living (machines by attempt) and have been silent for a minute.
func (in *Inbox) Keep(living map[string]int, now time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.live = 0
	for _, nodes := range living {
		in.live += nodes
	}
	for attempt, r := range in.by {
		recent := func(l *Latest) bool { return l != nil && now.Sub(l.Heard) <= time.Minute }
		if living[attempt] == 0 && !slices.ContainsFunc(r, recent) {
			delete(in.by, attempt)
		}
	}
}
