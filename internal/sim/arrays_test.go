package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// drawArrays submits, in some lives, an array, a job that depends on it, and one that depends on a job. Its own random
// source leaves the other lives unchanged.
func (w *World) drawArrays(gpus int) {
	rng := rand.New(rand.NewPCG(w.seed, 0xa77a))
	if w.calm5() || rng.IntN(4) > 0 {
		return
	}
	main := w.rng
	w.rng = rng
	defer func() { w.rng = main }()
	one := w.drawJob("sweep", gpus)
	one.terms.Owner, one.terms.DeadlineFirst = ledger.Owner{Team: "team0", Project: "p"}, false
	one.terms.Deadline, one.terms.Budget, one.terms.HasBudget = time.Time{}, money.Amount{}, false
	members := 1 + rng.IntN(6)
	b := core.GroupOpened{Group: "sweep", Spec: one.spec, Terms: core.GroupTerms{Kind: groups.Array, Owner: one.terms.Owner,
		AtOnce: 1 + rng.IntN(3), Grace: 3 * time.Minute, Member: &one.terms,
		Array: groups.Indexes{From: rng.IntN(3), Step: 1 + rng.IntN(4), Members: members}}}
	if rng.IntN(2) == 0 {
		b.Terms.HasBudget = true
		b.Terms.Budget = usd(one.terms.Work.Hours() * float64(members) * (0.5 + 3*rng.Float64()))
	}
	either := rng.IntN(2) == 0
	if len(w.jobs) > 0 && rng.IntN(2) == 0 {
		b.Terms.After = []state.Dependency{{On: w.jobs[0].id, Any: either}}
	}
	w.array, w.members = &one, w.begins
	at := 10*time.Minute + time.Duration(rng.IntN(20*60))*time.Minute
	w.after(at, func() { w.opensArray(b) })
	w.after(at+96*time.Hour, func() { w.closesArray(core.GroupClosed{Group: "sweep", Members: state.CancelMembers}) }) // no price may suit its budget
	if rng.IntN(3) == 0 {
		ends := []state.EndMembers{state.LetMembers, state.StopMembers, state.CancelMembers}[rng.IntN(3)]
		w.after(at+time.Duration(rng.IntN(40*60))*time.Minute, func() { w.closesArray(core.GroupClosed{Group: "sweep", Members: ends}) })
	}
	last := w.drawJob("last", gpus)
	last.terms.Owner, last.terms.Deadline = one.terms.Owner, time.Time{}
	last.terms.Budget, last.terms.HasBudget, last.terms.DeadlineFirst = money.Amount{}, false, false
	last.terms.After = []state.Dependency{{On: "sweep", Any: rng.IntN(2) == 0}}
	last.asks, last.by = 0, ""
	w.after(at+time.Duration(rng.IntN(30*60))*time.Minute, func() { w.submitsLast(last) })
	w.after(at+120*time.Hour, func() { w.giveUp("last") }) // no offer may suit it
}

// opensArray opens the array, unless its dependency ended without success.
func (w *World) opensArray(b core.GroupOpened) {
	if !w.step(b) {
		w.after(time.Minute, func() { w.opensArray(b) })
		return
	}
	if w.group("sweep") == nil {
		w.saw("an array is refused")
	}
}

func (w *World) closesArray(b core.GroupClosed) {
	if w.group("sweep") != nil {
		w.insist(b)
	}
}

// submitsLast submits the job that depends on the array.
func (w *World) submitsLast(j simJob) {
	if !w.up {
		w.after(time.Minute, func() { w.submitsLast(j) })
		return
	}
	known := len(w.jobs)
	w.jobs = append(w.jobs, j)
	if !w.step(core.JobSubmitted{Job: j.id, Terms: j.terms, Spec: j.spec}) {
		w.jobs = w.jobs[:known]
		w.after(time.Minute, func() { w.submitsLast(j) })
		return
	}
	if _, ok := w.known(j.id); !ok {
		w.jobs = w.jobs[:known]
		w.saw("a job after an array is refused")
	}
}

// begins creates the programs of the members that a step starts, and removes them again if the step did not start them.
func (w *World) begins(group string, moves []groups.Move, step func() bool) {
	g, of := w.group(group), w.array
	if g.Study != nil {
		of = w.study
	}
	if g.Schedule != nil { // it starts no job itself
		step()
		return
	}
	known := len(w.jobs)
	for _, v := range moves {
		if id := startedBy(g, v); v.Do == groups.Start && w.jobNamed(id) == nil {
			if g.Terms.Pipeline != nil {
				of = w.stages[stageDrawn(id)]
			}
			one := *of
			one.id = id
			one.fails = slices.Clone(one.fails)
			if g.Study != nil {
				one.flat = 1 + one.steps*int64(v.Config%10)/10
			}
			w.jobs = append(w.jobs, one)
		}
	}
	done := step()
	w.jobs = slices.DeleteFunc(slices.Clone(w.jobs), func(j simJob) bool {
		_, began := w.known(j.id)
		return slices.ContainsFunc(moves, func(v groups.Move) bool {
			return v.Do == groups.Start && j.id == startedBy(g, v)
		}) && !began && done
	})
	if !done {
		w.jobs = w.jobs[:known]
	}
	for n := range w.jobs[min(known, len(w.jobs)):] {
		one := &w.jobs[known+n]
		j, _ := w.known(one.id)
		one.terms = *j.Terms()
	}
}

