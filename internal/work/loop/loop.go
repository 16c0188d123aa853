// Package loop plans a search whose trials the user's own program trains: the program asks for a configuration, trains
// it, and tells the values of its metric. What a search does is a function of its definition and of what it was asked
// and told, in order, so a replay of that list rebuilds it.
package loop

import (
	"fmt"
	"math"
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
	"scrimp/internal/work/tune/replay"
)

// Bounds of a search.
const (
	MaxWorkers = 100
	MaxValues  = 20_000 // told values of all trials together
)

// careful is the factor by which the next unit of a trial may exceed its expected cost.
const careful = 1.25

// A Spec defines a search.
type Spec struct {
	Study   *study.Spec
	Workers int           // trials that train at once, at most
	Budget  *money.Amount // in dollars; nil: the number of trials is the only limit
}

// Check returns the field and the error of an invalid search.
func (s *Spec) Check() (field string, err error) {
	st := s.Study
	if field, err := st.Check(); err != nil {
		return "study." + field, err
	}
	if _, err := replay.New(st.Searcher, &tune.Search{Epochs: 1}); err != nil {
		return "study.searcher", err
	}
	machines := "it counts machines, and a loop of your own has none that the search rents: leave it out"
	switch {
	case s.Workers < 1 || s.Workers > MaxWorkers:
		return "study.at_once", fmt.Errorf("%d workers: give 1 to %d", s.Workers, MaxWorkers)
	case st.Wall > 0:
		return "study.wall_clock", fmt.Errorf("%s", machines)
	case st.GPUHours > 0:
		return "study.gpu_hours", fmt.Errorf("%s", machines)
	case st.Final:
		return "study.final", fmt.Errorf("the search cannot train a trial itself: train the best one in your loop")
	case st.Proxy != nil:
		return "study.proxy", fmt.Errorf("the search cannot train a trial in full itself: train the best one in your loop")
	case s.Budget != nil && s.Budget.Sign() <= 0:
		return "budget", fmt.Errorf("the budget is %s: give an amount above zero", s.Budget)
	case s.Budget == nil && st.Trials == 0:
		return "budget", fmt.Errorf("nothing ends the search: give a budget in dollars, or a number of trials")
	case s.Budget == nil && st.Plateau != nil:
		return "study.plateau", fmt.Errorf("it compares gain with dollars: give a budget in dollars, too")
	}
	return "", nil
}

// States of a trial.
const (
	Chosen   = "chosen"   // a worker gets it at its next question
	Training = "training" // a worker has it
	Paused   = "paused"   // the searcher may return to it
	Stopped  = "stopped"  // the searcher has left it for ever
	Trained  = "trained"  // in full
	Failed   = "failed"   // its metric was not a number
)

// Reasons why the search is over.
const (
	BudgetSpent = "budget_spent" // the rest does not pay for another unit of training
	SearchDone  = "search_done"  // the searcher has no further trials
	Plateau     = "plateau"      // another dollar is expected to gain too little
)

// A Point is a told value.
type Point struct {
	At    float64 // in the fidelity; 0 without a fidelity
	Value float64
	Bad   bool // the value was not a number
}

// A Trial is a configuration that was chosen. Trials are numbered in the order in which they were chosen.
type Trial struct {
	Config  int
	State   string
	Worker  int // the last that has had it
	Points  []Point
	Spent   money.Amount // as far as told
	Priced  bool         // every told value had a cost, so Spent is complete
	Seconds float64
	Timed   bool         // every told value had its seconds
	open    bool         // a program trains it, and was not told to leave it
	costs   []float64    // by unit, in the unit of the budget
	since   money.Amount // cost since the last whole unit
}

// At returns how long the trial has trained, in the fidelity.
func (t *Trial) At() float64 {
	if len(t.Points) == 0 {
		return 0
	}
	return t.Points[len(t.Points)-1].At
}

// worker is one of the places at which the program trains.
type worker struct {
	trial int    // that it has or gets next; none: -1
	held  int    // configuration for which the budget does not suffice yet; none: -1
	idle  uint64 // the version of the search when it had nothing for this worker; 0: never
}

// A Search is a search under way.
type Search struct {
	Spec    Spec
	Trials  []Trial
	Over    string // why it is over; empty: it is not
	Spent   money.Amount
	Priced  bool // every told value had a cost, so Spent is complete
	Seconds float64
	Timed   bool // every told value had its seconds
	Values  int  // told

	pool    [][]tune.Value
	h       *tune.History
	by      tune.Searcher
	of      map[int]int // the trial of a configuration
	workers []worker
	version uint64 // grows with each change that a searcher sees
	short   bool   // the budget did not suffice for something that the searcher wanted
}

// New returns a search that was asked nothing. The definition must be valid.
func New(spec Spec) (*Search, error) {
	st := spec.Study
	s := &Search{Spec: spec, Priced: true, Timed: true, pool: st.Pool(), of: map[int]int{},
		workers: make([]worker, spec.Workers),
		version: 1}
	budget := float64(st.Trials) * float64(st.Units()) // each unit costs 1
	if spec.Budget != nil {
		budget = spec.Budget.Float()
	}
	search := &tune.Search{Space: st.Space(), Trials: s.pool, Epochs: st.Units(), Budget: budget, Seed: st.Seed,
		Plateau: st.Plateau.Tuned(), Past: st.Tuned(), Unpaid: spec.Budget == nil}
	by, err := replay.New(st.Searcher, search)
	if err != nil {
		return nil, err
	}
	s.h, s.by = tune.NewHistory(search), by
	for w := range s.workers {
		s.workers[w].trial, s.workers[w].held = -1, -1
	}
	return s, nil
}

