package loop

import (
	"errors"
	"fmt"
	"math"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
)

// Callers test for these with errors.Is.
var (
	ErrUnknown = errors.New("there is no such trial")
	ErrEnded   = errors.New("the trial is not in training")
	ErrTwice   = errors.New("that value was told before, and it was another one")
	ErrOrder   = errors.New("the value is out of order")
	ErrInvalid = errors.New("the value cannot be one of this search")
	ErrFull    = fmt.Errorf("the search has %d values, and can have no more", MaxValues)
)

// rounding is the relative error of sums of the fidelity's min, such as 0.1.
const rounding = 1e-9

// Answers to a question and to a told value.
const (
	Train    = "train"    // train this trial
	Wait     = "wait"     // nothing to train until another worker tells a value
	End      = "end"      // the search is over
	Continue = "continue" // train the trial further
	Pause    = "pause"    // save the trial and ask again: the searcher may return to it
	Stop     = "stop"     // leave the trial for ever, and ask again
)

// An Answer says what the program does next.
type Answer struct {
	Do    string
	Trial int // -1: none
}

// A Told is a value that a program tells of a trial.
type Told struct {
	Trial   int          `json:"trial"`
	At      float64      `json:"at,omitempty"` // amount of training, in the fidelity
	Value   float64      `json:"value,omitempty"`
	Bad     bool         `json:"bad,omitempty"`    // the value is not a number
	Cost    money.Amount `json:"cost,omitzero"`    // since the trial's value before
	Priced  bool         `json:"priced,omitempty"` // the cost is known
	Seconds float64      `json:"seconds,omitempty"`
	Timed   bool         `json:"timed,omitempty"` // the seconds are known
}

// Ask returns what a worker trains, and whether the question has changed the search. A worker that asks again gets the
// same trial until that leaves it.
func (s *Search) Ask(w int) (a Answer, changed bool, err error) {
	if w < 0 || w >= len(s.workers) {
		return a, false, fmt.Errorf("%w: worker is %d, and the search has the workers 0 to %d", ErrInvalid, w,
			len(s.workers)-1)
	}
	k := &s.workers[w]
	if k.trial < 0 && s.Over == "" && k.idle != s.version {
		changed = true
		for again := true; again; again = k.trial < 0 && k.held < 0 && s.Over == "" && k.idle != s.version {
			s.choose(w) // again where the searcher's trial was given up
		}
	}
	if k.trial < 0 && s.finish() {
		changed = true
	}
	switch {
	case k.trial >= 0:
		t := &s.Trials[k.trial]
		changed = changed || t.State != Training
		t.State, t.open = Training, true
		return Answer{Train, k.trial}, changed, nil
	case s.Over != "":
		return Answer{End, -1}, changed, nil
	}
	return Answer{Wait, -1}, changed, nil
}

// finish ends the search if no worker trains, and nothing remains for the one that has just asked.
func (s *Search) finish() bool {
	if s.Over != "" || s.busy() {
		return false
	}
	why := SearchDone
	if s.short || s.Spec.Budget != nil && len(s.h.Reports) > 0 && s.h.Budget-s.Spent.Float() < s.next(tune.None) {
		why = BudgetSpent // some searchers look at the rest themselves
	}
	s.end(why)
	return true
}

// Report takes a value, and says what happens to its trial. A value that is told again changes nothing. An error leaves
// the search as it was.
func (s *Search) Report(v Told) (a Answer, changed bool, err error) {
	if v.Trial < 0 || v.Trial >= len(s.Trials) {
		return a, false, fmt.Errorf("%w: trial is %d, and the search has %d so far", ErrUnknown, v.Trial, len(s.Trials))
	}
	t := &s.Trials[v.Trial]
	repeated, unit, err := s.check(t, v)
	switch {
	case err != nil:
		return a, false, err
	case repeated:
		return s.follows(v.Trial), false, nil
	case s.Values >= MaxValues:
		return a, false, ErrFull
	}
	s.Values++
	t.Points = append(t.Points, Point{v.At, v.Value, v.Bad})
	t.Spent, t.since, s.Spent = t.Spent.Add(v.Cost), t.since.Add(v.Cost), s.Spent.Add(v.Cost)
	t.Seconds, t.Priced, t.Timed = t.Seconds+v.Seconds, t.Priced && v.Priced, t.Timed && v.Timed
	s.Seconds, s.Priced, s.Timed = s.Seconds+v.Seconds, s.Priced && v.Priced, s.Timed && v.Timed
	if v.Bad || unit > s.h.Epoch(t.Config) {
		s.adds(t, v)
	}
	if s.Over == "" && s.Spec.Budget != nil && s.Spent.Cmp(*s.Spec.Budget) >= 0 {
		s.end(BudgetSpent)
	}
	s.Trials[v.Trial].open = s.Trials[v.Trial].State == Training
	return s.follows(v.Trial), true, nil
}

