package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	search "scrimp/internal/work/study"
)

// drawStudies submits a study in some lives without an array. Its own random source leaves the other lives
// unchanged.
func (w *World) drawStudies(gpus int) {
	rng := rand.New(rand.NewPCG(w.seed, 0x57d7))
	if w.calm5() || w.array != nil || rng.IntN(3) > 0 {
		return
	}
	main := w.rng
	w.rng = rng
	defer func() { w.rng = main }()
	one := w.drawJob("search", gpus)
	t := &one.terms
	t.Owner, t.DeadlineFirst, t.Deadline = ledger.Owner{Team: "team0", Project: "p"}, false, time.Time{}
	t.Budget, t.HasBudget, t.WallClock, t.GPUHours, t.IdleLimit = money.Amount{}, false, 0, 0, 0
	t.Metric, t.Need.Ladder, t.Nodes, t.LeastNodes = policy.Metric{Name: "loss"}, nil, 0, 0
	one.dips, one.hangs = 0, 0
	searchers := []string{"random", "asha-stop"}
	if t.Saves {
		searchers = []string{"asha-stop", "asha-promo", "hyperband-async", "top-k", "default"}
	}
	most := float64(max(1, one.steps*4/5))
	spec := &search.Spec{Metric: "loss", Searcher: searchers[rng.IntN(len(searchers))], Seed: w.seed, Trials: 1 + rng.IntN(12),
		Final: rng.IntN(2) == 0, Fidelity: search.Fidelity{Name: search.Step, Min: max(1, most/float64(2+rng.IntN(8))), Max: most},
		Params: []search.Param{{Name: "lr", Min: 1e-4, Max: 1, Log: true}, {Name: "n", Min: 1, Max: 9, Int: true}}}
	b := core.GroupOpened{Group: "search", Spec: one.spec, Terms: core.GroupTerms{Kind: groups.Study, Owner: t.Owner,
		AtOnce: 1 + rng.IntN(3), Grace: 3 * time.Minute, Member: t, Study: spec, HasBudget: true,
		Budget: usd(t.Work.Hours() * float64(spec.Trials) * (0.2 + 2*rng.Float64()))}}
	if rng.IntN(3) == 0 {
		spec.GPUHours = t.Work.Hours() * float64(max(1, gpus)) * float64(spec.Trials) * (0.1 + rng.Float64())
	}
	if rng.IntN(4) == 0 {
		spec.Wall = time.Duration((2 + 20*rng.Float64()) * float64(time.Hour))
	}
	if rng.IntN(3) == 0 {
		spec.Plateau = &search.Plateau{Patience: 1 + rng.IntN(5), MinGain: math.Pow(10, -6+8*rng.Float64())}
	}
	w.study, w.members = &one, w.begins
	at := 10*time.Minute + time.Duration(rng.IntN(20*60))*time.Minute
	w.after(at, func() { w.opensStudy(b) })
	w.after(at+96*time.Hour, func() { w.closesStudy(state.CancelMembers) })
	if rng.IntN(4) == 0 {
		w.after(at+time.Duration(rng.IntN(40*60))*time.Minute, func() { w.closesStudy(state.StopMembers) })
	}
}

func (w *World) opensStudy(b core.GroupOpened) {
	if !w.step(b) {
		w.after(time.Minute, func() { w.opensStudy(b) })
		return
	}
	if w.group("search") == nil {
		w.saw("a study is refused")
	}
}

func (w *World) closesStudy(ends state.EndMembers) {
	if w.group("search") != nil {
		w.insist(core.GroupClosed{Group: "search", Members: ends})
	}
}

// studies verifies that no configuration starts twice, that trials together get no more than their study's budget, that
// no more of them train at once than allowed, that a fully trained trial stops, and that a paused trial has no machine
// and continues only on a decision of its search.
func (t *twin) studies(e core.Event, out core.Outcome) {
	w := t.w
	g := w.group("search")
	if g == nil || g.Study == nil {
		return
	}
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobQueued:
			b, moved := e.Body.(core.Proposed)
			j, _ := w.known(f.Job)
			if !moved || b.Group != g.Name {
				continue
			}
			if f.Why == core.ResumedFor {
				if one := w.jobNamed(f.Job); one != nil {
					one.terms = *j.Terms() // its share of the budget differs
				}
				w.saw("a trial is resumed")
				continue
			}
			config := g.Study.Trials[j.Terms().Index].Config
			if t.configs[config] {
				w.breaks("study: configuration %d begins twice", config)
			}
			t.configs[config] = true
			w.saw("a trial begins")
		case state.JobSuspended:
			if f.Why == core.PausedBySearch {
				w.saw("a trial is paused")
			}
		case state.GroupFinished:
			if f.Group == g.Name {
				w.saw("a study is over")
				w.saw("a study is over: " + g.Why)
			}
		}
	}
	if used, _ := w.m.GPUTime(g, e.At); g.Terms.Study.GPUHours > 0 && g.Phase == state.GroupOpen &&
		used.Hours() > g.Terms.Study.GPUHours && !w.m.State().Undecided() { // scrimp ends nothing until it knows its machines
		w.breaks("study: its trials have used %v, and it has %g GPU-hours", used, g.Terms.Study.GPUHours)
	}
	if len(out.Facts) == 0 {
		return
	}
	given, proposed := money.Amount{}, e.Body.Kind() == (core.Proposed{}).Kind()
	for n := range g.Began {
		j, ok := w.known(g.MemberID(n))
		if !ok {
			continue
		}
		trial := g.Study.Trials[n]
		a, _ := e.Body.(core.Progressed)
		if trial.Unit >= g.Terms.Study.Units() && trial.Phase == groups.Open && j.State() == core.Running &&
			j.Live() != nil && j.Live().ID() == a.Attempt && !j.Live().Draining() && j.Live().Task() == core.TaskRunning &&
			j.Total() > j.Step() {
			w.breaks("study: %s goes on although it is trained in full", j.ID())
		}
		if (trial.Phase == groups.Paused) != (j.State() == core.Paused) || (trial.Phase == groups.Over) != j.State().Over() {
			w.breaks("study: %s is %s, and its trial is %s", j.ID(), j.State(), trial.Phase)
		}
		if trial.Phase == groups.Paused && j.Why() == core.PausedBySearch {
			given = given.Add(j.Spent(w.event(core.Tick{}).At))
		} else {
			given = given.Add(claim(w, j))
		}
	}
	switch active := g.Study.Active(); {
	case proposed && active > g.Terms.AtOnce:
		w.breaks("study: %d trials are active, at most %d may be", active, g.Terms.AtOnce)
	case proposed && out.Moved > 0 && given.Cmp(g.Terms.Budget) > 0 && begins(out):
		w.breaks("study: its trials may cost %v, and it has %v", given, g.Terms.Budget)
	}
}

// begins reports whether a step starts or resumes a trial.
func begins(out core.Outcome) bool {
	for _, f := range out.Facts {
		if _, is := f.(state.JobQueued); is {
			return true
		}
	}
	return false
}
