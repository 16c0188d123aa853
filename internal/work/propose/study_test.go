package propose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

func spec(searcher string, change func(*study.Spec)) *study.Spec {
	s := &study.Spec{Metric: "loss", Searcher: searcher, Seed: 7, Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9},
		Params: []study.Param{{Name: "lr", Min: 1e-4, Max: 1, Log: true}, {Name: "width", Values: []string{"8", "16", "32"}}}}
	if change != nil {
		change(s)
	}
	return s
}

// lab runs trials under a planner: the open trials take turns to train a unit. It has the state that the core would
// have.
type lab struct {
	t       *testing.T
	rng     *rand.Rand
	s       groups.Snapshot
	planner Planner
	spent   []float64
	units   []int
	over    string
	price   float64
	more    float64 // that a unit of a promoted trial costs
	begun   map[int]bool
	flat    bool    // the metric never changes
	gain    float64 // at which the search ended
}

// bestLoss returns the smallest loss that a trial of the pool can reach.
func (l *lab) bestLoss() float64 {
	best := math.Inf(1)
	for c := range l.s.Study.Pool() {
		best = math.Min(best, l.loss(c, l.s.Study.Units()))
	}
	return best
}

// total returns what all trials have cost.
func (l *lab) total() (sum float64) {
	for _, s := range l.spent {
		sum += s
	}
	return sum
}

func newLab(t *testing.T, s *study.Spec, budget float64, atOnce int, seed uint64) *lab {
	if field, err := s.Check(); err != nil {
		t.Fatal(field, err)
	}
	return &lab{t: t, rng: rand.New(rand.NewPCG(seed, 1)), price: 1, begun: map[int]bool{},
		s: groups.Snapshot{Group: "s", Kind: groups.Study, Study: s, Budget: budget, AtOnce: atOnce}}
}

// loss returns the loss of a configuration so far: the best is near lr 0.03.
func (l *lab) loss(config, unit int) float64 {
	if l.flat {
		return 1
	}
	v := l.s.Study.Pool()[config]
	return math.Pow(math.Log10(v[0])+1.5, 2) + 0.1*v[1] + 2*math.Exp(-float64(unit)/2)
}

func (l *lab) ask() {
	snap := l.s
	snap.Trials, snap.Reports = slices.Clone(l.s.Trials), slices.Clone(l.s.Reports)
	moves := l.planner.Moves(snap)
	if fresh := Moves(snap); !reflect.DeepEqual(moves, fresh) {
		l.t.Fatalf("after %d reports a planner that has seen the study says %v, a new one %v", len(snap.Reports), moves, fresh)
	}
	for _, v := range moves {
		l.move(v)
	}
}

func (l *lab) active() (n int) {
	for _, t := range l.s.Trials {
		if t.Phase == groups.Open || t.Phase == groups.Leaving {
			n++
		}
	}
	return n
}

func (l *lab) move(v groups.Move) {
	if (v.Why == FinalRun) != (v.Among == 1 && !v.Promoted) {
		l.t.Fatalf("%+v: the best trial gets all that is left, any other one a share", v)
	}
	switch v.Do {
	case groups.Start:
		key := v.Config
		if v.Promoted {
			key = -1 - v.Config
		}
		if l.begun[key] || v.Member != len(l.s.Trials) || l.active() >= l.s.AtOnce {
			l.t.Fatalf("%+v: it has begun, is not the next, or %d train already", v, l.active())
		}
		l.begun[key] = true
		l.s.Trials = append(l.s.Trials, groups.Trial{Config: v.Config, Phase: groups.Open, Promoted: v.Promoted})
		l.spent, l.units = append(l.spent, 0.5*l.price), append(l.units, 0)
	case groups.Resume:
		if l.s.Trials[v.Member].Phase != groups.Paused || l.active() >= l.s.AtOnce {
			l.t.Fatalf("%+v: it is %s, and %d train", v, l.s.Trials[v.Member].Phase, l.active())
		}
		l.s.Trials[v.Member].Phase = groups.Open
		l.spent[v.Member] += 0.5 * l.price
	case groups.Pause:
		l.s.Trials[v.Member].Phase = groups.Leaving
	case groups.Stop:
		l.s.Trials[v.Member].Phase = groups.Leaving
		l.units[v.Member] = -1 // it never continues
	case groups.Finish:
		l.over, l.gain = v.Why, v.Gain
	case groups.Reuse, groups.Keep, groups.Fail, groups.Skip, groups.Await:
		l.t.Fatalf("%+v is no move of a study", v)
	}
}

