package replay

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/work/tune"
)

// A rule is a property of a searcher on a table. It returns what is wrong, or "".
type rule func(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) string

// watched is a searcher that calls see with each choice.
type watched struct {
	tune.Searcher
	see func(h *tune.History, worker int, c tune.Choice) tune.Choice
}

func (w watched) Next(h *tune.History, worker int) tune.Choice {
	return w.see(h, worker, w.Searcher.Next(h, worker))
}

func searchOf(table *Table, seed uint64) *tune.Search {
	return &tune.Search{Space: table.Space, Trials: table.Configs, Epochs: table.MaxEpoch, Budget: table.BudgetSeconds,
		Switch: table.SwitchSeconds, Seed: seed}
}

// choices plays a search and returns its choices in order.
func choices(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) (list []string, res Result, err error) {
	s := searchOf(table, seed)
	by := watched{fresh(s), func(_ *tune.History, w int, c tune.Choice) tune.Choice {
		list = append(list, fmt.Sprint(w, c.Trial))
		return c
	}}
	res, err = Play(table, "x", by, s, 0, goOn)
	return list, res, err
}

// withinBudget: the search spends at most 0.1 % more than its budget, and at least 95 % of it.
func withinBudget(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) string {
	spent := 0.0
	s := searchOf(table, seed)
	by := watched{fresh(s), func(h *tune.History, _ int, c tune.Choice) tune.Choice {
		spent = h.Spent
		return c
	}}
	res, err := Play(table, "x", by, s, 0, goOn)
	switch {
	case err != nil:
		return err.Error()
	case res.Overshoot > 0.001:
		return fmt.Sprintf("spends %.2f %% beyond the budget", 100*res.Overshoot)
	case spent < 0.95*s.Budget && table.Table != diverge && table.Table != same:
		return fmt.Sprintf("leaves %.1f %% of the budget", 100-100*spent/s.Budget)
	}
	return ""
}

// repeats: the same seed gives the same choices.
func repeats(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) string {
	a, _, err := choices(table, fresh, seed)
	b, _, _ := choices(table, fresh, seed)
	if err != nil {
		return err.Error()
	}
	if !slices.Equal(a, b) {
		return "chooses otherwise with the same seed"
	}
	return ""
}

// allowed: no choice is a trial that is running, has diverged or is complete. Play refuses such a choice.
func allowed(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) string {
	if _, _, err := choices(table, fresh, seed); err != nil {
		return err.Error()
	}
	return ""
}

// orderless: the order of simultaneous reports does not matter. It plays rounds of two workers whose epochs end
// together.
func orderless(table *Table, fresh func(*tune.Search) tune.Searcher, seed uint64) string {
	run := func(turn bool) (list []string) {
		s := searchOf(table, seed)
		h, by := tune.NewHistory(s), fresh(s)
		for range 60 {
			var reports []tune.Report
			for w := range 2 {
				c := by.Next(h, w)
				list = append(list, fmt.Sprint(c.Trial))
				if c.Trial == tune.None {
					continue
				}
				if !h.Free(c.Trial) {
					return append(list, "not free")
				}
				moved := h.Start(c.Trial, w)
				e := h.Epoch(c.Trial)
				reports = append(reports, tune.Report{Trial: c.Trial, Epoch: e + 1, Value: table.Curves[c.Trial][e].Value,
					Cost: table.Curves[c.Trial][e].Seconds, Moved: moved, Spent: h.Spent + 1})
			}
			if turn {
				slices.Reverse(reports)
			}
			for _, r := range reports {
				h.Add(r)
			}
		}
		return list
	}
	if !slices.Equal(run(false), run(true)) {
		return "chooses otherwise when two reports come in another order"
	}
	return ""
}

// Every searcher has these properties on every kind of table.
func TestSearchers_KeepTheirProperties(t *testing.T) {
	for _, like := range likes {
		for seed := range uint64(lane.Pick(1, 30)) {
			table := generate(t, like, seed, 40+int(7*seed), 9+int(3*seed))
			for _, s := range searchers {
				rules := map[string]rule{"repeats": repeats, "allowed": allowed, "orderless": orderless}
				if s.name == "default" { // the others behave as in the protocol
					rules["withinBudget"] = withinBudget
				}
				for name, keeps := range rules {
					if wrong := keeps(table, s.make, seed); wrong != "" {
						t.Errorf("%s, %s, %s, seed %d: %s", s.name, name, like, seed, wrong)
					}
				}
			}
		}
	}
}

// A property that no searcher can violate is worthless: each one finds a searcher with a fault.
func TestProperties_FindPlantedFaults(t *testing.T) {
	good := func() func(*tune.Search) tune.Searcher { return searchers[len(searchers)-1].make }()
	with := func(see func(h *tune.History, worker int, c tune.Choice) tune.Choice) func(*tune.Search) tune.Searcher {
		return func(s *tune.Search) tune.Searcher { return watched{good(s), see} }
	}
	made := 0
	for name, fault := range map[string]struct {
		rule rule
		like string
		make func(*tune.Search) tune.Searcher
	}{
		"a trial that runs": {allowed, plain, with(func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			for t, r := range h.Runs {
				if r.Worker != tune.None {
					return tune.Train(t)
				}
			}
			return c
		})},
		"a trial that diverged": {allowed, diverge, with(func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			for t, r := range h.Runs {
				if r.Failed {
					return tune.Train(t)
				}
			}
			return c
		})},
		"beyond the budget": {withinBudget, plain, with(func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			for t := range h.Runs {
				if c.Trial == tune.None && h.Free(t) {
					return tune.Train(t)
				}
			}
			return c
		})},
		"half of the budget": {withinBudget, plain, with(func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			if h.Spent > h.Budget/2 {
				return tune.Wait
			}
			return c
		})},
		"chance that was not passed in": {repeats, plain, func(s *tune.Search) tune.Searcher {
			made++
			other := *s
			other.Seed += uint64(made)
			return good(&other)
		}},
		"the newest report": {orderless, plain, with(func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			if n := len(h.Reports); n > 0 && h.Free(h.Reports[n-1].Trial) {
				return tune.Train(h.Reports[n-1].Trial)
			}
			return c
		})},
	} {
		if wrong := fault.rule(generate(t, fault.like, 1, 40, 12), fault.make, 1); wrong == "" {
			t.Errorf("a searcher that takes %s keeps the property", name)
		}
	}
}

// A trial whose value is not finite is not trained again, and is not the incumbent.
func TestSearchers_StopTrialsThatDiverge(t *testing.T) {
	table := generate(t, diverge, 3, 60, 12)
	for _, s := range searchers {
		failed := map[tune.Trial]bool{}
		search := searchOf(table, 3)
		by := watched{s.make(search), func(h *tune.History, _ int, c tune.Choice) tune.Choice {
			for t, r := range h.Runs {
				failed[t] = failed[t] || r.Failed
			}
			if c.Trial != tune.None && failed[c.Trial] {
				t.Errorf("%s trains trial %d, which diverged", s.name, c.Trial)
			}
			if math.IsNaN(h.Incumbent) || math.IsInf(h.Incumbent, -1) {
				t.Errorf("%s: the incumbent is %g", s.name, h.Incumbent)
			}
			return c
		}}
		if _, err := Play(table, s.name, by, search, 0, goOn); err != nil {
			t.Error(err)
		}
		if !slices.Contains(slices.Collect(func(yield func(bool) bool) {
			for _, f := range failed {
				if !yield(f) {
					return
				}
			}
		}), true) {
			t.Errorf("%s met no trial that diverges", s.name)
		}
	}
}
