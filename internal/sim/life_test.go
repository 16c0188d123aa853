package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Run simulates the life of the seed and checks every property.
func Run(seed uint64, plant Fault) *World {
	w := drawn(seed, plant)
	w.live()
	if plant != FaultNone && len(w.Broken) > 0 {
		return w // it was cut off
	}
	w.check()
	w.checkHolds()
	if w.calm5() {
		w.twin()
	}
	return w
}

// drawn returns the life of the seed before its first event.
func drawn(seed uint64, plant Fault) *World {
	w := newWorld(rand.New(rand.NewPCG(seed, 0x5c81)), epoch)
	w.seed, w.fault = seed, plant
	w.breaksCore()
	w.draw()
	t := newTwin(w)
	r := &roundTwin{w: w, pinned: map[string]int{}}
	w.altered, w.anew, w.before = map[string]time.Time{}, t.reopened, r.before
	w.watch = func(e core.Event, out core.Outcome) { t.watch(e, out); r.watch(e, out) }
	return w
}

func (w *World) live() {
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 1 + w.rng.IntN(3)
	cfg.Detect = detect
	if w.seed%6 != 0 { // the tables of the default policy are slow to build
		cfg.Policy = []policy.Rule{policy.UniformProgress2, policy.UniformProgress, policy.Greedy, policy.UniformProgress2, policy.OnDemand}[w.seed%6-1]
	}
	if w.faults.Lag > 0 && w.fault != FaultNoLag {
		cfg.Consistency = mostLag
	}
	if w.seed/6%7 == 2 { // each policy runs one life in seven
		w.mind.OnRequest()
		w.m.Share(w.mind)
	}
	if w.warm() {
		cfg.Idle = time.Duration(1+w.seed%60) * time.Minute
		cfg.Seats = w.seats()
		cfg.MaxRunning += 2 * w.seats()
	}
	if !w.calm5() && w.seed%3 == 1 {
		cfg.ArchiveAfter = time.Duration(1+w.seed%90) * time.Minute
		cfg.ArchiveUnbilled = time.Duration(w.seed/3%2) * 72 * time.Hour
	}
	if w.paid() {
		cfg.MaxRunning += 2
	}
	w.timings(&cfg)
	w.step(core.IncarnationBegun{Installation: "sim", Incarnation: 1})
	w.cfg = &cfg
	w.step(core.Configured{Config: cfg})
	w.drawRules()
	w.drawPauses()
	w.drawHolds(w.zones[0].offer.Accelerators)
	w.drawArrays(w.zones[0].offer.Accelerators)
	w.drawStudies(w.zones[0].offer.Accelerators)
	w.drawPipelines(w.zones[0].offer.Accelerators)
	w.submitAll()
	w.quotes()
	w.after(time.Minute, w.housekeeping)
	end := horizon
	if w.fault != FaultNone {
		end = horizon / 6 // a faulty life may never end
	}
	for len(w.heap) > 0 && w.now.Sub(epoch) < end {
		w.next()
		if w.fault != FaultNone && len(w.Broken) > 0 {
			break
		}
		if w.up && w.m.Quiet() && w.allTold() && !w.anyHeld() && !w.anyPaused() && !w.partsLeft() && w.arraysLeft() == "" {
			break
		}
	}
}

// drawExtra draws the faults that were added later, from their own source.
func (w *World) drawExtra() {
	w.extra = rand.New(rand.NewPCG(w.seed, 0xe87a))
	if w.calm5() {
		return
	}
	odds := func(p float64) float64 {
		if w.extra.Float64() < 0.5 {
			return 0
		}
		return p
	}
	w.faults.LateBill, w.faults.Pending, w.faults.Lag, w.faults.Copied = odds(0.5), odds(0.15), odds(0.5), odds(0.3)
	w.faults.Register = odds(0.3)
}

// detect bounds how long a loss goes unnoticed in a drawn life.
const detect = time.Minute

