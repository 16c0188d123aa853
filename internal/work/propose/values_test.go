package propose

import (
	"testing"

	"scrimp/internal/work/groups"
)

// A search ends once several trials have ended without reporting a value. A failed trial counts half, a stopped one does
// not count, and a single value keeps the search going.
func TestStudy_EndsWhenNoValueArrives(t *testing.T) {
	ended := func(searcher string, atOnce int, change func(n int, r *groups.Report)) (trials int, why string) {
		s := groups.Snapshot{Group: "s", Kind: groups.Study, Study: spec(searcher, nil), Budget: 1000, AtOnce: atOnce}
		for len(s.Trials) < 40 {
			for _, v := range Moves(s) {
				if v.Do == groups.Finish {
					return len(s.Trials), v.Why
				}
				if v.Do != groups.Start {
					continue
				}
				n := len(s.Trials)
				s.Trials = append(s.Trials, groups.Trial{Config: v.Config, Phase: groups.Over})
				r := groups.Report{Trial: n, Spent: 0.1, Phase: groups.Over}
				change(n, &r)
				s.Reports = append(s.Reports, r)
			}
		}
		return len(s.Trials), ""
	}
	for _, searcher := range []string{"random", "asha-stop", "default"} {
		for atOnce, most := range map[int]int{1: 3, 2: 4, 5: 5} {
			if n, why := ended(searcher, atOnce, func(int, *groups.Report) {}); why != NoValues || n < 3 || n > most {
				t.Errorf("%s, %d at once: %d trials without a value began, and it ended as %q", searcher, atOnce, n, why)
			}
			n, why := ended(searcher, atOnce, func(_ int, r *groups.Report) { r.Bad = true })
			if least := 2 * max(3, atOnce); why != NoValues || n < least || n >= least+atOnce {
				t.Errorf("%s, %d at once: %d failing trials began, and it ended as %q", searcher, atOnce, n, why)
			}
		}
		for name, change := range map[string]func(n int, r *groups.Report){
			"stopped": func(_ int, r *groups.Report) { r.Cut = true },
			"valued": func(n int, r *groups.Report) {
				if n == 1 {
					*r = groups.Report{Trial: n, Unit: 1, Value: 3, Spent: 0.1}
				}
			},
		} {
			if n, why := ended(searcher, 2, change); why == NoValues {
				t.Errorf("%s, %s: after %d trials it ended as %q", searcher, name, n, why)
			}
		}
	}
}