// startedBy returns the job that a move starts, or "".
func startedBy(g *state.Group, v groups.Move) string {
	switch {
	case v.Do != groups.Start:
		return ""
	case g.Terms.Pipeline != nil:
		return g.StageID(v.Of.Stage)
	}
	return g.MemberID(v.Member)
}

func (w *World) jobNamed(id string) *simJob {
	for n := range w.jobs {
		if w.jobs[n].id == id {
			return &w.jobs[n]
		}
	}
	return nil
}

// arrays verifies that an array never has more open members than allowed, that each member starts once and in order,
// that members together get no more than their group's budget, and that nothing starts before its dependency has ended
// as required.
func (t *twin) arrays(e core.Event, out core.Outcome) {
	w, before := t.w, t.began
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobQueued:
			b, member := e.Body.(core.Proposed)
			if !member {
				continue
			}
			g := w.group(b.Group)
			if g.Study != nil || g.Terms.Pipeline != nil {
				continue
			}
			if want := state.MemberOf(g.Name, g.Terms.Array.Index(t.began)); f.Job != want {
				w.breaks("array: %s begins, and it is the turn of %s", f.Job, want)
			}
			t.began++
			w.saw("a member begins")
		case state.AllocationRequested:
			j, _ := w.known(f.Job)
			after := j.Terms().After
			if g := w.group(j.Terms().Group); g != nil {
				after = append(slices.Clone(after), g.Terms.After...)
			}
			for _, d := range after {
				if !t.overAs[d.On].as(d.Any) {
					w.breaks("after: %s asks for a machine before %s is over", f.Job, d.On)
				}
			}
		case state.DependencyMet:
			w.saw("a dependency is met")
		case state.GroupFinished:
			g := w.group(f.Group)
			t.overAs[f.Group] = ending{true, g.Succeeded()}
			if o := g.Ended; g.Open != 0 || o.Succeeded+o.Failed+o.Stopped+o.Cancelled != g.Began ||
				f.Why == core.AllOver && g.Began != g.Members() && g.Terms.Pipeline == nil {
				w.breaks("array: it is over with %+v of %d members, %d of them open", o, g.Began, g.Open)
			}
			w.saw("an array is over")
		case state.JobOver:
			t.overAs[f.Job] = ending{true, f.State == core.Succeeded}
			if f.Why == core.DependencyFailed {
				w.saw("a dependency has failed")
			}
		case state.JobReopened:
			was := t.overAs[f.Job]
			t.overAs[f.Job] = ending{was.over, was.succeeded} // its dependents may have started
		}
	}
	g := w.group("sweep")
	if g == nil {
		return
	}
	open, given := 0, money.Amount{}
	for _, j := range w.allJobs() {
		if j.Terms().Group != "sweep" {
			continue
		}
		if !j.State().Over() {
			open++
		}
		given = given.Add(claim(w, j))
	}
	switch {
	case open > g.Terms.AtOnce && e.Body.Kind() == (core.Proposed{}).Kind():
		w.breaks("array: %d members are open, at most %d may be", open, g.Terms.AtOnce)
	case open != g.Open:
		w.breaks("array: %d members are open, and %d are counted", open, g.Open)
	case g.Terms.HasBudget && t.began > before && given.Cmp(g.Terms.Budget) > 0:
		w.breaks("array: its members may cost %v, and it has %v", given, g.Terms.Budget)
	}
}

// claim returns the most that a member may cost in all: its actual cost if it has ended or exceeded its budget.
func claim(w *World, j *core.Job) money.Amount {
	spent := j.Spent(w.event(core.Tick{}).At)
	if most := j.Terms().Budget; !j.State().Over() && most.Cmp(spent) > 0 {
		return most
	}
	return spent
}

// ending is how a job or group ended.
type ending struct{ over, succeeded bool }

func (e ending) as(either bool) bool { return e.over && (either || e.succeeded) }

// arraysLeft describes an array that is still open, or returns "".
func (w *World) arraysLeft() string {
	for _, g := range w.groups() {
		if g.Terms.Kind.Planned() && g.Phase != state.GroupOver {
			return fmt.Sprintf("%s is %s", g.Name, g.Phase)
		}
	}
	return ""
}
