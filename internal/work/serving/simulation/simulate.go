package simulation

import (
	"math/bits"
	"slices"
	"time"

	"scrimp/internal/work/serving/load"
)

// A Service says how long a server takes for the n requests from first on, answered together.
type Service interface {
	Time(first, n int) time.Duration
}

// TooLate is where the clock of a simulation ends, 1,100 days after the longest window. A rule that has not
// answered the trace by then has far too few machines.
const TooLate = 1500 * 24 * time.Hour

// Never is the time of an event that does not come.
const Never = time.Duration(1<<63 - 1)

// machine is the state of one machine.
type machine struct {
	on, booting bool
	from        time.Duration // since when it is rented
	busy        int           // of its servers
	idleSince   time.Duration
	expires     bool // an event that may stop it is due
}

// Simulation plays a trace. It keeps its memory from one run to the next.
type Simulation struct {
	Trace   load.Trace
	service Service
	slots   int
	targets []Target

	rule      Rule
	out       Outcome
	now       time.Duration
	next      int // request that arrives next
	head      int // oldest request that waits
	inService int
	machines  []machine
	count     int      // machines that are rented
	idle      []uint64 // servers without a request, one bit each
	events    heap
	timer     time.Duration // when the oldest request has waited long enough
	tick      time.Duration // of the next decision to start machines
	hour      time.Duration // when the hour of the day changes
	floor     int           // machines at least, now
	latency   []time.Duration
	waited    float64
	missed    []int
	finished  time.Duration
}

// NewSimulation returns a simulation of a trace on machines that answer slots batches at a time each. A run stops once
// it cannot meet the targets any more; without targets it plays the whole trace.
func NewSimulation(t load.Trace, s Service, slots int, targets []Target) *Simulation {
	return &Simulation{Trace: t, service: s, slots: slots, targets: targets, latency: make([]time.Duration, len(t.At))}
}

// Run plays the trace under a rule. It is exact: each arrival, answer, start and stop is an event at its own time.
func (s *Simulation) Run(r Rule) Outcome {
	s.reset(r)
	for !s.out.Stopped {
		t := s.due()
		if t == Never || s.out.Requests == len(s.Trace.At) && t > max(s.Trace.Window, s.finished) {
			break
		}
		s.now = t
		s.step()
	}
	s.close()
	return s.out
}

func (s *Simulation) reset(r Rule) {
	*s = Simulation{Trace: s.Trace, service: s.service, slots: s.slots, targets: s.targets, rule: r,
		machines: make([]machine, r.Max), idle: make([]uint64, (r.Max*s.slots+63)/64), latency: s.latency,
		events: s.events[:0], timer: Never, tick: Never, hour: Never, missed: make([]int, len(s.targets)),
		out: Outcome{Rule: r, Slots: s.slots}}
	for i := range s.latency {
		s.latency[i] = -1
	}
	s.floor = r.Min
	if r.WarmMin > 0 {
		s.turn()
	}
	for m := range s.floor { // these are ready when the window begins
		s.count++
		s.machines[m] = machine{on: true}
		s.free(m)
	}
}

// due returns the time of the next event.
func (s *Simulation) due() time.Duration {
	t := min(s.timer, s.tick, s.hour)
	if len(s.events) > 0 {
		t = min(t, s.events[0].at)
	}
	if s.next < len(s.Trace.At) {
		t = min(t, s.Trace.At[s.next])
	}
	return t
}

// step does all that is due now: first what frees servers, then arrivals, then what machines do without requests. A
// machine stops only after the requests that are there were given out, so that each that starts answers one.
func (s *Simulation) step() {
	for len(s.events) > 0 && s.events[0].at == s.now && s.events[0].kind != expired {
		s.handle(s.events.pop())
	}
	for s.next < len(s.Trace.At) && s.Trace.At[s.next] == s.now {
		s.next++
	}
	if s.hour == s.now {
		s.turn()
	}
	s.dispatch()
	for len(s.events) > 0 && s.events[0].at == s.now && s.events[0].kind == expired {
		s.handle(s.events.pop())
	}
	if s.tick == s.now {
		s.tick = Never
		s.scale()
	}
	if s.tick == Never && s.count < s.wanted() {
		if p := s.rule.Poll; p > 0 {
			s.tick = (s.now/p + 1) * p
		} else {
			s.scale()
		}
	}
}

// handle does what an event says.
func (s *Simulation) handle(e event) {
	switch e.kind {
	case answered:
		s.inService -= e.n
		s.answered(e.id)
	case booted:
		s.machines[e.id].on, s.machines[e.id].booting = true, false
		s.free(e.id)
	case expired:
		s.expire(e.id)
	}
}

// dispatch gives waiting requests to idle servers, the lowest first, so that the highest become idle.
func (s *Simulation) dispatch() {
	s.timer = Never
	for s.head < s.next && !s.out.Stopped {
		n := s.next - s.head
		ripe := s.Trace.At[s.head] + s.rule.Wait
		if n < s.rule.Batch && s.now < ripe {
			if s.lowest() >= 0 {
				s.timer = ripe
			}
			return
		}
		server := s.lowest()
		if server < 0 {
			return
		}
		s.serve(server, min(n, s.rule.Batch))
	}
}

