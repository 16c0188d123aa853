package core_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

func studyOf(name, searcher string, dollars int64, atOnce int, change func(*core.GroupTerms)) core.GroupOpened {
	t := core.GroupTerms{Kind: groups.Study, Owner: ledger.Owner{Team: "a"}, AtOnce: atOnce, Budget: money.Picos(dollars * 1e12),
		HasBudget: true, Study: &study.Spec{Metric: "loss", Searcher: searcher, Seed: 1,
			Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9}, Params: []study.Param{{Name: "lr", Min: 1e-4, Max: 1, Log: true}}},
		Member: &core.Terms{Name: name, Currency: money.USD, Priority: 1, Restart: time.Minute, Saves: true,
			Metric: policy.Metric{Name: "loss"}, Owner: ledger.Owner{Team: "a"}}}
	if change != nil {
		change(&t)
	}
	return core.GroupOpened{Group: name, Terms: t}
}

// bench simulates the programs of a study's trials. A program trains one unit in ten minutes. When the core drains
// it, it saves and ends.
type bench struct {
	*yard
	name  string
	units map[string]int // trained units by program
	loss  func(config, unit int) (float64, bool)
	n     int64
	total int64 // total that each program reports
	// epochs is set if programs count epochs and no steps.
	epochs bool
}

func newBench(t *testing.T, name string) *bench {
	return &bench{yard: newYard(t, 20), name: name, total: 100, units: map[string]int{}, loss: func(config, unit int) (float64, bool) {
		return float64(config%17) + math.Exp(-float64(unit)), true
	}}
}

// turn advances time by ten minutes.
func (b *bench) turn() {
	b.tick(10 * time.Minute)
	for n := range b.group(b.name).Began {
		j, ok := b.m.Job(b.group(b.name).MemberID(n))
		if !ok || j.State() != core.Running || j.Live() == nil {
			continue
		}
		a := j.Live()
		b.n++
		switch {
		case a.Draining():
			b.step("", core.CheckpointSaved{Attempt: a.ID(), Message: 10 * b.n, Step: int64(b.units[j.ID()]), Captured: b.now})
			b.step("", core.AttemptEnded{Attempt: a.ID(), Message: 10*b.n + 1, Reason: "drained", Saved: true})
		case a.Task() == core.TaskRunning:
			b.units[j.ID()]++
			v, fine := b.loss(b.group(b.name).Study.Trials[n].Config, b.units[j.ID()])
			step := int64(b.units[j.ID()])
			if b.epochs {
				step = 0
			}
			b.step("", core.Progressed{Attempt: a.ID(), Message: 10 * b.n, Step: step, Total: b.total, Values: policy.Values{
				{At: b.now, Step: step, Epoch: float64(b.units[j.ID()]), Value: v, Broken: !fine}}})
		}
	}
}

func (b *bench) play() {
	for n := 0; b.group(b.name).Phase != state.GroupOver; n++ {
		if b.turn(); n > 3000 {
			b.t.Fatalf("the study never ends: %+v", b.group(b.name))
		}
	}
}

// With each searcher a study ends within its budget, without a repeated configuration, and with no trial beyond its
// end.
func TestStudy_SpendsItsBudgetOnTrials(t *testing.T) {
	for _, searcher := range []string{"random", "asha-stop", "asha-promo", "top-k", "default"} {
		t.Run(searcher, func(t *testing.T) {
			b := newBench(t, "s")
			b.step("user:ann", studyOf("s", searcher, 12, 3, nil))
			b.play()
			g := b.group("s")
			spent := b.m.GroupSpent(g, b.now)
			if spent.Cmp(money.Picos(13e12)) > 0 || spent.Cmp(money.Picos(9e12)) < 0 {
				t.Errorf("it has spent %v of $12", spent)
			}
			full, seen := 0, map[int]bool{}
			for n, trial := range g.Study.Trials {
				if seen[trial.Config] || trial.Phase != groups.Over {
					t.Errorf("trial %d has configuration %d, which has begun before: %v; it is %s", n, trial.Config, seen[trial.Config], trial.Phase)
				}
				if seen[trial.Config] = true; b.units[g.MemberID(n)] > 9 {
					t.Errorf("trial %d was trained for %d units of 9", n, b.units[g.MemberID(n)])
				}
				if trial.Unit == 9 {
					full++
				}
			}
			j, _ := b.m.Job("s.0")
			if full == 0 || g.Ended.Succeeded != full || !g.Succeeded() || j.User() != "ann" || j.Inputs() != "s" {
				t.Errorf("%d trials are trained in full, %+v, %s (%s), of %s", full, g.Ended, g.Phase, g.Why, j.User())
			}
		})
	}
}

