package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// kept is a hold as granted in the log.
type kept struct {
	parent        string
	budget, worst money.Amount
	over          bool
}

// drawHolds opens, in some lives, nested holds and spawns parts of them beside everything else. Its own random
// source leaves the other lives unchanged.
func (w *World) drawHolds(gpus int) {
	rng := rand.New(rand.NewPCG(w.seed, 0x401d5))
	if w.calm5() || rng.IntN(4) > 0 {
		return
	}
	for _, j := range w.jobs { // parts come earlier, and no later price may suit their budget
		w.after(72*time.Hour, func() { w.giveUp(j.id) })
	}
	owner := ledger.Owner{Team: "team0", Project: "p"}
	minutes := func(most int) time.Duration { return time.Duration(rng.IntN(most)) * time.Minute }
	names := []string{"study:s", "pipeline:p"}[:1+rng.IntN(2)]
	for n, name := range names {
		b := core.GroupOpened{Group: name, Terms: core.GroupTerms{Owner: owner, HasBudget: true, Budget: usd(5 + 60*rng.Float64()), AtOnce: 3, Grace: 3 * time.Minute}}
		if n > 0 {
			b.Terms.Parent, b.Terms.Budget = names[0], usd(2+30*rng.Float64())
		}
		w.after(time.Duration(n)*time.Minute, func() { w.insist(b) })
		w.after(minutes(40*60), func() { w.insist(core.GroupClosed{Group: name}) })
	}
	for range 1 + rng.IntN(5) {
		w.drawParts(rng, names[rng.IntN(len(names))], owner, gpus, 10*time.Minute+minutes(24*60))
	}
}

// drawParts draws parts of a hold that are submitted together, and their fates.
func (w *World) drawParts(rng *rand.Rand, hold string, owner ledger.Owner, gpus int, at time.Duration) {
	main := w.rng
	w.rng = rng
	defer func() { w.rng = main }()
	var parts []simJob
	for range 1 + rng.IntN(3) {
		j := w.drawJob(fmt.Sprint("part", w.parts), gpus)
		w.parts++
		t := &j.terms
		t.Parent, t.Owner, t.DeadlineFirst = hold, owner, false
		if !t.Deadline.IsZero() {
			t.Deadline = t.Deadline.Add(at)
		}
		if t.HasBudget = rng.IntN(5) > 0; t.HasBudget {
			t.Budget = usd(t.Work.Hours() * (0.5 + 3*rng.Float64()))
		} else {
			t.Budget = money.Amount{}
		}
		parts = append(parts, j)
		id, later := j.id, at+time.Duration(rng.IntN(300))*time.Minute
		switch rng.IntN(5) {
		case 0:
			back := time.Duration(1+rng.IntN(100)) * time.Minute
			w.after(later, func() { w.pauses(id, back) })
		case 1:
			more := usd(t.Work.Hours() * (1 + 4*rng.Float64()))
			w.after(later, func() { w.rebudgets(id, more) })
		case 2:
			w.after(later, func() { w.insist(core.JobEnded{Job: id, Save: later%2 == 0}) })
		}
		w.after(at+72*time.Hour, func() { w.giveUp(id) }) // no price may suit its budget
	}
	w.coming++
	w.after(at, func() { w.spawns(hold, parts) })
}

// spawns submits parts of a hold until there is an answer, and verifies that all start if there is room for all, and
// none otherwise.
func (w *World) spawns(hold string, parts []simJob) {
	if !w.up {
		w.after(time.Minute, func() { w.spawns(hold, parts) })
		return
	}
	rules, _ := w.m.Rules()
	exact := !slices.ContainsFunc(rules.Limits, func(l budget.Limit) bool { return l.GPUHours != nil }) // one part may be too long for such a limit
	b, takes, known := core.Spawn{Parent: hold}, money.Amount{}, len(w.jobs)
	for _, j := range parts {
		b.Parts = append(b.Parts, core.JobSubmitted{Job: j.id, Terms: j.terms, Spec: j.spec})
		exact, takes = exact && j.terms.HasBudget, takes.Add(j.terms.Budget)
	}
	fits := w.holdsOpen(hold) && takes.Cmp(w.roomIn(hold)) <= 0
	w.jobs = append(w.jobs, parts...)
	body := core.Body(b)
	if len(parts) == 1 { // as a client submits a single part
		body = b.Parts[0]
	}
	before := w.m.Len()
	if !w.step(body) {
		w.jobs = w.jobs[:known]
		w.after(time.Minute, func() { w.spawns(hold, parts) })
		return
	}
	w.coming--
	began := w.m.Len() - before
	if began < len(parts) {
		w.jobs = w.jobs[:known]
	}
	for n := range w.jobs[known:] {
		j, _ := w.known(w.jobs[known+n].id)
		w.jobs[known+n].terms.Budget, w.jobs[known+n].terms.HasBudget = j.Terms().Budget, j.Terms().HasBudget
	}
	switch {
	case began != 0 && began != len(parts):
		w.breaks("hold: %d of %d parts of %s began", began, len(parts), hold)
	case exact && fits != (began > 0):
		w.breaks("hold: %d parts of %v began in %s, that they fit is %v", began, takes, hold, fits)
	case began > 0:
		w.saw("parts began")
	case w.holdsOpen(hold):
		w.saw("parts found no room")
	default:
		w.saw("parts found their hold closed")
	}
}