// turn lets one trial train a unit, or leave.
func (l *lab) turn() bool {
	var can []int
	for m, t := range l.s.Trials {
		if t.Phase == groups.Open || t.Phase == groups.Leaving {
			can = append(can, m)
		}
	}
	if len(can) == 0 {
		return false
	}
	m := can[l.rng.IntN(len(can))]
	t := &l.s.Trials[m]
	if t.Phase == groups.Leaving && l.rng.IntN(2) == 0 {
		r := groups.Report{Trial: m, Spent: l.spent[m], Phase: groups.Paused}
		if t.Phase = groups.Paused; l.units[m] < 0 {
			t.Phase, r.Phase, r.Cut = groups.Over, groups.Over, true
		}
		l.s.Reports = append(l.s.Reports, r)
		return true
	}
	if l.units[m] < 0 {
		return true
	}
	l.units[m]++
	l.spent[m] += l.price
	if t.Promoted {
		l.spent[m] += l.more
	}
	r := groups.Report{Trial: m, Unit: l.units[m], Value: l.loss(t.Config, l.units[m]), Spent: l.spent[m]}
	if l.s.Study.Maximize {
		r.Value = -r.Value
	}
	if l.rng.IntN(40) == 0 {
		r.Value, r.Bad = 0, true
	}
	l.s.Reports = append(l.s.Reports, r)
	end := l.s.Study.Length(t.Promoted).Units()
	if l.units[m] > end {
		l.t.Fatalf("trial %d trains unit %d of %d", m, l.units[m], end)
	}
	if r.Bad || l.units[m] == end {
		t.Phase = groups.Over
		l.s.Reports = append(l.s.Reports, groups.Report{Trial: m, Spent: l.spent[m], Phase: groups.Over, Cut: r.Bad})
	}
	return true
}

func (l *lab) play() (total float64) {
	for n := 0; l.over == ""; n++ {
		l.ask()
		for range 1 + l.rng.IntN(3) { // several things happen before the planner is called
			if !l.turn() {
				break
			}
		}
		if n > 5000 {
			l.t.Fatal("the search never ends")
		}
	}
	for _, s := range l.spent {
		total += s
	}
	return total
}

// A search spends most of its budget and hardly more. It starts no configuration twice, and trains none beyond the end.
// Its planner gives the same answers with and without a memory.
func TestStudy_KeepsItsPropertiesWithEverySearcher(t *testing.T) {
	for _, searcher := range []string{"random", "median-stop", "asha-stop", "asha-promo", "hyperband-async", "top-k", "default"} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(searcher, seed), func(t *testing.T) {
				l := newLab(t, spec(searcher, func(s *study.Spec) {
					s.Seed, s.Maximize = seed, seed%2 == 1
					if seed > 3 {
						s.Trials = 6
					}
				}), 60, 1+int(seed), seed)
				// The core ends trials at the end of the budget; here each continues until it has left.
				if total := l.play(); total > 60+4*float64(1+seed) || total < 45 && seed < 4 {
					t.Errorf("it has spent %g of 60 (%s)", total, l.over)
				}
				if len(l.s.Trials) > 6 && seed > 3 {
					t.Errorf("%d trials have begun, and 6 may", len(l.s.Trials))
				}
			})
		}
	}
}

// With final, money is reserved for the best configuration, which is fully trained at the end.
func TestStudy_TrainsTheBestInFullAtTheEnd(t *testing.T) {
	for _, searcher := range []string{"asha-promo", "top-k", "default"} {
		for seed := range uint64(4) {
			l := newLab(t, spec(searcher, func(s *study.Spec) { s.Final, s.Seed = true, seed }), 70, 3, seed)
			total := l.play()
			best, value := -1, math.Inf(1)
			for _, r := range l.s.Reports {
				if r.Phase == "" && !r.Bad && r.Value < value {
					best, value = r.Trial, r.Value
				}
			}
			if l.units[best] != 9 || total > 75 {
				t.Errorf("%s, seed %d: the best trial was trained for %d units, and %g is spent", searcher, seed, l.units[best], total)
			}
		}
	}
}

// Without a fidelity each trial is one run.
func TestStudy_RunsEachConfigurationOnceWithoutAFidelity(t *testing.T) {
	l := newLab(t, spec("random", func(s *study.Spec) {
		s.Fidelity, s.Grid, s.Trials = study.Fidelity{}, true, 0
		s.Params = []study.Param{{Name: "a", Values: []string{"1", "2", "3"}}, {Name: "b", Min: 1, Max: 2, Int: true}}
	}), 100, 2, 1)
	l.s.Study.Params = slices.Clone(l.s.Study.Params)
	for l.over == "" {
		l.ask()
		for m := range l.s.Trials {
			if l.s.Trials[m].Phase == groups.Open {
				l.s.Trials[m].Phase = groups.Over
				l.s.Reports = append(l.s.Reports, groups.Report{Trial: m, Unit: 1, Value: float64(m), Spent: 1},
					groups.Report{Trial: m, Spent: 1, Phase: groups.Over})
				break
			}
		}
	}
	if len(l.s.Trials) != 6 || l.over != SearchDone {
		t.Errorf("%d of 6 combinations have run (%s)", len(l.s.Trials), l.over)
	}
}