// The maximum cost of all trials together never exceeds the study's budget while trials pause and resume. A restart
// in between changes nothing.
func TestStudy_SharesItsBudgetAmongTrials(t *testing.T) {
	b := newBench(t, "s")
	b.step("", studyOf("s", "asha-promo", 8, 3, nil))
	paused := 0
	for n := 0; b.group("s").Phase != state.GroupOver && n < 3000; n++ {
		b.turn()
		if n%7 == 3 {
			b.restart()
		}
		g, given := b.group("s"), money.Amount{}
		for k := range g.Began {
			j, _ := b.m.Job(g.MemberID(k))
			takes := j.Spent(b.now)
			if g.Study.Trials[k].Phase == groups.Paused {
				paused++
			} else if !j.State().Over() && j.Terms().Budget.Cmp(takes) > 0 {
				takes = j.Terms().Budget
			}
			given = given.Add(takes)
		}
		if spent := b.m.GroupSpent(g, b.now); given.Cmp(g.Terms.Budget) > 0 && spent.Cmp(g.Terms.Budget) < 0 {
			t.Fatalf("after %v trials may cost %v of $8", b.now, given)
		}
	}
	if paused == 0 || b.group("s").Phase != state.GroupOver {
		t.Errorf("no trial was ever paused, or it never ended: %s", b.group("s").Phase)
	}
}

// While the machine of a trial that is paused or has ended is being terminated, the next trial does not get the cost of
// the grace. The study stays within its budget if the machine ends within the grace.
func TestStudy_KeepsBackTheGraceOfAMachineBeingTerminated(t *testing.T) {
	for do, searcher := range map[groups.Do]string{groups.Pause: "asha-promo", groups.Stop: "random"} {
		b := newBench(t, "s")
		b.lasts = true
		b.step("", studyOf("s", searcher, 8, 1, func(t *core.GroupTerms) { t.Member.Grace = 3 * time.Minute }))
		b.turn() // after the first unit the search asha-promo pauses the trial
		if do == groups.Stop {
			b.step("", core.Proposed{Group: "s", Base: b.m.Seq(), Moves: []groups.Move{{Do: do, Member: 0}}})
		}
		b.tick(20 * time.Second)
		b.step("", core.AttemptEnded{Attempt: b.runs["s.0"], Message: 1000, Reason: "drained", Saved: true})
		b.tick(time.Second)
		first, _ := b.m.Job("s.0")
		next, began := b.m.Job("s.1")
		if !began || !first.Costs() {
			t.Fatalf("%s: the next trial has begun: %v; a machine of the first one costs: %v", do, began, first.Costs())
		}
		b.tick(3*time.Minute - time.Second) // the price is $1 per hour
		b.step("", core.InstanceEnded{Instance: "i-" + b.runs["s.0"], Until: b.now, Cause: "terminated"})
		if most := first.Spent(b.now).Add(next.Terms().Budget); most.Cmp(money.Picos(8e12)) > 0 || first.Costs() {
			t.Errorf("%s: the trials may cost %v of $8", do, most)
		}
		if least := money.Picos(8e12).Sub(money.Rate(1e12).Until(14 * time.Minute)); next.Terms().Budget.Cmp(least) < 0 {
			t.Errorf("%s: the next trial gets %v of $8, at least %v are left", do, next.Terms().Budget, least)
		}
	}
}

