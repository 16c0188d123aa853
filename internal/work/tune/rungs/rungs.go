// Package rungs holds the searchers without a model: random search, median stopping, successive halving (stopping and
// promotion), asynchronous Hyperband, and one epoch of each followed by full training of the best.
package rungs

import (
	"cmp"
	"slices"

	"scrimp/internal/work/tune"
)

// eta is the number of trials that compete for each place in the next rung.
const eta = 3

// rungs returns first, first×3, first×9 and so on below the last epoch.
func rungs(first, epochs int) (list []int) {
	for r := first; r < epochs; r *= eta {
		list = append(list, r)
	}
	return list
}

// pool hands out trials in an order given by the seed.
type pool struct {
	order []tune.Trial
	next  int
}

func newPool(s *tune.Search) pool { return pool{order: tune.Shuffled(len(s.Trials), s.Seed)} }

// fresh returns the next trial that was never started, or None.
func (p *pool) fresh(h *tune.History) tune.Trial {
	for ; p.next < len(p.order); p.next++ {
		if t := p.order[p.next]; h.Fresh(t) {
			p.next++
			return t
		}
	}
	return tune.None
}

// stopper trains each trial until it is complete or a rule stops it.
type stopper struct {
	pool
	stop    func(h *tune.History, t tune.Trial) bool
	current map[int]tune.Trial // by worker
}

func (s *stopper) Next(h *tune.History, worker int) tune.Choice {
	if t, ok := s.current[worker]; ok {
		if h.Epoch(t) > 0 && !h.Runs[t].Failed && s.stop(h, t) || !h.Free(t) {
			delete(s.current, worker)
		} else {
			return tune.Train(t)
		}
	}
	t := s.fresh(h)
	if t == tune.None {
		return tune.Wait
	}
	s.current[worker] = t
	return tune.Train(t)
}

func newStopper(s *tune.Search, stop func(*tune.History, tune.Trial) bool) *stopper {
	return &stopper{newPool(s), stop, map[int]tune.Trial{}}
}

// Random trains each trial fully.
func Random(s *tune.Search) tune.Searcher {
	return newStopper(s, func(*tune.History, tune.Trial) bool { return false })
}

// MedianStop stops a trial whose smallest value is above the median of the other trials' means over as many epochs.
func MedianStop(s *tune.Search) tune.Searcher {
	const others = 5 // with as many epochs, before the rule applies
	warm := max(2, (s.Epochs+9)/10)
	return newStopper(s, func(h *tune.History, t tune.Trial) bool {
		e := h.Epoch(t)
		if e < warm {
			return false
		}
		var means []float64
		for o := range h.Runs {
			if o == t || h.Epoch(o) < e {
				continue
			}
			sum := 0.0
			for _, v := range h.Runs[o].Values[:e] {
				sum += v
			}
			if tune.Finite(sum) {
				means = append(means, sum/float64(e))
			}
		}
		return len(means) >= others && h.Runs[t].Best > median(means)
	})
}

func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	if n%2 == 1 {
		return list[n/2]
	}
	return (list[n/2-1] + list[n/2]) / 2
}

// AshaStop stops a trial that is not among the best third of those that have reached a rung so far.
func AshaStop(s *tune.Search) tune.Searcher {
	seen := map[int][]float64{}
	ladder := rungs(1, s.Epochs)
	return newStopper(s, func(h *tune.History, t tune.Trial) bool {
		e := h.Epoch(t)
		if !slices.Contains(ladder, e) {
			return false
		}
		v := h.Runs[t].Values[e-1]
		list := seen[e]
		at, _ := slices.BinarySearch(list, v)
		list = slices.Insert(list, at, v)
		seen[e] = list
		return v > list[max(1, len(list)/eta)-1]
	})
}

// place is a trial's value at a rung.
type place struct {
	value float64
	trial tune.Trial
}

// bracket promotes the best third of each of its rungs to the next.
type bracket struct {
	ladder   []int
	arrived  [][]place // by rung, the best first
	promoted []map[tune.Trial]bool
}

func newBracket(first, epochs int) *bracket {
	b := &bracket{ladder: rungs(first, epochs)}
	b.arrived = make([][]place, len(b.ladder))
	for range b.ladder {
		b.promoted = append(b.promoted, map[tune.Trial]bool{})
	}
	return b
}

// arrive records a trial that has reached a rung.
func (b *bracket) arrive(h *tune.History, t tune.Trial) {
	i := slices.Index(b.ladder, h.Epoch(t))
	if i < 0 || h.Runs[t].Failed {
		return
	}
	p := place{h.Runs[t].Values[h.Epoch(t)-1], t}
	at, there := slices.BinarySearchFunc(b.arrived[i], p, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.trial, b.trial))
	})
	if !there {
		b.arrived[i] = slices.Insert(b.arrived[i], at, p)
	}
}

// best returns the first trial of rung i that may be promoted: one of the best third, or with all any trial.
func (b *bracket) best(h *tune.History, i int, all bool) (place, bool) {
	n := len(b.arrived[i])
	if !all {
		n /= eta
	}
	for _, p := range b.arrived[i][:n] {
		if !b.promoted[i][p.trial] && h.Free(p.trial) {
			return p, true
		}
	}
	return place{}, false
}

