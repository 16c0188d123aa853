package incident

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// What the rules compare with. Each says how far from a team's own past is far enough; TestFind_FindsWhatWasPlanted
// and TestFind_IsQuietOnQuietFleets hold them.
const (
	forget = 14 * 24 * time.Hour // the past that counts
	learn  = 5 * 24 * time.Hour  // before rules that compare with the past say anything
	rest   = 24 * time.Hour      // after the end of an incident, before the same is one again
	trifle = 1.0                 // of the currency: an incident that is smaller waits
)

// watch is what is known at the present slot.
type watch struct {
	currency   money.Currency
	began, now time.Time
	rules      []rule
	open       map[key]*found
	ended      map[key]time.Time
	all        []*found
	recent     map[string]time.Time // the newest alert of a team
}

// rule looks at the pieces of a slot.
type rule interface{ slot(w *watch, list []piece) }

// key is one thing that can go wrong.
type key struct {
	kind        Kind
	team, about string
}

// found is an alert in the making.
type found struct {
	Alert
	stake float64
	seen  time.Time // the slot in which it was last said
}

func newWatch(currency money.Currency) *watch {
	return &watch{currency: currency, open: map[key]*found{}, ended: map[key]time.Time{}, recent: map[string]time.Time{},
		rules: []rule{newIdle(), newAttempts(), newTrials(), newPrices(), newTransfers(), newOrphans(), newRuns(),
			newStalls(), newUnpriced(), newSpending()}}
}

func (w *watch) slot(list []piece) {
	for _, r := range w.rules {
		r.slot(w, list)
	}
	for k, f := range w.open {
		if f.seen.Before(w.now) {
			f.Until = f.seen
			w.ended[k] = f.seen
			delete(w.open, k)
		}
	}
}

// grown reports whether there is past enough to compare with.
func (w *watch) grown() bool { return w.now.Sub(w.began) >= learn }

// said is what a rule says of a slot.
type said struct {
	kind                 Kind
	team, project, about string
	since                time.Time
	stake                float64 // since then
	small                bool    // it is an incident however little it costs
	why                  string
	jobs                 []string
}

// say raises an alert, or goes on with the one that is open.
func (w *watch) say(s said) {
	k := key{s.kind, s.team, s.about}
	f := w.open[k]
	if f == nil {
		if end, was := w.ended[k]; was && w.now.Sub(end) < rest || s.stake < trifle && !s.small {
			return
		}
		f = &found{Alert: Alert{Kind: s.kind, Team: s.team, Project: s.project, About: s.about, Since: s.since,
			Found: w.now, Currency: w.currency, Why: s.why}}
		f.AtFound = amountOf(s.stake)
		slices.Sort(s.jobs)
		f.Jobs = slices.Compact(s.jobs)
		f.Jobs = f.Jobs[:min(5, len(f.Jobs))]
		w.open[k] = f
		w.all = append(w.all, f)
		w.recent[s.team] = w.now
	}
	f.stake, f.seen = max(f.stake, s.stake), w.now
}

// isNew reports whether an alert is open and not a day old: until then it does not count as usual.
func (w *watch) isNew(kind Kind, team, about string) bool {
	f := w.open[key{kind, team, about}]
	return f != nil && w.now.Sub(f.Found) < rest
}

// isOpen reports whether an alert is open.
func (w *watch) isOpen(kind Kind, team, about string) bool {
	return w.open[key{kind, team, about}] != nil
}

func (w *watch) alerts() (list []Alert) {
	for _, f := range w.all {
		f.AtStake = amountOf(f.stake)
		list = append(list, f.Alert)
	}
	return list
}

// amountOf is an estimate as money; nothing where there is none.
func amountOf(v float64) money.Amount {
	a, ok := money.Estimated(v)
	if !ok {
		return money.Amount{}
	}
	return a
}

// past is values with their times, of which the newest count.
type past struct {
	values []float64
	times  []time.Time
}

func (p *past) add(at time.Time, v float64) {
	p.values, p.times = append(p.values, v), append(p.times, at)
}

// drop forgets what is older than a span.
func (p *past) drop(now time.Time, span time.Duration) {
	n := 0
	for n < len(p.times) && now.Sub(p.times[n]) > span {
		n++
	}
	p.values, p.times = p.values[n:], p.times[n:]
}

func (p *past) n() int { return len(p.values) }

func (p *past) sum() (sum float64) {
	for _, v := range p.values {
		sum += v
	}
	return sum
}

func (p *past) most() float64 {
	if p.n() == 0 {
		return 0
	}
	return slices.Max(p.values)
}

// quantile is the value below which a share q lies; 0 where there is none.
func (p *past) quantile(q float64) float64 {
	if p.n() == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(p.values))[int(math.Round(q*float64(p.n()-1)))]
}

// hourly is a sum over the last hour, and the largest of each hour before.
type hourly struct {
	last  past // of slots
	hours past // the largest sum of an hour, hour by hour
	most  float64
	hour  time.Time
	odd   bool    // the hour is part of an incident, and no measure of what is usual
	usual float64 // the largest of the past as of the hour, but for the two hours before it
}

// add adds a slot and returns the sum of the hour up to it, and the largest of the past, before that hour.
func (h *hourly) add(at time.Time, v float64) (sum, most float64) {
	h.last.add(at, v)
	h.last.drop(at, time.Hour-Slot)
	sum = h.last.sum()
	if hour := at.Truncate(time.Hour); hour.After(h.hour) {
		if !h.hour.IsZero() && !h.odd {
			h.hours.add(h.hour, h.most)
			h.hours.drop(at, forget)
		}
		h.hour, h.most, h.odd, h.usual = hour, 0, false, 0
		for i, v := range h.hours.values {
			if hour.Sub(h.hours.times[i]) >= 2*time.Hour {
				h.usual = max(h.usual, v)
			}
		}
	}
	h.most = max(h.most, sum)
	return sum, h.usual
}

// at returns the value of a key, made where there is none.
func at[K comparable, V any](of map[K]*V, k K) *V {
	if of[k] == nil {
		of[k] = new(V)
	}
	return of[k]
}
