package loop_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/loop"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune/replay"
)

// space returns a search over x from 0 to 10 with trials of nine epochs.
func space(searcher string, trials int, budget string, workers int) loop.Spec {
	s := loop.Spec{Workers: workers, Study: &study.Spec{Metric: "loss", Searcher: searcher, Trials: trials,
		Params: []study.Param{{Name: "x", Min: 0, Max: 10}}, Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9}}}
	if budget != "" {
		s.Budget = new(usd(budget))
	}
	return s
}

func usd(text string) money.Amount {
	a, err := money.Parse(text)
	if err != nil {
		panic(err)
	}
	return a
}

func open(t *testing.T, spec loop.Spec) *loop.Search {
	t.Helper()
	if field, err := spec.Check(); err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	s, err := loop.New(spec)
	must.Do(t, err)
	return s
}

// loss is the value of a trial's configuration after some epochs.
func loss(s *loop.Search, n int, epoch float64) float64 {
	var x float64
	_, _ = fmt.Sscan(s.Texts(n)[0], &x)
	return (x-3)*(x-3) + 1/epoch
}

// act is a question (at 0) or a told value.
type act struct {
	worker int
	told   loop.Told
	ask    bool
}

// played drives a search to its end with a program of as many workers as it has, and returns what it did.
func played(t *testing.T, s *loop.Search, cost string) (acts []act) {
	t.Helper()
	has := make([]int, s.Spec.Workers)
	for w := range has {
		has[w] = -1
	}
	for ended, waits := 0, 0; ended < len(has); {
		ended, waits = 0, 0
		for w := range has {
			if has[w] < 0 {
				a, changed, err := s.Ask(w)
				must.Do(t, err)
				if changed {
					acts = append(acts, act{worker: w, ask: true})
				}
				switch a.Do {
				case loop.Train:
					has[w] = a.Trial
				case loop.End:
					ended++
				default:
					waits++
				}
				continue
			}
			tr := &s.Trials[has[w]]
			v := loop.Told{Trial: has[w], At: tr.At() + 1, Cost: usd(cost), Priced: true}
			v.Value = loss(s, has[w], v.At)
			a, _, err := s.Report(v)
			must.Do(t, err)
			if acts = append(acts, act{told: v}); a.Do != loop.Continue {
				has[w] = -1
			}
		}
		if waits == len(has) || len(acts) > 100_000 {
			t.Fatal("every worker waits")
		}
	}
	return acts
}

func TestSearch_StaysWithinItsLimitsAndFindsAGoodTrial(t *testing.T) {
	for _, name := range replay.Names() {
		for _, workers := range []int{1, 3} {
			s := open(t, space(name, 0, "3", workers))
			played(t, s, "0.02")
			if s.Spent.Cmp(usd("3")) > 0 || s.Over != loop.BudgetSpent || !s.Priced {
				t.Errorf("%s with %d workers spends %s and ends with %s", name, workers, s.Spent, s.Over)
			}
			sum := money.Amount{}
			for n := range s.Trials {
				sum = sum.Add(s.Trials[n].Spent)
			}
			if sum != s.Spent {
				t.Errorf("%s: the trials cost %s, and the search %s", name, sum, s.Spent)
			}
			n, best := s.Best()
			if n < 0 || best.Value > 1.5 {
				t.Errorf("%s with %d workers finds %g", name, workers, best.Value)
			}
			s = open(t, space(name, 7, "", workers))
			if played(t, s, "0"); len(s.Trials) > 7 || s.Over != loop.SearchDone {
				t.Errorf("%s with %d workers starts %d of 7 trials and ends with %s", name, workers, len(s.Trials), s.Over)
			}
		}
	}
}

