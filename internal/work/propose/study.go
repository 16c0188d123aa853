package propose

import (
	"math"
	"slices"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
	"scrimp/internal/work/tune/replay"
)

// Reasons why a trial starts, continues or ends.
const (
	Chosen      = "chosen"       // the searcher wants it trained
	LeftFor     = "left_for_now" // the searcher trains another
	Pruned      = "pruned"       // the searcher never returns to it
	FinalRun    = "final"        // the best one is trained fully
	Promoted    = "promoted"     // it was among the best on the proxy, and is trained in full
	SearchDone  = "search_done"  // the searcher has no further trials
	BudgetSpent = "budget_spent" // the rest does not pay for another unit

	// The rest of another limit does not suffice for another unit.
	HoursSpent = "gpu_hours_spent"
	TimeSpent  = "time_spent"
	// Plateau: another dollar is not expected to gain enough.
	Plateau = "plateau"
	// NoValues: several trials have ended or failed, and none has ever reported a value of the metric.
	NoValues = "no_values"
)

// driver plays a search on what has happened. As in a simulation, it asks the searcher after each unit of training for
// one of as many workers as trials may train at once. It keeps what a trial trains beyond the request, and the searcher
// sees it when it requests it. The result is which trials should train now; the moves are the difference to those that
// do.
type driver struct {
	spec    *study.Spec
	workers []worker
	h       *tune.History
	by      tune.Searcher
	seen    int            // processed reports
	trials  []trial        // by member
	member  map[int]int    // of a configuration
	known   map[int][]unit // what each configuration has trained
	pruned  map[int]bool   // the searcher never returns to these
	short   shortage       // of the limit whose rest last did not suffice for something
	final   bool           // the search is over and the best is being trained
	full    full
	limits  amounts // of the whole search
	spent   amounts // by all trials, as far as reported
	cost    [resources]costs
	prices  prices
	flat    *tune.Choice // the searcher's decision to end the search; nil: none yet
	broke   bool         // the searcher does not exist
	silent  int          // trials that ended normally without a value
	failed  int          // trials that failed without a value
	heard   bool         // a trial has reported a value
}

// trial is what the driver knows about a member.
type trial struct {
	config int
	spent  amounts
	over   bool
	// Of a promoted trial:
	promoted bool
	sum      amounts // used so far
}

// unit is one unit of training.
type unit struct {
	value float64
	uses  amounts
}

// worker trains a configuration, or none. It keeps the configuration while the budget does not pay for the next unit.
type worker struct {
	config int
	moved  bool // it trained another one before
	waits  bool // for room in the budget
}

func newDriver(s groups.Snapshot) *driver {
	pool := s.Study.Pool()
	search := &tune.Search{Space: s.Study.Space(), Trials: pool, Epochs: s.Study.Units(), Budget: s.Budget,
		Seed: s.Study.Seed, Plateau: s.Study.Plateau.Tuned(), Past: s.Study.Tuned()}
	by, err := replay.New(s.Study.Searcher, search)
	d := &driver{spec: s.Study, workers: make([]worker, s.AtOnce), h: tune.NewHistory(search), by: by, broke: err != nil,
		member: map[int]int{}, known: map[int][]unit{}, pruned: map[int]bool{}, limits: limitsOf(s),
		prices: prices{of: map[int]*paid{}}}
	d.h.Price = d.prices.factor
	for w := range d.workers {
		d.workers[w].config = tune.None
	}
	if err == nil {
		d.askAll()
	}
	return d
}

// sees reports whether the snapshot is a later one of the same study.
func (d *driver) sees(s groups.Snapshot) bool {
	return d.spec == s.Study && d.seen <= len(s.Reports) && len(d.trials) <= len(s.Trials) &&
		d.limits[dollars] == s.Budget && len(d.workers) == s.AtOnce
}

// moves processes what is new, and compares the trials that should train with those that do.
func (d *driver) moves(s groups.Snapshot) []groups.Move {
	if d.broke {
		return []groups.Move{{Do: groups.Finish, Why: SearchDone}}
	}
	for m := len(d.trials); m < len(s.Trials); m++ {
		d.trials = append(d.trials, trial{config: s.Trials[m].Config, promoted: s.Trials[m].Promoted})
		if !s.Trials[m].Promoted {
			d.member[s.Trials[m].Config] = m
		}
	}
	for ; d.seen < len(s.Reports); d.seen++ {
		d.promotesAt(s)
		d.take(s.Reports[d.seen])
	}
	d.promotesAt(s)
	return d.difference(s)
}

// take processes a report, and asks the searcher for each worker that it frees.
func (d *driver) take(r groups.Report) {
	if r.Trial < 0 || r.Trial >= len(d.trials) {
		return
	}
	t := &d.trials[r.Trial]
	c, uses := t.config, d.used(t, r)
	if t.promoted {
		d.takeFull(t, r, uses)
		return
	}
	d.prices.learn(c, r)
	switch {
	case r.Phase == groups.Over:
		t.over = true
		d.ends(c, r)
	case r.Phase == groups.Paused: // the cost of leaving is part of spent
	case r.Bad:
		d.heard = true
		d.known[c] = append(d.known[c], unit{math.NaN(), uses})
	default:
		d.heard = true
		for n := r.Unit - len(d.known[c]); n > 0; n-- { // a program may report only every second unit
			u := unit{value: d.goal(r.Value)}
			for k := range uses {
				u.uses[k] = uses[k] / float64(n)
				uses[k] -= u.uses[k]
			}
			d.known[c] = append(d.known[c], u)
		}
	}
	d.holdBack()
	d.advance()
}

