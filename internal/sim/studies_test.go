package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	w.drawProxy(spec, t)
	w.study, w.members = &one, w.begins
	at := 10*time.Minute + time.Duration(rng.IntN(20*60))*time.Minute
	w.after(at, func() { w.opensStudy(b) })
	w.after(at+96*time.Hour, func() { w.closesStudy(state.CancelMembers) })
	if rng.IntN(4) == 0 {
		w.after(at+time.Duration(rng.IntN(40*60))*time.Minute, func() { w.closesStudy(state.StopMembers) })
	}
}

// drawProxy lets a study in some lives search on a proxy. Its own random source leaves the other lives unchanged.
func (w *World) drawProxy(spec *search.Spec, t *core.Terms) {
	rng := rand.New(rand.NewPCG(w.seed, 0x9d0c))
	if rng.IntN(3) > 0 {
		return
	}
	spec.Final = false
	spec.Proxy = &search.Proxy{Set: map[string]string{"data_fraction": "0.1"}, Promote: 1 + rng.IntN(3),
		Reserve: 0.1 + 0.6*rng.Float64()}
	if f := spec.Fidelity; rng.IntN(2) == 0 && t.Work > 0 {
		spec.Proxy.Max = f.Min + rng.Float64()*(f.Max-f.Min)
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

// studies verifies that no configuration starts twice on the proxy or in full, that trials together get no more than
// their study's budget and those of its proxy nothing of what is reserved for full trainings, that no more of these
// begin than are to be promoted, and only of configurations that the proxy has trained, that
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
			t.trialBegins(g, j.Terms().Index)
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
	given, proxy, proposed := money.Amount{}, money.Amount{}, e.Body.Kind() == (core.Proposed{}).Kind()
	for n := range g.Began {
		j, ok := w.known(g.MemberID(n))
		if !ok {
			continue
		}
		trial := g.Study.Trials[n]
		a, _ := e.Body.(core.Progressed)
		if trial.Unit >= g.Terms.Study.Length(trial.Promoted).Units() && trial.Phase == groups.Open && j.State() == core.Running &&
			j.Live() != nil && j.Live().ID() == a.Attempt && !j.Live().Draining() && j.Live().Task() == core.TaskRunning &&
			j.Total() > j.Step() {
			w.breaks("study: %s goes on although it is trained in full", j.ID())
		}
		if (trial.Phase == groups.Paused) != (j.State() == core.Paused) || (trial.Phase == groups.Over) != j.State().Over() {
			w.breaks("study: %s is %s, and its trial is %s", j.ID(), j.State(), trial.Phase)
		}
		takes := claim(w, j)
		if trial.Phase == groups.Paused && j.Why() == core.PausedBySearch {
			takes = j.Spent(w.event(core.Tick{}).At)
		}
		if given = given.Add(takes); !trial.Promoted {
			proxy = proxy.Add(takes)
		}
	}
	switch active := g.Study.Active(); {
	case proposed && active > g.Terms.AtOnce:
		w.breaks("study: %d trials are active, at most %d may be", active, g.Terms.AtOnce)
	case proposed && out.Moved > 0 && beginsOnProxy(g, out) &&
		proxy.Cmp(g.Terms.Budget.Sub(g.Terms.Study.Reserved(g.Terms.Budget))) > 0:
		w.breaks("study: the trials of its proxy may cost %v of %v, and %v is reserved", proxy, g.Terms.Budget,
			g.Terms.Study.Reserved(g.Terms.Budget))
	case proposed && out.Moved > 0 && given.Cmp(g.Terms.Budget) > 0 && begins(out):
		w.breaks("study: its trials may cost %v, and it has %v", given, g.Terms.Budget)
	}
}

// trialBegins verifies that a trial may begin.
func (t *twin) trialBegins(g *state.Group, n int) {
	w, trial := t.w, g.Study.Trials[n]
	key := fmt.Sprintln(trial.Config, trial.Promoted)
	if t.configs[key] {
		w.breaks("study: configuration %d begins twice", trial.Config)
	}
	t.configs[key] = true
	if w.saw("a trial begins"); !trial.Promoted {
		return
	}
	w.saw("a trial is promoted")
	if p := g.Terms.Study.Proxy; p == nil || g.Study.Promoted() > p.Promote || !t.configs[fmt.Sprintln(trial.Config, false)] {
		w.breaks("study: configuration %d is promoted, as the %d.", trial.Config, g.Study.Promoted())
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

// beginsOnProxy reports whether a step starts or resumes a trial of a proxy.
func beginsOnProxy(g *state.Group, out core.Outcome) bool {
	return g.Terms.Study.Proxy != nil && slices.ContainsFunc(out.Facts, func(f core.Fact) bool {
		q, is := f.(state.JobQueued)
		n := 0
		for is && n < len(g.Study.Trials) && g.MemberID(n) != q.Job {
			n++
		}
		return is && n < len(g.Study.Trials) && !g.Study.Trials[n].Promoted
	})
}
