package incident

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// The limits of the rules: how far a value must lie from the team's own past. TestFind_FindsWhatWasPlanted and
// TestFind_IsQuietOnQuietFleets check them.
const (
	forget = 14 * 24 * time.Hour // the length of the past that counts
	learn  = 5 * 24 * time.Hour  // the past that a comparing rule needs before its first alert
	rest   = 24 * time.Hour      // the pause after an incident before the same may be raised again
	trifle = 1.0                 // units of the currency; a smaller incident waits
)

// watch is the state of the replay at the current slot.
type watch struct {
	currency   money.Currency
	began, now time.Time
	rules      []rule
	open       map[key]*found
	ended      map[key]time.Time
	all        []*found
	recent     map[string]time.Time // the newest alert by team
	turns      map[[2]string][]turn // the factors of thresholds, by kind and team
	plans      []Plan
	until      time.Time // the present; zero: the end of the last row
	// owners and holders have the newest row of each job, and of the job of each machine, where there are plans.
	owners, holders map[string]*Row
}

// rule examines the pieces of one slot.
type rule interface{ slot(w *watch, list []piece) }

// key identifies an incident that may be open.
type key struct {
	kind        Kind
	team, about string
}

// found is an alert under construction.
type found struct {
	Alert
	stake float64
	seen  time.Time // the last slot in which a rule reported it
}

func newWatch(currency money.Currency) *watch {
	return &watch{currency: currency, open: map[key]*found{}, ended: map[key]time.Time{}, recent: map[string]time.Time{},
		owners: map[string]*Row{}, holders: map[string]*Row{},
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

// grown reports whether the past is long enough for comparisons.
func (w *watch) grown() bool { return w.now.Sub(w.began) >= learn }

// said is the finding of a rule in one slot.
type said struct {
	kind                 Kind
	team, project, about string
	since                time.Time
	stake                float64 // since the start
	small                bool    // an incident however little it costs
	why                  string
	jobs                 []string
}

// say raises an alert, or extends the one that is open.
func (w *watch) say(s said) {
	k := key{s.kind, s.team, s.about}
	f := w.open[k]
	if f == nil {
		if end, was := w.ended[k]; was && w.now.Sub(end) < rest || s.stake < trifle && !s.small {
			return
		}
		f = &found{Alert: Alert{Kind: s.kind, Team: s.team, Project: s.project, About: s.about, Since: s.since,
			Found: w.now, Currency: w.currency, Why: s.why, Factor: w.factor(s.kind, s.team, s.about)}}
		f.AtFound = amountOf(s.stake)
		f.Jobs = slices.Compact(slices.Sorted(slices.Values(s.jobs))) // a rule keeps its list in the order of time
		f.Jobs = f.Jobs[:min(5, len(f.Jobs))]
		w.open[k] = f
		w.all = append(w.all, f)
		w.recent[s.team] = w.now
	}
	f.stake, f.seen = max(f.stake, s.stake), w.now
}

// isNew reports whether an alert is open and less than a day old. Values of that day do not count as usual.
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
		f.AtStake, f.Planned = amountOf(f.stake), w.expected(&f.Alert)
		list = append(list, f.Alert)
	}
	return list
}

// amountOf converts an estimate to money; zero if it does not fit.
func amountOf(v float64) money.Amount {
	a, ok := money.Estimated(v)
	if !ok {
		return money.Amount{}
	}
	return a
}

// past holds values with their times, oldest first.
type past struct {
	values []float64
	times  []time.Time
}

func (p *past) add(at time.Time, v float64) {
	p.values, p.times = append(p.values, v), append(p.times, at)
}

// drop removes the values older than span.
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

// quantile returns the value below which a share q of the values lies; 0 if there are none.
func (p *past) quantile(q float64) float64 {
	if p.n() == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(p.values))[int(math.Round(q*float64(p.n()-1)))]
}

// hourly holds the sum of the last hour, and the largest sum within each earlier hour.
type hourly struct {
	last  past // by slot
	hours past // the largest sum within each hour
	most  float64
	hour  time.Time
	odd   bool    // the hour is part of an incident and does not count as usual
	usual float64 // the largest past sum as of hour, without the two hours before it
}

// add adds a slot. It returns the sum of the hour up to the slot, and the largest past sum before that hour.
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

// at returns the value of a key and creates it if needed.
func at[K comparable, V any](of map[K]*V, k K) *V {
	if of[k] == nil {
		of[k] = new(V)
	}
	return of[k]
}
