package propose

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// A planner answers within milliseconds, also about a search with ten thousand trials that have begun: each answer
// costs only what is new. With the default searcher it is the pool that has ten thousand configurations.
func BenchmarkPlanner_TenThousandTrials(b *testing.B) {
	for _, searcher := range []string{"asha-stop", "asha-promo", "default"} {
		b.Run(searcher, func(b *testing.B) {
			st := spec(searcher, func(s *study.Spec) {
				s.Trials, s.Params[1].Min, s.Params[1].Max, s.Params[1].Values = 10_000, 0, 1, nil
			})
			const most = 10_000
			begins, turns := most, 1_000_000
			if searcher == "default" {
				begins, turns = 0, 2_000
			}
			for b.Loop() {
				var p Planner
				s := groups.Snapshot{Group: "s", Kind: groups.Study, Study: st, Budget: 1e9, AtOnce: 8}
				pool, spent, units := st.Pool(), make([]float64, most), make([]int, most)
				took, slowest, answers := time.Duration(0), time.Duration(0), 0
				for turn := 0; turn < turns && (begins == 0 || len(s.Trials) < begins); turn++ {
					began := time.Now()
					moves := p.Moves(s)
					d := time.Since(began)
					took, slowest, answers = took+d, max(slowest, d), answers+1
					s.Trials = slices.Clone(s.Trials[:len(s.Trials):len(s.Trials)])
					for _, v := range moves {
						switch v.Do {
						case groups.Start:
							s.Trials = append(s.Trials, groups.Trial{Config: v.Config, Phase: groups.Open})
						case groups.Resume:
							s.Trials[v.Member].Phase = groups.Open
						case groups.Pause, groups.Stop:
							t := &s.Trials[v.Member]
							t.Phase = groups.Over
							if v.Do == groups.Pause {
								t.Phase = groups.Paused
							}
							s.Reports = append(s.Reports, groups.Report{Trial: v.Member, Spent: spent[v.Member], Phase: t.Phase,
								Cut: v.Do == groups.Stop})
						case groups.Finish, groups.Reuse, groups.Keep, groups.Fail, groups.Skip, groups.Await:
							b.Fatal("the search ends: ", v.Why)
						}
					}
					for n := range s.Trials {
						if t := &s.Trials[n]; t.Phase == groups.Open {
							spent[n], units[n] = spent[n]+1, units[n]+1
							s.Reports = append(s.Reports, groups.Report{Trial: n, Unit: units[n], Spent: spent[n],
								Value: (pool[t.Config][0] - 0.03) * (pool[t.Config][0] - 0.03) / float64(units[n])})
							if units[n] == st.Units() {
								t.Phase = groups.Over
								s.Reports = append(s.Reports, groups.Report{Trial: n, Spent: spent[n], Phase: groups.Over})
							}
						}
					}
				}
				if answers < 100 || begins > 0 && len(s.Trials) < begins {
					b.Fatalf("%d answers about %d trials", answers, len(s.Trials))
				}
				b.ReportMetric(float64(took.Microseconds())/1000/float64(answers), "ms/answer")
				b.ReportMetric(float64(slowest.Microseconds())/1000, "ms/slowest")
				b.ReportMetric(float64(len(s.Trials)), "trials")
			}
		})
	}
}