// valid returns an error for a value that no trial of a search with the fidelity can have.
func valid(fid study.Fidelity, v Told) error {
	switch {
	case !v.Bad && !tune.Finite(v.Value):
		return fmt.Errorf("%w: %g is not finite: tell that the trial has diverged", ErrInvalid, v.Value)
	case fid.Name == "" && v.At != 0:
		return fmt.Errorf("%w: it is at %g, and the search has no fidelity: tell one value a trial, without an "+
			"epoch or a step", ErrInvalid, v.At)
	case fid.Name != "" && v.At == 0:
		return fmt.Errorf("%w: at (--at) is missing: give the %s after which the value holds", ErrInvalid, fid.Name)
	case fid.Name != "" && !(v.At > 0 && v.At <= fid.Max):
		return fmt.Errorf("%w: %s is %g: give more than 0 and at most %g, the fidelity's max", ErrInvalid,
			fid.Name, v.At, fid.Max)
	}
	return nil
}

// check returns whether a value was told before, or how many units the trial has trained with it.
func (s *Search) check(t *Trial, v Told) (repeated bool, unit int, err error) {
	fid := s.Spec.Study.Fidelity
	if err := valid(fid, v); err != nil {
		return false, 0, err
	}
	if n := len(t.Points); n > 0 && v.At <= t.At() {
		err = fmt.Errorf("%w: it is at %s %g, and the trial is at %g already", ErrOrder, fid.Name, v.At, t.At())
		for _, p := range t.Points {
			if p.At != v.At {
				continue
			}
			if p == (Point{v.At, v.Value, v.Bad}) {
				return true, 0, nil
			}
			err = fmt.Errorf("%w: %g at %g, and now %g: if two programs train trial %d, another one is worker %d, too",
				ErrTwice, p.Value, p.At, v.Value, v.Trial, t.Worker)
		}
		return false, 0, err
	}
	if !t.open { // the value of a trial that trained while the search ended counts
		return false, 0, fmt.Errorf("%w: it is %s: ask for the next trial", ErrEnded, t.State)
	}
	if until := s.Until(s.of[t.Config]); v.At > until*(1+rounding) {
		return false, 0, fmt.Errorf("%w: it is at %s %g, and the searcher decides at %g: tell the value there first, or "+
			"raise the fidelity's min", ErrOrder, fid.Name, v.At, until)
	}
	return false, s.Spec.Study.Length(false).Unit(int64(v.At), v.At), nil
}

// adds gives the searcher a unit of training, and lets it choose for the worker.
func (s *Search) adds(t *Trial, v Told) {
	cost := 1.0
	if s.Spec.Budget != nil {
		cost = t.since.Float()
	}
	t.since, t.costs = money.Amount{}, append(t.costs, cost)
	value := v.Value
	if s.Spec.Study.Maximize {
		value = -value
	}
	if v.Bad {
		value = nan
	}
	spent := s.h.Cost + cost
	if s.Spec.Budget != nil {
		spent = s.Spent.Float()
	}
	s.h.Add(tune.Report{Trial: t.Config, Epoch: s.h.Epoch(t.Config) + 1, Value: value, Cost: cost, Spent: spent})
	s.version++
	switch {
	case v.Bad:
		t.State = Failed
	case s.h.Epoch(t.Config) >= s.h.Epochs:
		t.State = Trained
	}
	if s.Over == "" {
		s.choose(t.Worker)
	}
}

// follows says what happens to a trial now.
func (s *Search) follows(n int) Answer {
	switch s.Trials[n].State {
	case Training, Chosen:
		return Answer{Continue, n}
	case Paused:
		if s.Over == "" {
			return Answer{Pause, n}
		}
	}
	return Answer{Stop, n}
}

// nan marks a unit of training whose value was not a number.
var nan = math.NaN()