// used counts what a trial has used since its last report, and returns it.
func (d *driver) used(t *trial, r groups.Report) (uses amounts) {
	for k, sum := range [...]float64{r.Spent, r.GPUHours} {
		uses[k] = math.Max(0, sum-t.spent[k])
		t.spent[k] = math.Max(t.spent[k], sum)
		d.spent[k] += uses[k]
	}
	uses[clock], d.spent[clock] = r.Took.Hours(), math.Max(d.spent[clock], r.At.Hours())
	return uses
}

// goal flips the sign of a metric if higher is better.
func (d *driver) goal(v float64) float64 {
	if d.spec.Maximize {
		return -v
	}
	return v
}

// ends processes the end of a trial. One that ended normally before it was fully trained would not have changed any
// more.
func (d *driver) ends(c int, r groups.Report) {
	list := d.known[c]
	switch {
	case len(list) > 0 || r.Cut:
	case r.Bad:
		d.failed++
	default:
		d.silent++
	}
	switch {
	case len(list) == 0 || r.Bad:
		d.known[c] = append(list, unit{value: math.NaN()})
	case r.Cut:
		d.h.Retire(c)
	default:
		for len(list) < d.h.Epochs {
			list = append(list, unit{value: list[len(list)-1].value})
		}
		d.known[c] = list
	}
}

// advance gives the searcher the reports that it waits for, until one is missing.
func (d *driver) advance() {
	for again := true; again; {
		again = false
		for w := range d.workers {
			if d.workers[w].config != tune.None && d.delivers(w) {
				again = true
			}
		}
	}
	if d.final && d.complete() { // the rest beyond another full training goes to the search
		d.final = false
		d.holdBack()
	}
	if d.askAll(); d.spec.Proxy != nil && !d.trains() {
		d.beginFull()
	}
	if d.spec.Final && !d.final && !d.trains() && !d.complete() {
		d.final = true
		d.holdBack()
		d.askAll()
	}
}

// complete reports whether the best configuration is fully trained.
func (d *driver) complete() bool {
	best := d.best()
	return best != tune.None && len(d.known[best]) >= d.h.Epochs
}

// trains reports whether a worker has something to train.
func (d *driver) trains() bool {
	return slices.ContainsFunc(d.workers, func(k worker) bool { return k.config != tune.None && !k.waits })
}

// delivers gives the searcher the unit that a worker has trained, and reports whether there was one.
func (d *driver) delivers(w int) bool {
	k := &d.workers[w]
	c, e := k.config, d.h.Epoch(k.config)
	if d.h.Runs[c].Failed {
		d.ask(w)
		return k.config != c
	}
	if e >= len(d.known[c]) {
		return false
	}
	u := d.known[c][e]
	for r := range d.cost {
		d.cost[r].learn(u.uses[r], k.moved)
	}
	d.h.Switch = d.cost[dollars].move()
	d.h.Add(tune.Report{Trial: c, Epoch: e + 1, Value: u.value, Cost: u.uses[dollars], Moved: k.moved,
		Spent: d.spent[dollars]})
	k.waits = false
	d.ask(w)
	return true
}

// askAll asks the searcher for each worker without training.
func (d *driver) askAll() {
	for w := range d.workers {
		if k := d.workers[w]; k.config == tune.None || k.waits {
			d.ask(w)
		}
	}
}

// ask lets the searcher choose for a worker.
func (d *driver) ask(w int) {
	if d.final {
		d.trainFinal(w)
		return
	}
	k := &d.workers[w]
	if d.flat != nil || d.full.begins {
		k.config, k.waits = tune.None, false
		return
	}
	d.h.Closed = d.spec.Trials > 0 && len(d.h.Order) >= d.spec.Trials
	if k.waits { // it was chosen before
		if k.waits = !d.pays(w, k.config); !k.waits {
			k.moved = d.h.Start(k.config, w)
		}
		return
	}
	was := k.config
	choice := d.by.Next(d.h, w)
	if choice.Stop {
		d.flattens(choice)
		return
	}
	if was != tune.None && choice.Trial != was && !d.spec.Resumes() {
		d.pruned[was] = true
	}
	k.config = tune.None
	if c := choice.Trial; c != tune.None && d.h.Free(c) {
		k.config = c
		if d.pays(w, c) {
			k.moved = d.h.Start(c, w)
			return
		}
		if k.waits = true; len(d.h.Runs[c].Values) == 0 || d.spec.Resumes() {
			k.config, k.waits = tune.None, false // it can be chosen again
		}
	}
}

// trainFinal gives a worker the best configuration, unless it is fully trained.
func (d *driver) trainFinal(w int) {
	k := &d.workers[w]
	k.config, k.waits = tune.None, false
	best := d.best()
	if best == tune.None || w > 0 || len(d.known[best]) >= d.h.Epochs || d.exhausted() {
		return
	}
	if m, begun := d.member[best]; !begun || d.trials[m].over {
		return
	}
	k.config = best
	k.moved = d.h.Start(best, w)
}

// best returns the configuration with the best value that has not failed, or None.
func (d *driver) best() int {
	best, value := tune.None, math.Inf(1)
	for _, t := range d.trials {
		if (t.over || d.h.Runs[t.config].Failed) && len(d.known[t.config]) < d.h.Epochs {
			continue
		}
		for _, u := range d.known[t.config] {
			if u.value < value {
				best, value = t.config, u.value
			}
		}
	}
	return best
}