// rebudgets makes the user raise a part's budget, if its hold has room.
func (w *World) rebudgets(id string, more money.Amount) {
	j, known := w.known(id)
	if !w.up || !known || j.State().Over() {
		return
	}
	had := j.Terms().Budget
	b := core.JobUpdated{Job: id, Changes: core.Changes{Budget: &more}}
	if !w.step(b) {
		return
	}
	if j, _ = w.known(id); j.Terms().Budget.Cmp(more) == 0 {
		w.newTerms(id, b.Changes)
		w.saw("a part got another budget")
	} else if j.Terms().Budget.Cmp(had) == 0 {
		w.saw("a part got no more")
	}
}

// holdsOpen reports whether a hold and its ancestors are open.
func (w *World) holdsOpen(name string) bool {
	for name != "" {
		h := w.group(name)
		if h == nil || h.Phase != state.GroupOpen {
			return false
		}
		name = h.Terms.Parent
	}
	return true
}

// roomIn returns the rest of a hold's budget, counted part by part.
func (w *World) roomIn(name string) money.Amount {
	h := w.group(name)
	if h == nil {
		return money.Amount{}
	}
	return h.Terms.Budget.Sub(w.takenOf(name, w.holds()))
}

// holds returns the core's holds.
func (w *World) holds() map[string]*kept {
	all := map[string]*kept{}
	for _, h := range w.groups() {
		all[h.Name] = &kept{h.Terms.Parent, h.Terms.Budget, h.Worst, h.Closed()}
	}
	return all
}

// takenOf returns what is taken from a hold: the most that its parts may cost, the actual cost of ended parts, and the
// worst case of each open hold below it.
func (w *World) takenOf(name string, all map[string]*kept) (taken money.Amount) {
	for _, j := range w.allJobs() {
		if j.Terms().Parent != name {
			continue
		}
		takes := j.Spent(w.event(core.Tick{}).At)
		parked := j.State() == core.Paused && j.Why() == core.PausedBySearch
		if most := j.Terms().Budget; !j.State().Over() && !parked && most.Cmp(takes) > 0 {
			takes = most
		}
		taken = taken.Add(takes)
	}
	for below, h := range all {
		if h.parent != name {
			continue
		}
		takes := w.takenOf(below, all)
		if !h.over && h.worst.Cmp(takes) > 0 {
			takes = h.worst
		}
		taken = taken.Add(takes)
	}
	return taken
}

// nested verifies that a hold never gives more than it has, and nothing after it is closed.
func (t *twin) nested(e core.Event, out core.Outcome) {
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.GroupGranted:
			g := t.w.group(f.Group)
			t.holds[f.Group] = &kept{g.Terms.Parent, g.Terms.Budget, f.Worst, false}
			t.gives(g.Terms.Parent, f.Group)
		case state.GroupEnded:
			t.holds[f.Group].over = true
		case state.GroupFinished: // its own
			t.holds[f.Group].over = true
		case state.JobQueued:
			if j, _ := t.w.known(f.Job); isNew(e.Body) {
				t.gives(j.Terms().Parent, f.Job)
			}
		case state.JobChanged:
			if b, ok := e.Body.(core.JobUpdated); ok && b.Changes.Budget != nil && b.Changes.Budget.Cmp(t.w.job(f.Job).terms.Budget) > 0 {
				j, _ := t.w.known(f.Job)
				t.gives(j.Terms().Parent, f.Job)
			}
		}
	}
}

func isNew(b core.Body) bool {
	switch b.(type) {
	case core.JobSubmitted, core.Spawn, core.Proposed:
		return true
	}
	return false
}

// gives verifies that a hold had what it gave.
func (t *twin) gives(hold, to string) {
	if hold == "" {
		return
	}
	h := t.holds[hold]
	for up := hold; up != ""; up = t.holds[up].parent {
		if t.holds[up] == nil || t.holds[up].over {
			t.w.breaks("hold: %s begins in %s, and %s is closed", to, hold, up)
			return
		}
	}
	if taken := t.w.takenOf(hold, t.holds); taken.Cmp(h.budget) > 0 {
		t.w.breaks("hold: with %s %v is taken of %s, which has %v", to, taken, hold, h.budget)
	}
}

// checkHolds verifies at the end of a life that no hold cost more than its budget, apart from what its parts overspent
// and what was posted to ended parts. The postings give the sums.
func (w *World) checkHolds() {
	holds := w.holds()
	spent, room := map[string]money.Amount{}, map[string]money.Amount{}
	for _, p := range w.postings {
		j, ok := w.known(p.Owner.Job)
		if !ok || j.Terms().Parent == "" {
			continue
		}
		spent[j.ID()] = spent[j.ID()].Add(cost(p))
		if part := cost(p); part.Sign() > 0 && !p.At.Before(j.Finished()) {
			for up := j.Terms().Parent; up != ""; up = holds[up].parent {
				room[up] = room[up].Add(part)
			}
		}
	}
	all := map[string]money.Amount{}
	for id, s := range spent {
		j, _ := w.known(id)
		for up := j.Terms().Parent; up != ""; up = holds[up].parent {
			all[up] = all[up].Add(s)
			if beyond := s.Sub(j.Terms().Budget); beyond.Sign() > 0 {
				room[up] = room[up].Add(beyond)
			}
		}
	}
	for _, name := range sortedKeys(all) {
		if most := holds[name].budget; all[name].Sub(room[name]).Cmp(most) > 0 {
			w.breaks("hold: %s of %v has cost %v, and %v of that nobody could know", name, most, all[name], room[name])
		} else if all[name].Add(all[name]).Cmp(most) > 0 {
			w.saw("a hold more than half spent")
		}
	}
}

// partsLeft reports whether parts are still to be submitted.
func (w *World) partsLeft() bool {
	return w.coming > 0 || slices.ContainsFunc(w.groups(), func(h *state.Group) bool { return h.Phase == state.GroupOpen })
}