// BenchmarkStudy asks for moves after each report of a study with 10,000 trials.
func BenchmarkStudy(b *testing.B) {
	for _, searcher := range []string{"asha-stop", "default"} {
		b.Run(searcher, func(b *testing.B) {
			s := spec(searcher, func(s *study.Spec) { s.Trials = 10_000 })
			snap := groups.Snapshot{Group: "s", Kind: groups.Study, Study: s, Budget: 1e6, AtOnce: 64}
			rng := rand.New(rand.NewPCG(1, 2))
			for c := range 10_000 {
				phase := groups.Over
				if c >= 9_936 {
					phase = groups.Open
				}
				snap.Trials = append(snap.Trials, groups.Trial{Config: c, Phase: phase})
			}
			p := new(Planner)
			p.Moves(snap)
			for c := range 3000 {
				snap.Reports = append(snap.Reports, groups.Report{Trial: c, Unit: 1, Value: rng.Float64(), Spent: 1},
					groups.Report{Trial: c, Phase: groups.Over, Spent: 1, Cut: true})
			}
			b.Run("rebuild", func(b *testing.B) {
				for b.Loop() {
					Moves(snap)
				}
			})
			p.Moves(snap)
			b.Run("next", func(b *testing.B) {
				n := 3000
				for b.Loop() {
					snap.Reports = append(snap.Reports, groups.Report{Trial: n % 10_000, Unit: 1, Value: rng.Float64(), Spent: 1})
					n++
					p.Moves(snap)
				}
			})
		})
	}
}

// A search whose metric never changes ends by itself with every searcher, long before its budget is spent. With final it
// still trains the best in full.
func TestStudy_EndsOnAPlateauWithEverySearcher(t *testing.T) {
	for _, searcher := range []string{"random", "median-stop", "asha-stop", "asha-promo", "hyperband-async", "top-k", "default"} {
		for _, final := range []bool{false, true} {
			l := newLab(t, spec(searcher, func(s *study.Spec) {
				s.Final, s.Plateau = final && s.Resumes(), &study.Plateau{Patience: 10, MinGain: 0.5}
			}), 2000, 3, 1)
			l.flat = true
			total, best := l.play(), 0
			for _, n := range l.units {
				best = max(best, n)
			}
			if l.over != Plateau || total > 200 || !(l.gain < 0.5) {
				t.Errorf("%s: it ended as %s after %g of 2000, at a gain of %g", searcher, l.over, total, l.gain)
			}
			if l.s.Study.Final && best != 9 {
				t.Errorf("%s: the best was trained for %d of 9 units", searcher, best)
			}
		}
	}
}

// What an earlier search has found costs nothing, is no trial of this one, and lets it find a good trial sooner.
func TestStudy_LearnsFromAnEarlierSearch(t *testing.T) {
	play := func(past []study.Past) (*lab, int) {
		l := newLab(t, spec("default", func(s *study.Spec) { s.Past = past }), 60, 2, 1)
		for l.over == "" && len(l.s.Reports) < 400 {
			l.ask()
			for range 2 {
				l.turn()
			}
		}
		goal := l.bestLoss() + 0.05
		for n, r := range l.s.Reports {
			if r.Phase == "" && !r.Bad && r.Value <= goal {
				return l, n
			}
		}
		return l, len(l.s.Reports)
	}
	old, cold := play(nil)
	var past []study.Past
	pool := old.s.Study.Pool()
	for _, r := range old.s.Reports {
		if r.Phase == "" && !r.Bad {
			past = append(past, study.Past{Params: old.s.Study.Texts(pool, old.s.Trials[r.Trial].Config),
				Points: []study.Point{{Unit: float64(r.Unit), Value: r.Value}}})
		}
	}
	l, warm := play(past)
	if warm >= cold {
		t.Errorf("a search that knows another one finds a good trial after %d reports, and without it after %d", warm, cold)
	}
	if total := l.total(); total > 70 || len(l.s.Trials) == 0 {
		t.Errorf("it has spent %g of 60 on %d trials", total, len(l.s.Trials))
	}
}