// A study whose budget has too little for a trial only while a machine is being terminated does not end. The next
// trial begins when the machine has ended.
func TestStudy_WaitsForAMachineBeingTerminated(t *testing.T) {
	b := newBench(t, "s")
	b.lasts = true
	hour := money.Rate(1e12) // a trial needs a start of a minute and a grace of 3 minutes, a few times
	least := hour.Until(4 * time.Minute).Times(study.LeastStarts)
	b.step("", studyOf("s", "random", 0, 1, func(t *core.GroupTerms) {
		t.Member.Grace, t.Budget = 3*time.Minute, least.Add(hour.Until(11*time.Minute))
	}))
	b.tick(10 * time.Minute)
	b.step("", core.Proposed{Group: "s", Base: b.m.Seq(), Moves: []groups.Move{{Do: groups.Stop, Member: 0}}})
	b.step("", core.AttemptEnded{Attempt: b.runs["s.0"], Message: 1000, Reason: "drained", Saved: true})
	b.tick(10 * time.Second)
	if g := b.group("s"); g.Phase != state.GroupOpen || g.Began != 1 {
		t.Fatalf("while the machine is being terminated the study is %s (%s), %d trials have begun", g.Phase, g.Why, g.Began)
	}
	b.step("", core.InstanceEnded{Instance: "i-" + b.runs["s.0"], Until: b.now, Cause: "terminated"})
	b.tick(time.Minute)
	if g := b.group("s"); g.Phase != state.GroupOpen || g.Began != 2 {
		t.Errorf("after it has ended the study is %s (%s), %d trials have begun", g.Phase, g.Why, g.Began)
	}
}

// A preempted trial continues as the same trial, and repeated reports count once. A trial whose metric is NaN or
// infinite ends at once.
func TestStudy_ResumesPreemptedAndEndsDivergingTrials(t *testing.T) {
	b := newBench(t, "s")
	b.loss = func(config, unit int) (float64, bool) {
		return 1 / float64(unit), unit < 3 || config != b.group("s").Study.Trials[1].Config
	}
	b.step("", studyOf("s", "random", 20, 2, nil))
	b.turn()
	b.turn()
	trials := len(b.group("s").Study.Trials)
	b.step("", core.InstanceEnded{Instance: "i-" + b.runs["s.0"], Until: b.now, Cause: "interrupted"})
	b.units["s.0"] = 0 // nothing is saved
	b.tick(time.Minute)
	j, _ := b.m.Job("s.0")
	if g := b.group("s"); len(g.Study.Trials) != trials || g.Study.Trials[0].Phase != groups.Open || j.State() != core.Running {
		t.Fatalf("%d trials; the first is %s (%s)", len(g.Study.Trials), g.Study.Trials[0].Phase, j.State())
	}
	b.turn()
	b.turn()
	g := b.group("s")
	if g.Study.Trials[0].Values != 2 || g.Study.Ignored != 2 {
		t.Errorf("values %d, ignored %d: a unit that is trained again counts once", g.Study.Trials[0].Values, g.Study.Ignored)
	}
	b.turn()
	if bad, _ := b.m.Job("s.1"); !g.Study.Trials[1].Broken || bad.State() != core.Stopped {
		t.Errorf("the trial that diverged is %s (%s)", bad.State(), bad.Why())
	}
}

// A program that ends after its last unit may finish, for example to write its model; one that continues is ended.
func TestStudy_LetsAProgramFinish(t *testing.T) {
	b := newBench(t, "s")
	b.total = 9
	b.step("", studyOf("s", "random", 50, 1, nil))
	for range 9 {
		b.turn()
	}
	j, _ := b.m.Job("s.0")
	if j.Ending() != "" || j.Live().Draining() {
		t.Fatalf("after 9 of 9 steps it is %s, to become %q", j.State(), j.Ending())
	}
	b.turn() // it continues anyway
	if j.Ending() != core.Succeeded || j.EndingWhy() != core.TrainedInFull {
		t.Errorf("after another step it is %s, to become %q (%s)", j.State(), j.Ending(), j.EndingWhy())
	}
}

