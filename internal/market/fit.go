package market

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Model is a semi-Markov model of a market, fitted to a trace. An offer stays available or unavailable for a time drawn
// from the observed times, independently of the past, and its price changes by a step drawn from the observed steps.
// Draws interpolate between observed values instead of using a formula, so heavy tails stay heavy.
type Model struct {
	name     string
	currency money.Currency
	speed    float64
	lines    []modelLine
}

type modelLine struct {
	offer   Offer
	always  bool // it was always available
	open    bool // whether it was available at the start
	up      []time.Duration
	down    []time.Duration
	notices []time.Duration
	dwell   []time.Duration // durations of a price
	steps   []float64       // the price relative to the previous one
	low     money.Rate
	high    money.Rate
	first   money.Rate
}

// Fit fits a model to a trace. length is how much of the trace to use; 0 means all of it. Periods that the end cuts off
// are ignored unless there are no others.
func Fit(t Trace, length time.Duration) Model {
	m := Model{name: t.Name, currency: t.Currency, speed: t.Speed}
	if length <= 0 {
		length = t.Repeat
	}
	if length <= 0 {
		for _, l := range t.Lines {
			for _, s := range l.Available {
				length = max(length, s.To)
			}
			for _, p := range l.Price {
				length = max(length, p.At)
			}
		}
	}
	for _, l := range t.Lines {
		m.lines = append(m.lines, fitLine(l, length))
	}
	return m
}

// fitLine adds what the trace shows of one offer: how long it was available and unavailable, and how its price moved.
func fitLine(l TraceLine, length time.Duration) modelLine {
	f := modelLine{offer: l.Offer, always: l.Available == nil, open: true}
	if l.Available != nil {
		f.fitSpans(l.Available, length)
	}
	for i, p := range l.Price {
		if i == 0 {
			f.first, f.low, f.high = p.Rate, p.Rate, p.Rate
			continue
		}
		before := l.Price[i-1]
		f.dwell = append(f.dwell, p.At-before.At)
		f.steps = append(f.steps, p.Rate.Float()/before.Rate.Float())
		f.low, f.high = min(f.low, p.Rate), max(f.high, p.Rate)
	}
	for _, list := range [][]time.Duration{f.up, f.down, f.dwell} {
		slices.Sort(list)
	}
	return f
}

// fitSpans adds the spans in which an offer was available, and the gaps between them.
func (f *modelLine) fitSpans(spans []Span, length time.Duration) {
	last := time.Duration(0)
	for i, s := range spans {
		from, to := min(s.From, length), min(s.To, length)
		if from > last {
			if i == 0 {
				f.open = false
			}
			f.down = append(f.down, from-last)
		}
		if to > from && (to < length || len(f.up) == 0) {
			f.up = append(f.up, to-from)
			f.notices = append(f.notices, s.Notice)
		}
		last = to
	}
	if last < length && (len(f.down) == 0 || len(spans) == 0) {
		f.down = append(f.down, length-last)
	}
	if len(f.up) == 0 {
		f.open = false
	}
}

// Generate draws a market of the given length, which then repeats. It is deterministic in seed.
func (m Model) Generate(length time.Duration, seed uint64) (Trace, error) {
	if length < time.Minute {
		return Trace{}, fmt.Errorf("length: %v is too short for a market: give a minute or more", length)
	}
	t := Trace{Name: fmt.Sprintf("%s, drawn %d", strings.TrimSpace(m.name), seed), Currency: m.currency, Speed: m.speed,
		Repeat: length}
	for i, f := range m.lines {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+0x67656e))
		l := TraceLine{Offer: f.offer, Price: f.prices(rng, length)}
		if !f.always {
			l.Available = f.spans(rng, length)
		}
		t.Lines = append(t.Lines, l)
	}
	return t, nil
}

func (f modelLine) spans(rng *rand.Rand, length time.Duration) []Span {
	list := []Span{} // not nil, because the offer is not always available
	if len(f.up) == 0 {
		return list
	}
	open := f.open
	if len(f.down) > 0 {
		open = rng.Float64() < share(f.up, f.down)
	}
	for at := time.Duration(0); at < length; open = !open {
		d := length
		switch {
		case open:
			d = quantile(f.up, rng.Float64())
		case len(f.down) > 0:
			d = quantile(f.down, rng.Float64())
		default:
			d = time.Minute // no unavailable period was observed
		}
		d = max(d.Truncate(time.Second), time.Second)
		to := min(at+d, length)
		if open {
			list = append(list, Span{From: at, To: to, Notice: f.notices[rng.IntN(len(f.notices))]})
		}
		at = to
	}
	return list
}

func share(up, down []time.Duration) float64 {
	var u, d time.Duration
	for _, x := range up {
		u += x / time.Duration(len(up))
	}
	for _, x := range down {
		d += x / time.Duration(len(down))
	}
	return float64(u) / float64(u+d)
}

// prices walks between the lowest and the highest observed price.
func (f modelLine) prices(rng *rand.Rand, length time.Duration) []Price {
	list := []Price{{Rate: f.first}}
	if len(f.steps) == 0 {
		return list
	}
	rate := f.first
	for at := quantile(f.dwell, rng.Float64()); at < length; at += max(quantile(f.dwell, rng.Float64()), time.Second) {
		next := money.Rate(float64(rate) * f.steps[rng.IntN(len(f.steps))])
		next = min(max(next, f.low), f.high)
		if at = at.Truncate(time.Second); next != rate && at > list[len(list)-1].At {
			list = append(list, Price{At: at, Rate: next})
			rate = next
		}
	}
	return list
}

// quantile interpolates between the values of a sorted list.
func quantile(sorted []time.Duration, p float64) time.Duration {
	x := p * float64(len(sorted)-1)
	i := min(int(x), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + time.Duration(float64(sorted[j]-sorted[i])*(x-float64(i)))
}