func (s *Simulation) lowest() int {
	for w, word := range s.idle {
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

func (s *Simulation) serve(server, n int) {
	took := max(0, s.service.Time(s.head, n))
	if took > TooLate-s.now {
		s.out.Stopped = true
		return
	}
	s.idle[server/64] &^= 1 << (server % 64)
	s.machines[server/s.slots].busy++
	s.inService += n
	done := s.now + took
	s.finished = max(s.finished, done)
	s.out.Batches++
	s.out.Busy += took
	if s.out.Busy < 0 {
		s.out.Busy = Never
	}
	for i := s.head; i < s.head+n; i++ {
		if s.latency[i] >= 0 {
			panic("serving: a request was answered twice") // a bug of ours
		}
		s.latency[i] = done - s.Trace.At[i]
		s.waited += (s.now - s.Trace.At[i]).Seconds()
		for k, t := range s.targets {
			if s.latency[i] > t.Limit {
				s.missed[k]++
				s.out.Stopped = s.out.Stopped || s.missed[k] > t.allowed(len(s.Trace.At))
			}
		}
	}
	s.head += n
	s.out.Requests += n
	s.events.push(event{at: done, kind: answered, id: server, n: n})
}

func (s *Simulation) answered(server int) {
	m := server / s.slots
	s.idle[server/64] |= 1 << (server % 64)
	s.machines[m].busy--
	if s.machines[m].busy == 0 {
		s.machines[m].idleSince = s.now
		s.arm(m)
	}
}

// free marks all servers of a machine as idle.
func (s *Simulation) free(m int) {
	for server := m * s.slots; server < (m+1)*s.slots; server++ {
		s.idle[server/64] |= 1 << (server % 64)
	}
	s.machines[m].idleSince = s.now
	s.arm(m)
}

// arm makes sure that an event looks at an idle machine once it was idle for long enough.
func (s *Simulation) arm(m int) {
	v := &s.machines[m]
	if !s.rule.Elastic() || v.expires {
		return
	}
	v.expires = true
	s.events.push(event{at: max(s.now, v.idleSince+s.rule.Keep), kind: expired, id: m})
}

// expire stops a machine that was idle for long enough, unless it is one of those that stay.
func (s *Simulation) expire(m int) {
	v := &s.machines[m]
	v.expires = false
	switch {
	case !v.on || v.busy > 0:
	case v.idleSince+s.rule.Keep > s.now: // it worked in between
		s.arm(m)
	case s.count <= s.floor:
	case s.head < s.next && s.count == 1: // requests wait for their batch, which this machine answers
	default:
		s.out.Spans = append(s.out.Spans, Span{v.from, s.now})
		v.on = false
		s.count--
		for server := m * s.slots; server < (m+1)*s.slots; server++ {
			s.idle[server/64] &^= 1 << (server % 64)
		}
	}
}

// wanted returns the machines that the requests in the system ask for: a batch for each server.
func (s *Simulation) wanted() int {
	if !s.rule.Elastic() {
		return s.count
	}
	each := s.rule.Batch * s.slots
	in := s.next - s.head + s.inService
	return min(s.rule.Max, max(s.floor, (in+each-1)/each))
}

// scale starts machines until there are as many as are wanted.
func (s *Simulation) scale() {
	for m := 0; m < len(s.machines) && s.count < s.wanted(); m++ {
		v := &s.machines[m]
		if v.on || v.booting {
			continue
		}
		v.booting, v.from = true, s.now
		s.count++
		s.out.Colds++
		s.events.push(event{at: s.now + s.rule.Cold, kind: booted, id: m})
	}
}

// turn sets how many machines there are at least in this hour of the day.
func (s *Simulation) turn() {
	clock := s.Trace.Start + s.now
	s.hour = (clock/time.Hour+1)*time.Hour - s.Trace.Start
	before := s.floor
	s.floor = s.rule.Min
	if s.rule.Warm.Has(int(clock / time.Hour % 24)) {
		s.floor = max(s.floor, s.rule.WarmMin)
	}
	for m := range s.machines {
		if s.floor < before && s.machines[m].on && s.machines[m].busy == 0 {
			s.arm(m)
		}
	}
}

// close ends the spans and sums up. A machine that may stop runs to its stop, also after the end of the window: it is
// paid until then. Machines that the rule keeps are paid until the end.
func (s *Simulation) close() {
	s.out.End = max(s.Trace.Window, s.finished)
	for s.rule.Elastic() && !s.out.Stopped && len(s.events) > 0 {
		e := s.events.pop()
		s.now = e.at
		s.handle(e)
	}
	for _, m := range s.machines {
		if m.on || m.booting {
			s.out.Spans = append(s.out.Spans, Span{m.from, max(s.out.End, m.from)})
		}
	}
	if s.out.Stopped {
		return
	}
	n := len(s.latency)
	sum := 0.0
	for _, l := range s.latency {
		sum += l.Seconds()
	}
	s.out.Mean = time.Duration(sum / float64(n) * 1e9)
	s.out.Waited = time.Duration(s.waited / float64(n) * 1e9)
	slices.Sort(s.latency)
	s.out.Quantiles = map[int]time.Duration{}
	for _, q := range quantiles {
		s.out.Quantiles[q] = s.latency[rank(q, n)-1]
	}
}