// A program that counts epochs and no steps is drained too once it continues beyond the last epoch.
func TestStudy_EndsAnEpochOnlyProgram(t *testing.T) {
	b := newBench(t, "s")
	b.epochs, b.total = true, 0
	b.step("", studyOf("s", "random", 50, 1, nil))
	for range 9 {
		b.turn()
	}
	j, _ := b.m.Job("s.0")
	if j.Ending() != "" || j.Live().Draining() {
		t.Fatalf("after 9 of 9 epochs it is %s, to become %q", j.State(), j.Ending())
	}
	b.turn()
	if j.Ending() != core.Succeeded || j.EndingWhy() != core.TrainedInFull {
		t.Errorf("after another epoch it is %s, to become %q (%s)", j.State(), j.Ending(), j.EndingWhy())
	}
}

// A stale move does nothing.
func TestStudy_IgnoresAStaleMove(t *testing.T) {
	b := newBench(t, "s")
	b.step("", studyOf("s", "random", 20, 2, nil))
	if b.group("s").Began != 2 {
		t.Fatal("two trials begin")
	}
	config := b.group("s").Study.Trials[0].Config
	for name, v := range map[string]groups.Move{
		"a third at once":          {Do: groups.Start, Member: 2, Config: config + 1},
		"the same configuration":   {Do: groups.Start, Member: 2, Config: config},
		"out of turn":              {Do: groups.Start, Member: 5, Config: config + 1},
		"one that is not paused":   {Do: groups.Resume, Member: 0},
		"a trial that never began": {Do: groups.Pause, Member: 9},
		"below the first":          {Do: groups.Stop, Member: -1},
		"a configuration below 0":  {Do: groups.Start, Member: 2, Config: -1},
		"a move without a name":    {Do: "x"},
	} {
		b.step("", core.Proposed{Group: "s", Base: b.m.Seq(), Moves: []groups.Move{v}})
		if g := b.group("s"); g.Began != 2 || g.Study.Active() != 2 || g.Phase != state.GroupOpen {
			t.Errorf("%s: %d have begun, %d are active", name, g.Began, g.Study.Active())
		}
	}
}

// Invalid studies are refused, and a wall-clock limit ends a study.
func TestStudy_RefusesInvalidTerms(t *testing.T) {
	b := newBench(t, "s")
	for name, change := range map[string]func(*core.GroupTerms){
		"no budget":             func(t *core.GroupTerms) { t.HasBudget, t.Budget = false, money.Amount{} },
		"no search":             func(t *core.GroupTerms) { t.Study = nil },
		"no parameter":          func(t *core.GroupTerms) { t.Study.Params = nil },
		"a range of nothing":    func(t *core.GroupTerms) { t.Study.Params[0].Min = 2 },
		"a log of zero":         func(t *core.GroupTerms) { t.Study.Params[0].Min = 0 },
		"no fidelity for asha":  func(t *core.GroupTerms) { t.Study.Fidelity = study.Fidelity{} },
		"pauses without saving": func(t *core.GroupTerms) { t.Study.Searcher, t.Member.Saves = "default", false },
		"a grid without end":    func(t *core.GroupTerms) { t.Study.Grid = true },
	} {
		b.step("", studyOf("s", "asha-stop", 5, 2, change))
		if b.group("s") != nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	b.step("", studyOf("s", "asha-stop", 500, 2, func(t *core.GroupTerms) { t.Study.Wall = 2 * time.Hour }))
	b.play()
	if g := b.group("s"); g.Why != core.TimeSpent || b.now.Sub(g.Opened) > 3*time.Hour {
		t.Errorf("it ended as %s after %v", g.Why, b.now.Sub(g.Opened))
	}
}

// The log of a study replays to the same state without a planner.
func TestStudy_ReplaysWithoutASearcher(t *testing.T) {
	b := newBench(t, "s")
	b.step("", studyOf("s", "default", 4, 2, nil))
	b.play()
	s := state.New()
	for n, w := range b.log {
		s.Replay(uint64(n+1), w.event, w.out.Facts, w.out.Postings)
	}
	want, _ := json.Marshal(b.group("s"))
	got, _ := json.Marshal(s.Group("s"))
	if !bytes.Equal(got, want) {
		t.Errorf("replayed:\n%s\nwas:\n%s", got, want)
	}
}
