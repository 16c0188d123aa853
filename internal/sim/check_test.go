package sim

import (
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// check verifies the properties at the end of a life.
func (w *World) check() {
	if !w.up {
		w.breaks("the server never came back")
		return
	}
	w.checkMachines()
	w.checkArchive()
	w.checkMoney()
	w.checkComplete()
	w.checkExport(focus.V14)
	for _, j := range w.allJobs() {
		if !j.State().Over() {
			w.breaks("unfinished: %s is %s (%s)", j.ID(), j.State(), j.Why())
			continue
		}
		w.saw("ended " + j.Why())
		if j.SavedStep() > w.blobs[j.ID()] {
			w.breaks("work: %s counts on step %d, only %d was published", j.ID(), j.SavedStep(), w.blobs[j.ID()])
		}
		if j.Terms().Saves && j.State() == core.Succeeded && j.Why() == "completed" && j.Total() > 0 && w.blobs[j.ID()] < j.Total() {
			w.breaks("work: %s is done at step %d of %d", j.ID(), w.blobs[j.ID()], j.Total())
		}
		if w.script == nil {
			w.checkLimits(j)
			w.checkSaved(j)
			w.checkEarly(j)
		}
	}
}

// checkMachines verifies that no machine runs and none was rented twice.
func (w *World) checkMachines() {
	rented := map[string][]string{}
	for _, i := range w.order {
		if i.running() {
			w.breaks("leaked: %s of %s still runs", i.id, i.key)
		}
		if rented[i.key] = append(rented[i.key], i.id); len(rented[i.key]) > max(1, w.wanted[i.key]) {
			w.breaks("rented twice: %s has %s and %s", i.key, rented[i.key][0], i.id)
		}
	}
}

// checkArchive verifies that the records of archived jobs and groups are those that the core handed out.
func (w *World) checkArchive() {
	var sum ledger.Hash
	for _, record := range append(slices.Collect(maps.Values(w.archive)), slices.Collect(maps.Values(w.pastGroups))...) {
		hash := state.RecordHash(record)
		carry := 0
		for n := len(sum) - 1; n >= 0; n-- {
			carry += int(sum[n]) + int(hash[n])
			sum[n] = byte(carry)
			carry >>= 8
		}
	}
	if n := w.m.State().ArchivedGroups(); n != len(w.pastGroups) {
		w.breaks("archive: %d records of groups, and the core let go of %d", len(w.pastGroups), n)
	}
	if jobs, want := w.m.State().ArchivedJobs(); jobs != len(w.archive) || sum != want {
		w.breaks("archive: %d records with sum %x, and the core let go of %d with %x", len(w.archive), sum, jobs, want)
	}
}

// checkMoney verifies that the sums are equal at every level, from the provider's bill of one machine to the total
// cost.
func (w *World) checkMoney() {
	sums := map[string]map[string]money.Amount{"attempt": {}, "instance": {}, "job": {}, "team": {}}
	var costs money.Amount
	add := func(o ledger.Owner, a money.Amount) {
		costs = costs.Add(a)
		for level, of := range map[string]string{"attempt": o.Attempt, "instance": o.Instance, "job": o.Job, "team": o.Team} {
			sums[level][of] = sums[level][of].Add(a)
		}
	}
	idle, idleAt := map[string]money.Amount{}, map[string]time.Time{} // of reservations
	head := ledger.Hash{}
	for n, p := range w.postings {
		if p.Prev != head {
			w.breaks("chain: posting %d does not follow the one before it", n)
			break
		}
		head = p.Hash
		if p.Rule == "reserved" && isCost(p.To) {
			idle[p.Owner.Instance] = idle[p.Owner.Instance].Add(p.Amount)
		}
		if p.Rule == "reserved" && isCost(p.From) {
			idle[p.Owner.Instance] = idle[p.Owner.Instance].Sub(p.Amount)
		}
		if p.Rule == "reserved" {
			idleAt[p.Owner.Instance] = p.At
		}
		if isCost(p.To) {
			add(p.Owner, p.Amount)
		}
		if isCost(p.From) {
			add(p.Owner, money.Amount{}.Sub(p.Amount))
		}
	}
	var bills money.Amount
	used := map[string]money.Amount{}
	for _, i := range w.order {
		var bill money.Amount
		for _, l := range i.bill {
			bill = bill.Add(l.Amount)
		}
		bills = bills.Add(bill)
		if i.offer.Reserved.Count > 0 {
			used[string(i.offer.ID)] = used[string(i.offer.ID)].Add(bill)
			if i.until.After(idleAt[string(i.offer.ID)]) { // no machine of it was idle then
				idleAt[string(i.offer.ID)] = i.until
			}
		}
		if sums["instance"][i.id] != bill {
			w.breaks("money: the bill of %s is %v, the ledger says %v", i.id, bill, sums["instance"][i.id])
		}
	}
	for _, z := range w.zones {
		id, r := string(z.firmOffer.ID), z.firmOffer.Reserved
		if r.Count == 0 {
			continue
		}
		w.saw("reserved")
		bills = bills.Add(idle[id])
		if w.now.Before(r.From) && idleAt[id].IsZero() { // its cost before its beginning is booked at that time
			continue
		}
		if r.Marginal > 0 { // seven eighths of its price are prepaid; each posting is truncated by less than a unit
			owned := used[id].Big()
			owned.Quo(owned.Mul(owned, big.NewInt(7)), big.NewInt(8))
			off := owned.Add(owned, idle[id].Big()).Sub(owned, r.Committed(idleAt[id]).Big())
			if off.CmpAbs(big.NewInt(int64(len(w.postings)))) > 0 {
				w.breaks("money: of %s %v were used and %v idle, and %v were paid by %v: %v off", id, used[id], idle[id],
					r.Committed(idleAt[id]), idleAt[id], off)
			}
			continue
		}
		if all := used[id].Add(idle[id]); all != r.Committed(idleAt[id]) {
			w.breaks("money: of %s %v were used and %v idle, and %v were paid by %v", id, used[id], idle[id], r.Committed(idleAt[id]), idleAt[id])
		}
	}
	if costs != bills {
		w.breaks("money: the ledger says %v, the provider's bills say %v", costs, bills)
	}
	var spent money.Amount
	teams := w.checkIdle()
	for _, j := range w.allJobs() {
		if got := j.Spent(w.now); sums["job"][j.ID()] != got {
			w.breaks("sums: %s spent %v, its postings say %v", j.ID(), got, sums["job"][j.ID()])
		}
		spent = spent.Add(j.Spent(w.now))
		if mine := w.job(j.ID()); mine != nil {
			teams[mine.terms.Owner.Team] = teams[mine.terms.Owner.Team].Add(j.Spent(w.now))
		}
		for _, a := range j.Attempts() {
			w.checkAttempt(a, sums["attempt"][a.ID()])
		}
	}
	for _, team := range sortedKeys(teams) {
		if teams[team] != sums["team"][team] {
			w.breaks("sums: the jobs of %s spent %v, its postings say %v", team, teams[team], sums["team"][team])
		}
	}
	if orphans := sums["attempt"][""]; spent.Add(orphans) != costs {
		w.breaks("money: jobs spent %v and orphans %v, the ledger says %v", spent, orphans, costs)
	}
}

func (w *World) checkAttempt(a *core.Attempt, posted money.Amount) {
	uses := money.Amount{}
	for _, u := range a.Uses() {
		uses = uses.Add(u)
		if u.Sign() < 0 {
			w.breaks("sums: a use of %s cost %v", a.ID(), u)
		}
	}
	if total := a.Posted().Add(a.Rules()); uses != total || posted != total {
		w.breaks("sums: %s cost %v, its uses %v, its postings %v", a.ID(), total, uses, posted)
	}
	if open := a.Uses()[ledger.Open]; !open.IsZero() && !a.Live() {
		w.breaks("sums: %s is gone and %v of it is open", a.ID(), open)
	}
}

func isCost(a ledger.Account) bool { return len(a) > 5 && a[:5] == "cost/" }

// checkLimits verifies that each guard stops its job within its bound.
func (w *World) checkLimits(j *core.Job) {
	job := w.job(j.ID())
	t := job.terms
	// Time that a stop takes: the grace and the patience of a drain, a machine that boots meanwhile, the delays of the
	// faults, and the server's total downtime.
	room := t.Grace + 2*time.Minute + 10*time.Minute + 6*time.Minute + w.away
	until := j.Finished()
	if paused := j.PausedSince(); !paused.IsZero() {
		until = paused
	}
	if t.WallClock > 0 && !j.Began().IsZero() && until.Sub(j.Began()) > t.WallClock+room {
		w.breaks("guard: %s went on for %v, its wall clock is %v", j.ID(), until.Sub(j.Began()), t.WallClock)
	}
	var served time.Duration
	for _, name := range sortedKeys(w.agents) {
		a := w.agents[name]
		if a.job.id != j.ID() {
			continue
		}
		i, until := a.i, a.i.until
		if !a.gone.IsZero() {
			until = a.gone
		}
		counted := until
		for at := range i.omitted { // the core gives up a machine that its provider does not list
			if at.After(a.since) && at.Before(counted) {
				counted = at
			}
		}
		served += time.Duration(a.gpus) * counted.Sub(a.since)
		if t.IdleLimit > 0 && !a.began.IsZero() {
			hung := a.began.Add(time.Duration(float64(max(0, job.hangs-a.from)) / a.pace * float64(time.Hour)))
			if until.Sub(hung) > t.IdleLimit+2*reportEvery+room {
				w.breaks("guard: %s did nothing for %v, the limit is %v", i.id, until.Sub(hung), t.IdleLimit)
			}
		}
	}
	gpus := w.zones[0].offer.Accelerators * job.nodes()
	if limit := time.Duration(t.GPUHours * float64(time.Hour)); t.GPUHours > 0 && served > limit+time.Duration(gpus)*room {
		w.breaks("guard: %s used %v of GPU time, its limit is %v", j.ID(), served, limit)
	}
	if t.HasBudget && !t.DeadlineFirst && w.endsInTime() {
		// The machine of a program is terminated when its budget is spent; a server that is down does so after its
		// restart.
		most := t.Budget.Add((onDemandRate * money.Rate(job.nodes())).Until(w.away))
		if job.deaf { // terminating its machine takes a moment
			most = most.Add((onDemandRate * money.Rate(job.nodes())).Until(slowestEnd))
		}
		if j.Spent(w.now).Cmp(most) > 0 {
			w.breaks("budget: %s spent %v of %v", j.ID(), j.Spent(w.now), t.Budget)
		}
	}
	if t.HasBudget && t.DeadlineFirst && j.Spent(w.now).Cmp(t.Budget) > 0 {
		w.saw("deadline first, over the budget")
	}
	if t.Need.MaxRate > 0 && j.State() == core.Succeeded {
		w.saw("done under a highest price")
	}
}

// endsInTime reports whether no fault of this life makes machines end later than the core terminates them.
func (w *World) endsInTime() bool {
	f := &w.faults
	return f.Crash == 0 && f.TermFail == 0 && f.Late == 0 && f.LoseAnswer == 0 && f.Unlisted == 0
}

// guards lists the reasons for stopping a run before its program ends.
var guards = []policy.Stop{policy.TargetReached, policy.BudgetSpent, policy.BudgetShort, policy.GPUHoursSpent, policy.WallClock, policy.Plateau, policy.Diverged, policy.MachineIdle}

// checkSaved verifies that a run that a guard or the user stopped was saved first.
func (w *World) checkSaved(j *core.Job) {
	a := j.Attempt()
	if a == nil || !j.Terms().Saves || a.Lead().End() != "drained" || !slices.Contains(guards, policy.Stop(j.Why())) && j.Why() != "stopped_by_user" && j.Why() != core.LimitSpent {
		return
	}
	ag := w.agents[a.ID()]
	if ag == nil || ag.job.deaf || !ag.holds() || ag.began.IsZero() {
		return
	}
	w.saw("stopped with a checkpoint")
	if w.blobs[j.ID()] < ag.left {
		w.breaks("guard: %s was stopped (%s) at step %d, its checkpoint holds %d", j.ID(), j.Why(), ag.left, w.blobs[j.ID()])
	}
}

// checkEarly verifies that no guard stops a job before its limit.
func (w *World) checkEarly(j *core.Job) {
	job := w.job(j.ID())
	t := job.terms
	switch policy.Stop(j.Why()) {
	case policy.WallClock:
		if j.Finished().Sub(j.Began()) < t.WallClock {
			w.breaks("early: %s was stopped after %v, its wall clock is %v", j.ID(), j.Finished().Sub(j.Began()), t.WallClock)
		}
	case policy.BudgetSpent: // the last save is set aside, and no machine is rented for less than a restart with a save
		least := t.Grace + j.SaveCost() + max(t.Restart, j.Restart()+j.SaveCost()) + time.Minute
		if kept := (onDemandRate * money.Rate(job.nodes())).Until(least); w.spent(j).Add(kept).Cmp(t.Budget) < 0 {
			w.breaks("early: %s was stopped at %v, its budget is %v", j.ID(), w.spent(j), t.Budget)
		}
	case policy.GPUHoursSpent:
		if limit := time.Duration(t.GPUHours * float64(time.Hour)); served(j) < limit {
			w.breaks("early: %s was stopped after %v of GPU time, its limit is %v", j.ID(), served(j), limit)
		}
	case policy.MachineIdle:
		if job.hangs == 0 {
			w.breaks("early: %s was stopped as idle and never hung", j.ID())
		}
	case policy.Diverged:
		if job.nan == 0 {
			w.breaks("early: %s was stopped as diverged and did not", j.ID())
		}
	case policy.Plateau:
		if job.flat == 0 {
			w.breaks("early: %s was stopped on a plateau and had none", j.ID())
		}
	case policy.BudgetShort: // TestPlay_BudgetFirst… compares the rest with the cheapest offer
		if t.Deadline.IsZero() || t.DeadlineFirst {
			w.breaks("early: %s was stopped for its budget, which does not come first", j.ID())
		}
	case policy.TargetReached, policy.DeadlineGone:
	}
}

// served returns the GPU time of j when it was stopped, including machines whose earlier end the core did not know yet.
func served(j *core.Job) time.Duration {
	sum := j.GPUServed()
	if len(j.Attempts()) == 0 { // a stage that never began, of a pipeline whose GPU-hours are used
		return sum
	}
	for _, k := range j.Attempts()[len(j.Attempts())-1].Tasks() {
		if unheard := j.Finished().Sub(k.Until()); !k.Until().IsZero() && unheard > 0 {
			sum += unheard * time.Duration(k.GPUs())
		}
	}
	return sum
}

// spent returns the cost of j when it was stopped, without credits from bills of that moment or later.
func (w *World) spent(j *core.Job) money.Amount {
	sum := j.Spent(w.now)
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			if i := w.instances[k.Instance()]; i != nil && !i.billedAt.Before(j.Finished()) && k.Rules().Sign() < 0 {
				sum = sum.Sub(k.Rules())
			}
		}
	}
	return sum
}

// twin compares the life with the same life on-demand from the start: if that meets the deadline with a slack of two
// restarts and one detection time, the life must meet it, too.
func (w *World) twin() {
	j, ok := w.m.Job("job0")
	if !ok || j.State() != core.Succeeded {
		return
	}
	job := w.job(j.ID())
	o := drawn(w.seed, FaultNone)
	o.rng = rand.New(rand.NewPCG(w.seed, 2))
	o.jobs[0].terms.Need.Capacity = []market.Capacity{market.OnDemand}
	o.live()
	other, ok := o.m.Job(j.ID())
	if !ok || other.State() != core.Succeeded {
		w.breaks("deadline: the on-demand twin of %s ended as %s", j.ID(), other.State())
		return
	}
	d := max(job.terms.Restart, job.boot+job.save+w.firmDelay) + w.longestGrant()
	if job.terms.Deadline.Sub(other.Finished()) < 2*d+detect {
		return
	}
	w.saw("deadline promised")
	if j.Finished().After(job.terms.Deadline) {
		w.breaks("deadline: %s was %v late, on-demand it was %v early", j.ID(), j.Finished().Sub(job.terms.Deadline), job.terms.Deadline.Sub(other.Finished()))
	}
}
