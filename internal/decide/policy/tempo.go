package policy

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
)

// Span is some steps and the time that they took, on a machine of speed 1.
type Span struct {
	Steps int64         `json:"steps,omitempty"`
	Time  time.Duration `json:"time_ns,omitempty"`
}

// each is the time of one step, in seconds.
func (s Span) each() float64 { return s.Time.Seconds() / float64(s.Steps) }

// newestSpans is how many spans between two reports are remembered one by one.
const newestSpans = 8

// Tempo is how a program gets its steps done, learned from its reports: the steady pace and
// pauses (validation, a save that waits, a machine that slept) apart. What comes before the
// first report (imports, compilation, caches) is no part of it. The zero Tempo has seen nothing.
type Tempo struct {
	Newest [newestSpans]Span `json:"newest,omitzero"` // the last one last
	Looks  int               `json:"looks,omitempty"` // spans since the pace last changed
	Steady Span              `json:"steady,omitzero"` // their sum, without pauses
	Steps  int64             `json:"steps,omitempty"` // of all of them
	Pauses int               `json:"pauses,omitempty"`
	Paused time.Duration     `json:"paused_ns,omitempty"` // all of them together
	Long   time.Duration     `json:"long_ns,omitempty"`   // the longest
	// Open is what of the last pause reports that come late may still make up for.
	Open time.Duration `json:"open_ns,omitempty"`
}

// A span is taken for one with a pause that took more than pauseFactor times as long as its steps
// usually do, and leastPause longer. The pace has changed where all of the newest spans
// were shiftFactor times as slow, or as fast, as the mean.
const (
	pauseFactor = 2
	leastPause  = time.Second
	shiftFactor = 1.5
)

// A span is cut off here, so that no sum is too large to be counted.
const (
	mostSteps = 1 << 40
	mostTime  = 10_000 * time.Hour
)

// See returns the tempo after another span between two reports, and what of it was steady work.
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

// again is what the newest n spans alone say.
func (p Tempo) again(n int) Tempo {
	q := Tempo{Newest: p.Newest, Looks: n}
	for _, s := range p.Newest[newestSpans-n:] {
		q, _ = q.add(s, p.usual(n, s.Steps))
	}
	return q
}

// usual is the time of so many steps by the median of the newest n spans, the lower one of two.
func (p Tempo) usual(n int, steps int64) time.Duration {
	var each [newestSpans]float64
	for i, s := range p.Newest[newestSpans-n:] {
		each[i] = s.each()
	}
	slices.Sort(each[:n])
	return quantity.Nanoseconds(min(each[(n-1)/2]*float64(steps), 1e9) * float64(time.Second))
}

// shifted reports whether all of the newest spans, of which some were counted otherwise, were
// that much slower than the mean, or faster.
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

// add counts a span whose steps usually take that long.
func (p Tempo) add(s Span, usual time.Duration) (Tempo, Span) {
	steady := s
	switch over := s.Time - usual; {
	case s.Time > pauseFactor*usual && over >= leastPause:
		p.Pauses++
		p.Paused += over
		p.Open, steady.Time = over, usual
		p.Long = max(p.Long, over)
	case p.Open > 0 && s.Time < usual/pauseFactor: // it was not the program that paused, but word of it
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

// Slow reports whether a span took so much longer than its steps usually do that it is one with a pause.
func (p Tempo) Slow(s Span) bool {
	n := min(p.Looks, newestSpans)
	if n == 0 || s.Steps <= 0 {
		return false
	}
	usual := p.usual(n, s.Steps)
	return s.Time > pauseFactor*usual && s.Time-usual >= leastPause
}

// Rate is the steps an hour that are to be expected, with the pauses that come again; 0 where
// nothing was seen. Of the pauses in S steps all but the longest are taken to be the rule of S more:
// one alone says nothing of the next, and a machine that slept once is no validation.
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

// Margin is how much longer pauses may make the steps left, with a probability of no more
// than 1 − promise: those that are the rule, n of mean m, vary in number as a Poisson variable does,
// and one more like the longest may come.
//
//	z(promise) · √(n/S · steps · m² + longest²)
//
// 0 where there was no pause.
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