// above returns the epoch to which rung i promotes.
func (b *bracket) above(i, epochs int) int {
	if i+1 < len(b.ladder) {
		return b.ladder[i+1]
	}
	return epochs
}

// task is the epoch that a worker's trial should reach, and its bracket.
type task struct {
	trial tune.Trial
	until int
	of    *bracket
}

// promoter runs several brackets of successive halving by promotion. ASHA has one.
type promoter struct {
	pool
	brackets []*bracket
	share    []int // of new trials for each bracket, in turn
	force    bool  // promote beyond the best third when no trial is left to start
	unpaid   bool  // nothing is to be spent: force promotes only the best of a rung of less than three
	started  int
	current  map[int]task
}

// AshaPromo promotes the best third of each rung as soon as a worker is free.
func AshaPromo(s *tune.Search) tune.Searcher {
	return &promoter{pool: newPool(s), brackets: []*bracket{newBracket(1, s.Epochs)}, share: []int{1}, force: true,
		unpaid:  s.Unpaid,
		current: map[int]task{}}
}

// HyperbandAsync runs three brackets of AshaPromo that start with 1, 3 and 9 epochs.
func HyperbandAsync(s *tune.Search) tune.Searcher {
	return &promoter{pool: newPool(s), brackets: []*bracket{newBracket(1, s.Epochs), newBracket(eta, s.Epochs),
		newBracket(eta*eta, s.Epochs)}, share: []int{9, 3, 1}, current: map[int]task{}}
}

func (p *promoter) Next(h *tune.History, worker int) tune.Choice {
	if k, ok := p.current[worker]; ok {
		if h.Epoch(k.trial) < k.until && h.Free(k.trial) {
			return tune.Train(k.trial)
		}
		delete(p.current, worker)
		k.of.arrive(h, k.trial)
	}
	k, ok := p.promote(h, false)
	if !ok {
		k, ok = p.start(h)
	}
	switch {
	case ok || !p.force:
	case !p.unpaid:
		k, ok = p.promote(h, true)
	case len(p.current) == 0: // nobody is about to reach a rung
		k, ok = p.lead(h)
	}
	if !ok {
		return tune.Wait
	}
	p.current[worker] = k
	return tune.Train(k.trial)
}

// promote picks the trial at the highest rung, and among those the one with the smallest value.
func (p *promoter) promote(h *tune.History, all bool) (task, bool) {
	var found task
	var of *bracket
	height, at := 0, 0
	var top place
	for _, b := range p.brackets {
		for i, r := range b.ladder {
			q, ok := b.best(h, i, all)
			if ok && (of == nil || r > height || r == height && q.value < top.value) {
				of, height, at, top = b, r, i, q
			}
		}
	}
	if of == nil {
		return found, false
	}
	of.promoted[at][top.trial] = true
	return task{top.trial, of.above(at, h.Epochs), of}, true
}

// lead promotes the best trial of the highest rung of which none was promoted, so that one trains in full.
func (p *promoter) lead(h *tune.History) (task, bool) {
	for _, b := range p.brackets {
		for i := len(b.ladder) - 1; i >= 0; i-- {
			if len(b.arrived[i]) == 0 {
				continue
			}
			q, ok := b.best(h, i, true)
			if !ok || len(b.promoted[i]) > 0 {
				break
			}
			b.promoted[i][q.trial] = true
			return task{q.trial, b.above(i, h.Epochs), b}, true
		}
	}
	return task{}, false
}

// start gives a new trial to the next bracket in turn.
func (p *promoter) start(h *tune.History) (task, bool) {
	t := p.fresh(h)
	if t == tune.None {
		return task{}, false
	}
	turn, all := 0, 0
	for _, n := range p.share {
		all += n
	}
	turn = p.started % all
	p.started++
	i := 0
	for turn >= p.share[i] {
		turn -= p.share[i]
		i++
	}
	b := p.brackets[i]
	until := h.Epochs
	if len(b.ladder) > 0 {
		until = b.ladder[0]
	}
	return task{t, until, b}, true
}

// topK trains one epoch of each trial until half the budget is spent, and then the best of them fully.
type topK struct {
	pool
	full    bool
	current map[int]tune.Trial
}

// TopK is the simplest fair search: one epoch of each trial, and full training of the best ones.
func TopK(s *tune.Search) tune.Searcher { return &topK{newPool(s), false, map[int]tune.Trial{}} }

func (k *topK) Next(h *tune.History, worker int) tune.Choice {
	if !k.full && h.Spent < h.Budget/2 {
		if t := k.fresh(h); t != tune.None {
			return tune.Train(t)
		}
	}
	k.full = true
	if t, ok := k.current[worker]; ok && h.Free(t) {
		return tune.Train(t)
	}
	best := place{trial: tune.None}
	for t := range h.Runs {
		if e := h.Epoch(t); e == 0 || !h.Free(t) || k.taken(t) {
			continue
		}
		if v := h.Runs[t].Values[0]; best.trial == tune.None || v < best.value {
			best = place{v, t}
		}
	}
	if best.trial == tune.None {
		return tune.Wait
	}
	k.current[worker] = best.trial
	return tune.Train(best.trial)
}

// taken reports whether a worker trains a trial fully.
func (k *topK) taken(t tune.Trial) bool {
	for _, o := range k.current {
		if o == t {
			return true
		}
	}
	return false
}