// calm5 reports whether the life has no faults but the market's, and one job with a deadline. That is so for every
// fifth seed; these lives check the deadline promise.
func (w *World) calm5() bool { return w.seed%5 == 0 }

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
		Unlisted: odds(0.06), onDemandFails: w.chance(0.3),
	}
	if w.calm5() {
		w.faults = faults{}
	}
	w.drawExtra()
	w.untried = !w.calm5() && w.chance(0.2)
	w.firmDelay = time.Duration(w.rng.IntN(180)) * time.Second
	gpus := 0
	if w.chance(0.4) {
		gpus = 1 + w.rng.IntN(8)
	}
	for n := range 1 + w.rng.IntN(3) {
		name := fmt.Sprintf("z%d", n)
		z := &zone{
			name: name,
			spot: market.OfferID("sim/" + name + "/m/spot"), firm: market.OfferID("sim/" + name + "/m/on-demand"),
			rate: money.Rate(900_000_000_000 + w.rng.Int64N(400_000_000_000)),
		}
		z.offer = market.Offer{ID: z.spot, Provider: "sim", Region: "r", Zone: name, Machine: "m", Capacity: market.Spot, CPUs: 4, Memory: 8 * size.GiB, Accelerators: gpus, Speed: 1, Currency: money.USD}
		if w.chance(0.3) {
			z.offer.Billing.FreeIfInterruptedWithin = time.Hour
		}
		z.firmOffer, z.onDemandRate = z.offer, onDemandRate
		z.firmOffer.ID, z.firmOffer.Capacity, z.firmOffer.Notice = z.firm, market.OnDemand, 0
		w.zones = append(w.zones, z)
		w.after(w.span(5), func() { w.turn(z) })
	}
	w.drawImages()
	w.drawSellers()
	w.drawReserved()
	if w.calm5() {
		w.jobs = append(w.jobs, w.drawCalm())
		return
	}
	if w.chance(0.2) {
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, func() { w.orphan(w.zones[0]) })
	}
	more := 0
	if w.paid() {
		more = 3
	}
	for n := range 1 + w.rng.IntN(4) + w.seats() + more {
		w.jobs = append(w.jobs, w.drawJob(fmt.Sprintf("job%d", n), gpus))
		if w.gangs() {
			w.drawGang(&w.jobs[n])
		}
		w.namesImage(n)
		if w.warm() {
			w.jobs[n].by = []string{"", "", "ann"}[(w.seed/3+uint64(n))%3]
		}
		if w.seats() > 0 {
			need := &w.jobs[n].terms.Need
			need.CPUs = 1 + int(w.seed/3+uint64(n))%3
			need.Accelerators = min(gpus, int(w.seed/7+uint64(n))%3)
			if w.seed%5 < 2 && need.Accelerators == 0 { // a range of processors: a part with all accelerators may have more
				need.MaxCPUs, need.Parallel = need.CPUs+int(w.seed/5+uint64(n))%3, float64(w.seed%5)*0.8
			}
		}
	}
}

// drawWork draws a job with work and no limits.
func (w *World) drawWork(id string) simJob {
	work := time.Duration(30+w.rng.IntN(600)) * time.Minute
	pace := 200 + 4000*w.rng.Float64()
	j := simJob{
		id: id, pace: pace, steps: int64(work.Hours() * pace),
		boot: time.Duration(10+w.rng.IntN(120)) * time.Second, save: time.Duration(2+w.rng.IntN(90)) * time.Second,
	}
	j.terms = core.Terms{
		Name: j.id, Currency: money.USD, Steps: j.steps, Restart: 4 * time.Minute, Grace: 3 * time.Minute, Saves: true, Priority: w.rng.IntN(3),
		Owner: ledger.Owner{Team: fmt.Sprintf("team%d", w.rng.IntN(2)), Project: "p"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Work: work,
	}
	return j
}

func (w *World) drawCalm() simJob {
	j := w.drawWork("job0")
	j.terms.Deadline = epoch.Add(j.terms.Work + time.Duration(w.rng.Float64()*2*float64(j.terms.Work)) + 30*time.Minute)
	return j
}

// drawJob draws a job with limits of every kind, and a program with typical behaviour.
func (w *World) drawJob(id string, gpus int) simJob {
	j := w.drawWork(id)
	t := &j.terms
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*w.rng.Float64() }
	if w.chance(0.5) {
		t.Deadline = epoch.Add(t.Work + time.Duration(within(0, 2)*float64(t.Work)) + 30*time.Minute)
	}
	if w.chance(0.4) {
		t.Budget, _ = money.Estimated(t.Work.Hours() * within(0.5, 4.5))
		t.HasBudget, t.DeadlineFirst = true, w.chance(0.3)
	}
	if w.chance(0.1) {
		t.WallClock = time.Duration(within(0.3, 1.5) * float64(t.Work))
	}
	if gpus > 0 && w.chance(0.3) {
		t.GPUHours = t.Work.Hours() * float64(gpus) * within(0.2, 1.2)
	}
	if w.chance(0.2) {
		spot, firm := []market.Capacity{market.Spot}, []market.Capacity{market.OnDemand}
		t.Need.Ladder = []plan.Rung{{Capacity: spot, For: time.Duration(5+w.rng.IntN(60)) * time.Minute, Failures: w.rng.IntN(3)}, {Capacity: firm}}
	}
	if w.chance(0.2) {
		t.Need.Variants = []plan.Variant{{Name: "fast", Throughput: within(0.5, 3), Requirements: plan.Requirements{CPUs: 1}}}
		if len(t.Need.Ladder) > 0 {
			t.Need.Ladder[1].Use = "fast"
		}
	}
	if w.chance(0.3) {
		t.Need.MaxRate = money.Rate(within(0.9, 1.6) * 1e12)
	}
	if w.chance(0.3) {
		t.Metric = policy.Metric{Name: "loss"}
	}
	switch w.rng.IntN(8) {
	case 0:
		t.Metric = policy.Metric{Name: "loss", Target: within(1, 4), HasGoal: true}
		if w.seed%3 == 0 {
			j.dips = max(1, j.steps/7)
		}
	case 1:
		t.Metric = policy.Metric{Name: "loss", Patience: max(1, j.steps/int64(4+w.rng.IntN(16)))}
		j.flat = int64(within(0.1, 0.8) * float64(j.steps))
	case 2:
		j.nan = int64(within(0.1, 1) * float64(j.steps))
	case 3:
		j.hangs = int64(within(0.1, 1) * float64(j.steps))
		t.IdleLimit = time.Duration(5+w.rng.IntN(30)) * time.Minute
	}
	if w.chance(0.3) {
		t.MaxRetries = w.rng.IntN(3)
		if w.chance(0.3) {
			t.RetryCodes = []int{137}
		}
		for range w.rng.IntN(4) { // a setup fails before the first step
			if !w.chance(0.7) {
				break
			}
			j.fails = append(j.fails, failure{exit: 2 + t.MaxRetries*len(j.fails)%2, setup: true}) // all alike, or each like the one before the previous
		}
		for range 1 + w.rng.IntN(3) {
			j.fails = append(j.fails, failure{step: int64(within(0, 1) * float64(j.steps)), exit: []int{75, 75, 137, 1}[w.rng.IntN(4)]})
		}
	}
	j.deaf, j.outputs = w.chance(0.1), w.chance(0.4)
	if w.chance(0.2) {
		j.secret = "hunter2-" + id
		j.spec = json.RawMessage(`{"secrets":["TOKEN"]}`)
	}
	if w.chance(0.05) {
		t.Saves = false
	}
	return j
}

