package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/size"
)

// Run lives the life that the seed draws and checks every property of it.
func Run(seed uint64, plant Plant) *World {
	w := newWorld(rand.New(rand.NewPCG(seed, 0x5c81)), epoch)
	w.seed, w.plant = seed, plant
	w.draw()
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 1 + w.rng.IntN(3)
	cfg.Detect = time.Minute
	w.step(core.Configured{Config: cfg})
	w.submitAll()
	w.quotes()
	w.after(time.Minute, w.housekeeping)
	for len(w.heap) > 0 && w.now.Sub(epoch) < horizon {
		w.next()
		if plant != PlantNone && len(w.Broken) > 0 {
			break
		}
		if w.up && w.m.Quiet() && w.allTold() {
			break
		}
	}
	w.check()
	return w
}

// draw draws the market, the faults and the jobs.
func (w *World) draw() {
	odds := func(p float64) float64 {
		if w.chance(0.5) {
			return 0
		}
		return p
	}
	w.faults = faults{
		Refuse: odds(0.3), LoseAnswer: odds(0.2), Late: odds(0.3), Twice: odds(0.3), Crash: odds(0.02), Silent: odds(0.05), TermFail: odds(0.3),
		onDemandFails: w.chance(0.3),
	}
	// Every fifth life has no fault but the market's and one job: what is
	// promised of a deadline is held there.
	calm := w.seed%5 == 0
	if calm {
		w.faults = faults{}
	}
	for n := range 1 + w.rng.IntN(3) {
		name := fmt.Sprintf("z%d", n)
		z := &zone{
			name: name,
			spot: market.OfferID("sim/" + name + "/m/spot"), firm: market.OfferID("sim/" + name + "/m/on-demand"),
			rate: money.Rate(900_000_000_000 + w.rng.Int64N(400_000_000_000)),
		}
		z.offer = market.Offer{ID: z.spot, Provider: "sim", Region: "r", Zone: name, Machine: "m", Capacity: market.Spot, CPUs: 4, Memory: 8 * size.GiB, Speed: 1, Currency: money.USD}
		if w.chance(0.3) {
			z.offer.Billing.FreeIfInterruptedWithin = time.Hour
		}
		z.firmOffer, z.firmRate = z.offer, firmRate
		z.firmOffer.ID, z.firmOffer.Capacity, z.firmOffer.Notice = z.firm, market.OnDemand, 0
		w.zones = append(w.zones, z)
		w.after(w.span(5), func() { w.turn(z) })
	}
	jobs := 1 + w.rng.IntN(3)
	if calm {
		jobs = 1
	}
	for n := range jobs {
		work := time.Duration(30+w.rng.IntN(600)) * time.Minute
		pace := 200 + 4000*w.rng.Float64()
		j := simJob{
			id: fmt.Sprintf("job%d", n), pace: pace, steps: int64(work.Hours() * pace),
			boot: time.Duration(10+w.rng.IntN(120)) * time.Second, save: time.Duration(2+w.rng.IntN(90)) * time.Second,
		}
		j.terms = core.Terms{
			Name: j.id, Currency: money.USD, Steps: j.steps, Restart: 4 * time.Minute, Grace: 3 * time.Minute, Saves: true, Priority: w.rng.IntN(3),
			Owner: ledger.Owner{Team: "t", Project: "p"}, Need: plan.Need{CPUs: 1}, Work: work,
		}
		if calm || w.chance(0.6) {
			j.terms.Deadline = epoch.Add(work + time.Duration(w.rng.Float64()*2*float64(work)) + 30*time.Minute)
		}
		if !calm && w.chance(0.4) {
			budget, _ := money.Estimated(work.Hours() * (0.5 + 4*w.rng.Float64()))
			j.terms.Budget, j.terms.HasBudget, j.terms.DeadlineFirst = budget, true, w.chance(0.3)
		}
		if !calm && w.chance(0.2) {
			j.terms.Metric = policy.Metric{Name: "loss", Target: 1 + 3*w.rng.Float64(), HasGoal: true}
		}
		if !calm && w.chance(0.1) {
			j.terms.WallClock = work
		}
		w.jobs = append(w.jobs, j)
	}
}

// submitAll submits every job until it is durable, as a client with an idempotency key does.
func (w *World) submitAll() {
	for n := range w.jobs {
		j := &w.jobs[n]
		var submit func()
		submit = func() {
			if !w.step(core.JobSubmitted{Job: j.id, Terms: j.terms}) {
				w.after(time.Minute, submit)
			} else if w.chance(w.faults.Twice) {
				w.step(core.JobSubmitted{Job: j.id, Terms: j.terms})
			}
		}
		submit()
		if w.chance(0.1) {
			save := w.chance(0.5)
			w.after(time.Duration(w.rng.IntN(300))*time.Minute, func() { w.step(core.JobEnded{Job: j.id, Save: save}) })
		}
	}
}

// housekeeping is what the shell does by the clock: sweeps, and silent agents.
func (w *World) housekeeping() {
	w.sweep()
	if w.up {
		for _, a := range w.m.Live() {
			if i := w.instances[a.Instance]; i != nil && !i.running() {
				w.endTold(i)
			} else if w.chance(0.0005) && a.Phase == core.Working {
				w.saw("fault silent × agent")
				if w.step(core.AgentSilent{Attempt: a.ID, Since: w.now.Add(-time.Minute)}) {
					continue
				}
			}
		}
	}
	w.after(5*time.Minute, w.housekeeping)
}