// choose lets the searcher choose what a worker without a trial trains next.
func (s *Search) choose(w int) {
	k := &s.workers[w]
	if s.Over != "" {
		k.trial = -1
		return
	}
	if k.held >= 0 {
		if k.idle = s.version; s.pays(w, k.held) {
			s.starts(w, k.held)
		}
		return
	}
	s.h.Closed = s.Spec.Study.Trials > 0 && len(s.h.Order) >= s.Spec.Study.Trials
	was := k.trial
	k.trial, k.idle = -1, s.version
	choice := s.by.Next(s.h, w)
	c := choice.Trial
	if was >= 0 && s.Trials[was].Config != c && s.Trials[was].State == Training {
		s.leaves(was)
	}
	switch {
	case choice.Stop:
		s.end(Plateau)
	case c == tune.None || !s.h.Free(c):
	case s.pays(w, c):
		s.starts(w, c)
	default:
		s.withholds(k, c)
	}
}

// withholds keeps a configuration for a worker until the budget suffices for it. A searcher that returns to no trial
// gives up one that has trained, since its program is about to leave it.
func (s *Search) withholds(k *worker, c int) {
	s.short, k.held = true, c
	n, known := s.of[c]
	if !known {
		return
	}
	if s.Trials[n].State == Training {
		s.leaves(n)
	}
	if !s.Spec.Study.Resumes() {
		s.h.Retire(c)
		s.version++
		k.held = -1
	}
}

// leaves says that the searcher trains another trial than t.
func (s *Search) leaves(t int) {
	s.Trials[t].State = Paused
	if !s.Spec.Study.Resumes() {
		s.Trials[t].State = Stopped
	}
}

// starts gives a worker a configuration.
func (s *Search) starts(w, c int) {
	n, known := s.of[c]
	if !known {
		n = len(s.Trials)
		s.of[c] = n
		s.Trials = append(s.Trials, Trial{Config: c, State: Chosen, Priced: true, Timed: true})
	}
	t := &s.Trials[n]
	if t.State != Training || t.Worker != w {
		t.State = Chosen
	}
	t.Worker = w
	s.h.Start(c, w)
	s.version++
	s.workers[w] = worker{trial: n, held: -1}
}

// pays reports whether the rest of the budget suffices for the next unit of a configuration, beside what other workers
// train.
func (s *Search) pays(w, c int) bool {
	if s.Spec.Budget == nil {
		return true
	}
	left := s.h.Budget - s.Spent.Float()
	for o := range s.workers {
		if n := s.workers[o].trial; o != w && n >= 0 {
			left -= s.next(s.Trials[n].Config)
		}
	}
	return left > 0 && s.next(c) <= left
}

// next returns the expected cost of a configuration's next unit: as its last one, otherwise the mean of all units, with
// a margin. Before the first told cost it is 0.
func (s *Search) next(c int) float64 {
	if n, known := s.of[c]; known {
		if costs := s.Trials[n].costs; len(costs) > 0 {
			return careful * costs[len(costs)-1]
		}
	}
	if len(s.h.Reports) == 0 {
		return 0
	}
	return careful * s.h.Cost / float64(len(s.h.Reports))
}

// end ends the search: no trial is trained any more.
func (s *Search) end(why string) {
	s.Over = why
	for n := range s.Trials {
		if st := s.Trials[n].State; st == Training || st == Chosen {
			s.leaves(n)
		}
	}
	for w := range s.workers {
		s.workers[w] = worker{trial: -1, held: -1}
	}
}

// busy reports whether any worker trains or gets a trial.
func (s *Search) busy() bool {
	return slices.ContainsFunc(s.workers, func(k worker) bool { return k.trial >= 0 })
}

// Best returns the number of the trial with the best value, and the point of that value; -1: no value yet.
func (s *Search) Best() (trial int, at Point) {
	trial = -1
	for n := range s.Trials {
		if p, ok := s.BestOf(n); ok && (trial < 0 || s.better(p.Value, at.Value)) {
			trial, at = n, p
		}
	}
	return trial, at
}

// BestOf returns the best point of a trial; false: it has none.
func (s *Search) BestOf(n int) (best Point, ok bool) {
	for _, p := range s.Trials[n].Points {
		if !p.Bad && (!ok || s.better(p.Value, best.Value)) {
			best, ok = p, true
		}
	}
	return best, ok
}

func (s *Search) better(a, b float64) bool {
	if s.Spec.Study.Maximize {
		return a > b
	}
	return a < b
}

// Texts returns the values of a trial's parameters, as programs get them.
func (s *Search) Texts(n int) []string { return s.Spec.Study.Texts(s.pool, s.Trials[n].Config) }

// Until returns where the trial's next unit of training ends, in the fidelity; 0 without a fidelity.
func (s *Search) Until(n int) float64 {
	fid := s.Spec.Study.Fidelity
	if fid.Name == "" {
		return 0
	}
	return math.Min(fid.Max, float64(len(s.h.Runs[s.Trials[n].Config].Values)+1)*fid.Min)
}