// submitAll submits every job until it is durable, as a client with an idempotency key does.
func (w *World) submitAll() {
	for n := range w.jobs {
		w.submit(w.jobs[n])
		j, id := w.jobs[n], w.jobs[n].id
		if j.terms.Need.MaxRate > 0 || !j.terms.Saves { // no offer may ever be so cheap or last so long: the user gives up
			w.after(72*time.Hour, func() { w.giveUp(id) })
		} else if j.terms.HasBudget { // it waits for a price that suits its budget, which may never come
			w.after(20*24*time.Hour, func() { w.giveUp(id) })
		}
		if w.calm5() || !w.chance(0.15) {
			continue
		}
		save, again := w.chance(0.5), w.chance(0.5)
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, func() {
			w.step(core.JobEnded{Job: j.id, Save: save})
			if !again {
				return
			}
			w.saw("rerun")
			j.id += "-again"
			j.terms.Name, j.terms.Deadline = j.id, time.Time{}
			w.jobs = append(w.jobs, j)
			w.submit(j)
			w.after(72*time.Hour, func() { w.giveUp(j.id) })
		})
	}
}

// giveUp cancels the job as soon as the server answers.
func (w *World) giveUp(job string) {
	if !w.step(core.JobEnded{Job: job}) {
		w.after(time.Minute, func() { w.giveUp(job) })
	}
}

func (w *World) submit(j simJob) {
	b := core.JobSubmitted{Job: j.id, Terms: j.terms, Spec: j.spec, Asking: w.asking(j)}
	if w.fault == FaultOrder {
		b.Terms.Priority = 1
	}
	if w.fault == FaultNoMax {
		b.Terms.Need.MaxRate = 0
	}
	if !w.step(b) {
		w.after(time.Minute, func() { w.submit(j) })
	} else if w.chance(w.faults.Twice) {
		w.step(b)
	}
}

// housekeeping does what the shell does by the clock: it sweeps, and detects silent agents.
func (w *World) housekeeping() {
	w.sweepDue()
	if w.up {
		for _, a := range w.m.Live() {
			for _, k := range a.Tasks() {
				if i := w.instances[k.Instance()]; i != nil && !i.running() {
					w.endTold(i)
				} else if !w.calm5() && !w.plain && w.chance(0.001) && k.Phase() == core.TaskRunning {
					w.saw("fault silent × agent")
					w.step(core.AgentSilent{Attempt: a.ID(), Node: k.Rank(), Since: w.now.Add(-time.Minute)})
				}
			}
		}
	}
	w.after(5*time.Minute, w.housekeeping)
}

func (w *World) job(id string) *simJob {
	for n := range w.jobs {
		if w.jobs[n].id == id {
			return &w.jobs[n]
		}
	}
	return nil
}