func TestSearch_IsRebuiltByReplay(t *testing.T) {
	for _, name := range replay.Names() {
		spec := space(name, 0, "2", 2)
		s := open(t, spec)
		acts := played(t, s, "0.03")
		again := open(t, spec)
		for _, a := range acts {
			var err error
			if a.ask {
				_, _, err = again.Ask(a.worker)
			} else {
				_, _, err = again.Report(a.told)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !reflect.DeepEqual(again.Trials, s.Trials) || again.Over != s.Over {
			t.Errorf("%s: a replay of what it was asked and told differs", name)
		}
	}
}

func TestAsk_GivesTheSameTrialUntilItIsLeft(t *testing.T) {
	s := open(t, space("random", 3, "", 2))
	a, changed, _ := s.Ask(0)
	b, again, _ := s.Ask(0)
	c, _, _ := s.Ask(1)
	if a != b || !changed || again || c.Trial == a.Trial {
		t.Errorf("worker 0 gets %v and then %v, and worker 1 %v", a, b, c)
	}
	if _, _, err := s.Ask(2); !errors.Is(err, loop.ErrInvalid) {
		t.Errorf("a third worker: %v", err)
	}
}

func TestReport_RefusesWhatCannotBe(t *testing.T) {
	s := open(t, space("random", 2, "", 1))
	a, _, _ := s.Ask(0)
	tell := func(trial int, at, value float64) error {
		before := fmt.Sprintf("%+v", s.Trials)
		_, changed, err := s.Report(loop.Told{Trial: trial, At: at, Value: value})
		if err != nil && (changed || before != fmt.Sprintf("%+v", s.Trials)) {
			t.Errorf("a refused value has changed the search: %v", err)
		}
		return err
	}
	for n, c := range []struct {
		trial     int
		at, value float64
		want      error
	}{
		{a.Trial, 1, 5, nil}, {a.Trial, 1, 5, nil}, {a.Trial, 1, 4, loop.ErrTwice}, {a.Trial, 4, 5, loop.ErrOrder},
		{a.Trial, 2.5, 5, loop.ErrOrder}, {a.Trial, 1.5, 5, nil}, {a.Trial, 2, 5, nil}, {a.Trial, 1.7, 5, loop.ErrOrder}, {9, 1, 5, loop.ErrUnknown}, {-1, 1, 5, loop.ErrUnknown},
		{a.Trial, 3, math.NaN(), loop.ErrInvalid}, {a.Trial, 10, 5, loop.ErrInvalid}, {a.Trial, 0, 5, loop.ErrInvalid},
		{a.Trial, math.NaN(), 5, loop.ErrInvalid},
	} {
		if err := tell(c.trial, c.at, c.value); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("case %d: %v", n, err)
		}
	}
	answer, _, err := s.Report(loop.Told{Trial: a.Trial, At: 3, Bad: true})
	if err != nil || answer.Do != loop.Stop || s.Trials[a.Trial].State != loop.Failed {
		t.Errorf("a value that is not a number: %v, %v", answer, err)
	}
	if err := tell(a.Trial, 4, 5); !errors.Is(err, loop.ErrEnded) {
		t.Errorf("a value of a failed trial: %v", err)
	}
	if b, _, _ := s.Ask(0); b.Do != loop.Train || b.Trial == a.Trial {
		t.Errorf("then comes %v", b)
	}
}

func TestReport_TakesTheValueOfATrialThatTrainsWhileTheSearchEnds(t *testing.T) {
	s := open(t, space("random", 0, "1", 2))
	a, _, _ := s.Ask(0)
	b, _, _ := s.Ask(1)
	if got, _, err := s.Report(loop.Told{Trial: a.Trial, At: 1, Value: 2, Cost: usd("1"), Priced: true}); err != nil || got.Do != loop.Stop || s.Over != loop.BudgetSpent {
		t.Fatalf("the budget is spent: %v, %v, over for %q", got, err, s.Over)
	}
	got, _, err := s.Report(loop.Told{Trial: b.Trial, At: 1, Value: 1, Cost: usd("0.5"), Priced: true})
	if n, best := s.Best(); err != nil || got.Do != loop.Stop || n != b.Trial || best.Value != 1 || s.Spent != usd("1.5") {
		t.Errorf("it answers %v, %v; the best is trial %d with %g", got, err, n, best.Value)
	}
	if _, _, err := s.Report(loop.Told{Trial: b.Trial, At: 2, Value: 1}); !errors.Is(err, loop.ErrEnded) {
		t.Errorf("another value: %v", err)
	}
}

func TestCheck_RefusesWhatOnlyMachinesHave(t *testing.T) {
	for want, change := range map[string]func(*loop.Spec){
		"study.at_once":    func(s *loop.Spec) { s.Workers = 0 },
		"study.gpu_hours":  func(s *loop.Spec) { s.Study.GPUHours = 1 },
		"study.wall_clock": func(s *loop.Spec) { s.Study.Wall = 1 },
		"study.final":      func(s *loop.Spec) { s.Study.Final = true },
		"budget":           func(s *loop.Spec) { s.Budget = nil },
		"study.searcher":   func(s *loop.Spec) { s.Study.Searcher = "magic" },
		"study.params[0]":  func(s *loop.Spec) { s.Study.Params[0].Min = 11 },
	} {
		s := space("default", 0, "5", 1)
		change(&s)
		if field, err := s.Check(); field != want || err == nil {
			t.Errorf("%s: %q, %v", want, field, err)
		}
	}
}

func TestReport_TakesFractionsUpToTheNextDecisionAndNoneBeyond(t *testing.T) {
	spec := space("random", 1, "", 1)
	spec.Study.Fidelity.Min = 3
	s := open(t, spec)
	a, _, _ := s.Ask(0)
	for _, c := range []struct {
		at, until float64 // the next decision after it
		want      error
	}{{1, 3, nil}, {4, 3, loop.ErrOrder}, {2.9, 3, nil}, {3.1, 3, loop.ErrOrder}, {3, 6, nil}, {6.5, 6, loop.ErrOrder},
		{6, 9, nil}, {9, 9, nil}} {
		_, _, err := s.Report(loop.Told{Trial: a.Trial, At: c.at, Value: 1})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || s.Until(a.Trial) != c.until {
			t.Errorf("at %g: %v, and the next decision is at %g", c.at, err, s.Until(a.Trial))
		}
	}
}

// Without a budget a free worker trains the best of each rung on, about a third of it, and the best trial in full.
func TestAsk_PromotesTheBestThirdWhenOnlyTheTrialsAreLimited(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for _, trials := range []int{1, 2, 7, 12, 40} {
			s := open(t, space("asha-promo", trials, "", workers))
			played(t, s, "0")
			got := map[float64]int{}
			for n := range s.Trials {
				got[s.Trials[n].At()]++
			}
			best, _ := s.Best()
			if got[1] < trials/2 || got[9] < 1 || got[9] > max(1, trials/3) || s.Trials[best].At() != 9 {
				t.Errorf("%d workers train %v of %d trials, and the best is trial %d", workers, got, trials, best)
			}
		}
	}
}