// check holds the properties at the end of a life.
func (w *World) check() {
	if !w.up {
		w.breaks("the server never came back")
		return
	}
	var bills, owed money.Amount
	for _, i := range w.order {
		if i.running() {
			w.breaks("leaked: %s of %s still runs", i.id, i.key)
		}
		for _, l := range i.bill {
			bills = bills.Add(l.Amount)
		}
	}
	running := map[string]string{}
	for _, i := range w.order { // rented twice: two machines with one key
		if other, ok := running[i.key]; ok {
			w.breaks("rented twice: %s has %s and %s", i.key, other, i.id)
		}
		running[i.key] = i.id
	}
	byAttempt := map[string]money.Amount{}
	costs := money.Amount{}
	head := ledger.Hash{}
	for n, p := range w.postings {
		if p.Prev != head {
			w.breaks("chain: posting %d does not follow the one before it", n)
			break
		}
		head = p.Hash
		from, to := isCost(p.From), isCost(p.To)
		if to {
			costs = costs.Add(p.Amount)
			byAttempt[p.Owner.Attempt] = byAttempt[p.Owner.Attempt].Add(p.Amount)
		}
		if from {
			costs = costs.Sub(p.Amount)
			byAttempt[p.Owner.Attempt] = byAttempt[p.Owner.Attempt].Sub(p.Amount)
		}
		if string(p.From) == "payable/sim" {
			owed = owed.Add(p.Amount)
		}
		if string(p.To) == "payable/sim" {
			owed = owed.Sub(p.Amount)
		}
	}
	if costs != bills {
		w.breaks("money: the ledger says %v, the provider's bills say %v", costs, bills)
	}
	_ = owed
	spent := money.Amount{}
	for j := range w.m.Jobs() {
		if !j.State.Over() {
			w.breaks("unfinished: %s is %s (%s)", j.ID, j.State, j.Why)
		}
		spent = spent.Add(j.Spent(w.now))
		for _, a := range j.Attempts {
			uses := money.Amount{}
			for _, u := range a.Uses {
				uses = uses.Add(u)
			}
			if total := a.Posted.Add(a.Rules); uses != total || byAttempt[a.ID] != total {
				w.breaks("sums: %s cost %v, its uses %v, its postings %v", a.ID, total, uses, byAttempt[a.ID])
			}
			if open := a.Uses[ledger.Open]; !open.IsZero() && a.Phase == core.Gone {
				w.breaks("sums: %s is gone and %v of it is open", a.ID, open)
			}
		}
		if j.SavedStep > w.blobs[j.ID] {
			w.breaks("work: %s counts on step %d, only %d was published", j.ID, j.SavedStep, w.blobs[j.ID])
		}
		if j.Terms.Saves && j.State == core.Succeeded && j.Why == "completed" && j.Total > 0 && w.blobs[j.ID] < j.Total {
			w.breaks("work: %s is done at step %d of %d", j.ID, w.blobs[j.ID], j.Total)
		}
		w.promises(j)
	}
	if orphans := byAttempt[""]; spent.Add(orphans) != costs {
		w.breaks("money: jobs spent %v and orphans %v, the ledger says %v", spent, orphans, costs)
	}
}

func isCost(a ledger.Account) bool { return len(a) > 5 && a[:5] == "cost/" }

// promises checks what is promised of deadline and budget.
func (w *World) promises(j *core.Job) {
	t := j.Terms
	job := w.job(j.ID)
	if t.HasBudget && !t.DeadlineFirst {
		// burn rate × (grace + the time to notice) + one billing minimum
		limit := t.Budget.Add(firmRate.Until(t.Grace + 6*time.Minute))
		if w.faults.Crash == 0 && w.faults.TermFail == 0 && w.faults.Late == 0 && j.Spent(w.now).Cmp(limit) > 0 {
			w.breaks("budget: %s spent %v of %v", j.ID, j.Spent(w.now), t.Budget)
		}
	}
	overhead := job.boot + job.save + time.Minute
	slack := t.Deadline.Sub(epoch) - t.Work
	quiet := w.faults.Crash == 0 && w.faults.Silent == 0 && w.faults.LoseAnswer == 0 && w.faults.Late == 0 && w.faults.TermFail == 0 && w.Seen["fault silent × agent"] == 0
	alone := len(w.jobs) == 1 && !(w.faults.onDemandFails && w.faults.Refuse > 0)
	if !t.Deadline.IsZero() && quiet && alone && j.State == core.Succeeded && slack >= 2*max(overhead, t.Restart)+2*time.Minute {
		w.saw("deadline promised")
		if j.Finished.After(t.Deadline) {
			w.breaks("deadline: %s was %v late with %v slack at its start", j.ID, j.Finished.Sub(t.Deadline), slack)
		}
	}
}

func (w *World) job(id string) *simJob {
	for n := range w.jobs {
		if w.jobs[n].id == id {
			return &w.jobs[n]
		}
	}
	return nil
}
