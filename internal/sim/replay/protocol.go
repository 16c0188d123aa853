package replay

import (
	"context"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick/multizone"
)

// Settings holds a protocol's settings with the optimum of each run; Optima is nil unless a row asks for Optimum.
type Settings struct {
	List   []multizone.Setting
	Optima [][]money.Amount // for all machines of the job
}

// SettingScores holds the rows of one setting.
type SettingScores struct {
	multizone.Setting
	Scores []Score
}

// Protocol plays every run of every setting under every rule. It returns the rows of each setting, and the rows over
// all settings of a sight.
func Protocol(ctx context.Context, s Settings, names []string, now func() time.Time,
	tell func(name string, done, of int)) (by []SettingScores, whole []Score, err error) {
	type run struct{ setting, run int }
	var runs []run
	sights := []multizone.Sight{}
	for i, set := range s.List {
		by = append(by, SettingScores{Setting: set})
		for k := range set.Runs {
			runs = append(runs, run{i, k})
		}
		if len(sights) == 0 || !has(sights, set.Sight) {
			sights = append(sights, set.Sight)
		}
	}
	for _, name := range names {
		lines, err := each(ctx, len(runs), func(mind *plan.Planner, i int) tally {
			set := &s.List[runs[i].setting]
			r, began := &set.Runs[runs[i].run], now()
			l := tally{}
			if name == Optimum {
				l.cost = s.Optima[runs[i].setting][runs[i].run]
			} else {
				l = playZones(r, mind, name)
			}
			l.work, l.deadline, l.overhead = r.Job.Work, r.Job.Deadline, r.Job.Restart
			l.took = now().Sub(began)
			return l
		}, func(done int) { tell(name, done, len(runs)) })
		if err != nil {
			return nil, nil, err
		}
		all, first := map[multizone.Sight][]tally{}, 0
		for i := range by {
			of := lines[first : first+len(by[i].Runs)]
			first += len(of)
			row := score(name, of)
			row.Form = string(by[i].Sight)
			by[i].Scores = append(by[i].Scores, row)
			all[by[i].Sight] = append(all[by[i].Sight], of...)
		}
		for _, sight := range sights {
			row := score(name, all[sight])
			row.Form = string(sight)
			whole = append(whole, row)
		}
	}
	over(whole)
	for i := range by {
		over(by[i].Scores)
	}
	return by, whole, nil
}

func has(list []multizone.Sight, s multizone.Sight) bool {
	return slices.Contains(list, s)
}

// playZones plays a run through the core. The plain loop, which asks the same policies, plays the rules that exist only
// in a benchmark: tries with a cost, a guard that latches, and a restart that takes no time (the core gets 1 ns for
// it).
func playZones(r *multizone.Run, mind *plan.Planner, name string) tally {
	if r.Job.Tries || r.Job.Latch || r.Job.Restart == 0 {
		out := r.Play(plainRule(name, &r.Job))
		return tally{cost: out.Cost, missed: out.Missed, lost: out.Losses, launched: out.Moves, moved: out.Carries,
			n: out.Decisions}
	}
	out := Zones(r, mind, ruleOf(name), false)
	return tally{cost: out.Cost, missed: out.Missed, lost: out.Interruptions, launched: out.Launches, moved: out.Carries,
		n: out.Decisions}
}

// ruleOf returns the rule that plays a row of the benchmark.
func ruleOf(name string) policy.Rule {
	if rule := policy.Rule(name); rule != policy.Greedy {
		return rule
	}
	return policy.GreedyGuard // by this benchmark's definition
}

// plainRule returns the policy of a row without the core.
func plainRule(name string, j *zonechoice.Job) zonechoice.Policy {
	switch ruleOf(name) {
	case policy.OnDemand:
		return &zonechoice.Certain{Job: j}
	case policy.GreedyGuard, policy.Greedy:
		return &zonechoice.Greedy{Job: j}
	case policy.UniformProgress:
		return &zonechoice.Uniform{Job: j, Second: true}
	case policy.UniformProgress2:
		return &zonechoice.Uniform{Job: j}
	case policy.Default:
	}
	return &zonechoice.Foresight{Job: j}
}
