package propose

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// proxied is a search on a proxy of three of nine epochs.
func proxied(searcher string, seed uint64, promote int) *study.Spec {
	return spec(searcher, func(s *study.Spec) {
		s.Seed = seed
		s.Proxy = &study.Proxy{Set: map[string]string{"data_fraction": "0.1"}, Max: 3, Promote: promote}
	})
}

// A search on a proxy leaves half of the budget to the best configurations. It trains them in full, the best first and
// alone, and begins no other unless the rest pays for all of it. The planner gives the same moves with and without a
// memory.
func TestProxy_TrainsTheBestInFullWithinTheReserve(t *testing.T) {
	for _, searcher := range []string{"random", "asha-stop", "asha-promo", "top-k", "default"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(searcher, seed), func(t *testing.T) {
				l := newLab(t, proxied(searcher, seed, 3), 100, 1+int(seed), seed)
				l.more = 1.5 + float64(seed)
				total := l.play()
				onProxy, best, full := 0.0, map[int]float64{}, []int{}
				for m, tr := range l.s.Trials {
					if tr.Promoted {
						full = append(full, m)
						continue
					}
					onProxy += l.spent[m]
					for _, r := range l.s.Reports {
						if v, is := best[tr.Config]; r.Trial == m && r.Phase == "" && (!is || r.Value < v || r.Bad) && v > -1 {
							if best[tr.Config] = r.Value; r.Bad {
								best[tr.Config] = -1 // it failed
							}
						}
					}
				}
				most := 50 + 4*float64(1+seed) // each worker trains on until it has left
				if onProxy > most || onProxy < 25 && searcher != "asha-stop" || total > most+50 {
					t.Errorf("%g is spent on the proxy and %g in all, of 100 (%s)", onProxy, total, l.over)
				}
				if len(full) == 0 || len(full) > 3 {
					t.Fatalf("%d trials are promoted (%s)", len(full), l.over)
				}
				config := func(m int) int { return l.s.Trials[m].Config }
				var order []int
				for c, v := range best {
					if v > -1 {
						order = append(order, c)
					}
				}
				slices.SortFunc(order, func(a, b int) int { return map[bool]int{true: -1, false: 1}[best[a] < best[b]] })
				for i, m := range full {
					if config(m) != order[i] && best[config(m)] != best[order[i]] {
						t.Errorf("configuration %d with %g is promoted as number %d, and %d has %g", config(m), best[config(m)], i,
							order[i], best[order[i]])
					}
					failed := slices.ContainsFunc(l.s.Reports, func(r groups.Report) bool { return r.Trial == m && r.Bad })
					if l.units[m] != 9 && !failed {
						t.Errorf("trial %d is trained for %d of 9 epochs", m, l.units[m])
					}
				}
			})
		}
	}
}

// When the core says that the money for the proxy is spent, its trials end and the best is trained in full, whether the
// planner learns of it before or after later reports.
func TestProxy_EndsWhenTheCoreSaysSo(t *testing.T) {
	l := newLab(t, proxied("random", 1, 2), 100, 2, 1)
	for len(l.s.Reports) < 6 {
		l.ask()
		l.turn()
	}
	now := len(l.s.Reports)
	l.turn()
	fresh := l.s
	fresh.Promotes = &now
	moves := l.planner.Moves(fresh)
	if again := Moves(fresh); !reflect.DeepEqual(moves, again) {
		t.Errorf("with a memory %v, without %v", moves, again)
	}
	for _, v := range moves {
		if v.Do == groups.Start && !v.Promoted || v.Do == groups.Resume {
			t.Errorf("%+v goes on with the proxy", v)
		}
	}
	l.s.Promotes = &now
	if l.play(); !slices.ContainsFunc(l.s.Trials, func(x groups.Trial) bool { return x.Promoted }) {
		t.Errorf("no trial is promoted (%s)", l.over)
	}
}

// Where the reserve does not pay for what the proxy already costs, nothing is begun that could not end.
func TestProxy_PromotesNothingThatTheReserveCannotPay(t *testing.T) {
	s := proxied("random", 2, 1)
	s.Proxy.Reserve, s.Trials = study.LeastReserve, 2
	l := newLab(t, s, 11, 1, 3)
	if l.play(); l.over != BudgetSpent || slices.ContainsFunc(l.s.Trials, func(x groups.Trial) bool { return x.Promoted }) {
		t.Errorf("%s after %d trials", l.over, len(l.s.Trials))
	}
}
