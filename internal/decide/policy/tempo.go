package policy

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
)

// Span is a number of steps and the time they took on a machine of speed 1.
type Span struct {
	Steps int64         `json:"steps,omitempty"`
	Time  time.Duration `json:"time_ns,omitempty"`
}

// each is the time of one step in seconds.
func (s Span) each() float64 { return s.Time.Seconds() / float64(s.Steps) }

// newestSpans is the number of spans between reports that are remembered individually.
const newestSpans = 8

// Tempo is how a program makes its steps, learned from its reports: the steady pace, and separately pauses
// (validation, a blocking save, a machine that slept). What comes before the first report (imports, compilation,
// caches) is not included. The zero Tempo has observed nothing.
type Tempo struct {
	Newest [newestSpans]Span `json:"newest,omitzero"` // the newest last
	Looks  int               `json:"looks,omitempty"` // spans since the pace last changed
	Steady Span              `json:"steady,omitzero"` // their sum, without pauses
	Steps  int64             `json:"steps,omitempty"` // of all of them
	Pauses int               `json:"pauses,omitempty"`
	Paused time.Duration     `json:"paused_ns,omitempty"` // sum of all pauses
	Long   time.Duration     `json:"long_ns,omitempty"`   // the longest pause
	// Open is the part of the last pause that delayed reports may still make up for.
	Open time.Duration `json:"open_ns,omitempty"`
}

// A span includes a pause if it took more than pauseFactor times as long as its steps usually take, and at least
// leastPause longer. The pace has changed if all of the newest spans were slower, or faster, than the mean by
// shiftFactor.
const (
	pauseFactor = 2
	leastPause  = time.Second
	shiftFactor = 1.5
)

// Limits of a span, so that sums do not overflow.
const (
	mostSteps = 1 << 40
	mostTime  = 10_000 * time.Hour
)

// See returns the tempo after another span between two reports, and the steady part of that span.
func (p Tempo) See(s Span) (Tempo, Span) {
	if s.Steps <= 0 || s.Time <= 0 {
		return p, Span{}
	}
	s = Span{min(s.Steps, mostSteps), min(s.Time, mostTime)}
	copy(p.Newest[:], p.Newest[1:])
	p.Newest[newestSpans-1] = s
	if p.Looks < newestSpans || p.shifted() {
		p = p.again(min(p.Looks+1, newestSpans))
		return p, Span{s.Steps, min(s.Time, p.usual(p.Looks, s.Steps))}
	}
	p.Looks++
	return p.add(s, p.usual(newestSpans, s.Steps))
}

// again returns the tempo of the newest n spans alone.
func (p Tempo) again(n int) Tempo {
	q := Tempo{Newest: p.Newest, Looks: n}
	for _, s := range p.Newest[newestSpans-n:] {
		q, _ = q.add(s, p.usual(n, s.Steps))
	}
	return q
}

// usual is the time of that many steps by the lower median of the newest n spans.
func (p Tempo) usual(n int, steps int64) time.Duration {
	var each [newestSpans]float64
	for i, s := range p.Newest[newestSpans-n:] {
		each[i] = s.each()
	}
	slices.Sort(each[:n])
	return quantity.Nanoseconds(min(each[(n-1)/2]*float64(steps), 1e9) * float64(time.Second))
}

// shifted reports whether all of the newest spans were slower than the mean, or faster, by shiftFactor.
func (p Tempo) shifted() bool {
	mean, slower, faster := p.Steady.each(), 0, 0
	for _, s := range p.Newest {
		switch x := s.each(); {
		case x > mean*shiftFactor:
			slower++
		case x < mean/shiftFactor:
			faster++
		}
	}
	return slower == newestSpans || faster == newestSpans
}

// add counts a span whose steps usually take the given time.
func (p Tempo) add(s Span, usual time.Duration) (Tempo, Span) {
	steady := s
	switch over := s.Time - usual; {
	case s.Time > pauseFactor*usual && over >= leastPause:
		p.Pauses++
		p.Paused += over
		p.Open, steady.Time = over, usual
		p.Long = max(p.Long, over)
	case p.Open > 0 && s.Time < usual/pauseFactor: // the reports were delayed; the program did not pause
		back := min(p.Open, usual-s.Time)
		if p.Long == p.Open {
			p.Long -= back
		}
		p.Open -= back
		p.Paused -= back
		steady.Time += back
		if p.Open < leastPause {
			p.Pauses--
			p.Paused -= p.Open
			p.Long = min(p.Long, p.Paused)
			p.Open = 0
		}
	default:
		p.Open = 0
	}
	p.Steps += s.Steps
	p.Steady = Span{p.Steady.Steps + steady.Steps, p.Steady.Time + steady.Time}
	return p, steady
}

// Slow reports whether a span is so much longer than its steps usually take that it includes a pause.
func (p Tempo) Slow(s Span) bool {
	n := min(p.Looks, newestSpans)
	if n == 0 || s.Steps <= 0 {
		return false
	}
	usual := p.usual(n, s.Steps)
	return s.Time > pauseFactor*usual && s.Time-usual >= leastPause
}

// Rate is the expected number of steps per hour, including recurring pauses; 0 if nothing was observed. In S
// observed steps, all pauses but the longest are assumed to recur in S more: a single pause does not predict the
// next, and a machine that slept once is not a validation.
//
//	1 / (steady time a step + (all pauses − the longest) / S)
func (p Tempo) Rate() float64 {
	if p.Looks == 0 || p.Steady.Steps == 0 {
		return 0
	}
	each := p.Steady.each()
	if p.Pauses > 1 {
		each += (p.Paused - p.Long).Seconds() / float64(p.Steps)
	}
	if each <= 0 {
		return 0
	}
	return 3600 / each
}

// Margin is how much longer pauses may make the remaining steps, exceeded with a probability of at most 1 −
// promise. Recurring pauses, n of mean m, vary in number like a Poisson variable, and one more like the longest may
// come.
//
//	z(promise) · √(n/S · steps · m² + longest²)
//
// It is 0 if there was no pause.
func (p Tempo) Margin(steps int64, promise float64) time.Duration {
	if p.Pauses < 1 || p.Steps < 1 || steps <= 0 || promise <= 0.5 || promise >= 1 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*promise-1)
	rule := 0.0
	if n := float64(p.Pauses - 1); n > 0 {
		mean := (p.Paused - p.Long).Seconds() / n
		rule = n / float64(p.Steps) * float64(steps) * mean * mean
	}
	d := z * math.Sqrt(rule+p.Long.Seconds()*p.Long.Seconds())
	return time.Duration(quantity.Int(min(d, 1e9))) * time.Second
}
