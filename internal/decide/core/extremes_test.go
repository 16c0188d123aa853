package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// extremes holds the largest values that a job may state, and larger ones that no job can state any more. A step
// must accept both.
var extremes = struct {
	spans []time.Duration
	steps []int64
	hours []float64
	usd   []string
}{
	spans: []time.Duration{0, 1, time.Hour, quantity.Decade, math.MaxInt64 / 2, math.MaxInt64},
	steps: []int64{0, 1, 1000, 20e9, 1e11, 20e12, math.MaxInt64},
	hours: []float64{0, 1e-9, 64, 2e6, 1.7e308},
	usd:   []string{"0.000000000001", "12", "1000000000000", "150000000000000000000000000"},
}

// extremeRig offers spot in two zones and on-demand, at the highest and at the lowest price.
func extremeRig(t *testing.T, rate money.Rate, limits ...budget.Limit) *warmRig {
	t.Helper()
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	cfg := DefaultConfig()
	cfg.MaxRunning = 100
	w.step(0, Configured{Config: cfg})
	if len(limits) > 0 {
		w.step(0, BudgetsSet{Rules: budget.Rules{Limits: limits}})
	}
	seen := MarketSeen{}
	for i, capacity := range []market.Capacity{market.Spot, market.Spot, market.OnDemand} {
		zone := fmt.Sprint("z", i)
		o := market.Offer{ID: market.OfferID("p/" + zone + "/m/" + string(capacity)), Provider: "p", Region: zone, Zone: zone, Machine: "m",
			Capacity: capacity, CPUs: 8, Accelerator: "H100", Accelerators: 8, Speed: 1, Currency: money.USD}
		price := rate
		if capacity == market.Spot {
			price = max(1, rate/3)
		}
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: price, Priced: true, Available: true, At: agentsStart})
	}
	w.step(0, seen)
	return w
}

func termsOf(job string, change func(*Terms)) JobSubmitted {
	t := Terms{Name: job, Currency: money.USD, Priority: 1, Restart: time.Minute, Grace: time.Minute, Promise: 0.99, Saves: true,
		Owner: ledger.Owner{Team: "red"}}
	change(&t)
	return JobSubmitted{Job: job, Terms: t}
}

// runs gives a job its machine and starts its program.
func (w *warmRig) runs(job string) (attempt string) {
	w.t.Helper()
	j, ok := w.Job(job)
	if !ok || j.Asked() == nil {
		return ""
	}
	a := j.Asked()
	attempt = fmt.Sprintf("%s.%d", job, j.Epoch())
	for n := range a.Nodes() {
		w.step(0, LaunchDone{Launch: a.ID(), Instance: fmt.Sprintf("i-%s-%d", attempt, n), Offer: a.Machine().Offer, Rate: w.quoted(a.Machine().Offer),
			From: agentsStart.Add(w.at)})
		w.step(0, AgentClaimed{Attempt: attempt, Node: n})
		w.step(0, AttemptStarted{Attempt: attempt, Node: n})
	}
	return attempt
}

func (w *warmRig) quoted(offer market.OfferID) money.Rate {
	return w.State().Listing(offer).Quote().Rate
}

// Two jobs with budgets whose sum overflows block nobody, with or without a team limit, before and after it is set.
func TestExtremes_HugeBudgetsBlockNobody(t *testing.T) {
	huge, _ := money.Parse("150000000000000000000000000")
	limit := budget.Limit{Scope: "team:red", Window: budget.Month, Jobs: new(10)}
	w := extremeRig(t, 1e12, limit)
	for _, job := range []string{"a", "b", "c"} {
		w.step(0, termsOf(job, func(t *Terms) { t.Budget, t.HasBudget = huge, true }))
	}
	limit.Dollars = new(money.Picos(50e12))
	w.step(time.Minute, BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{limit}}})
	if b, _ := w.admission.Books(w.Now()); b.Use(limit).Held.Cmp(huge) < 0 {
		t.Errorf("held are %v", b.Use(limit).Held)
	}
}

// A deadline beyond the longest duration does not delay a step: for a job with known work, alone, behind a quota,
// or after an update to that deadline.
func TestExtremes_FarDeadlineDelaysNoStep(t *testing.T) {
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	w := extremeRig(t, 1e12, budget.Limit{Scope: "team:red", Window: budget.Total, Running: new(1)})
	late := func(t *Terms) { t.Deadline, t.Work = far, 10*time.Hour }
	w.step(0, termsOf("a", late))
	w.step(0, termsOf("queued", late))
	w.runs("a")
	w.step(time.Hour, JobUpdated{Job: "a", Changes: Changes{Deadline: &far}})
	w.step(time.Hour, Tick{})
	if a, _ := w.Job("a"); a.State().Over() {
		t.Errorf("the job is %s", a.State())
	}
}

// A program may state and report any number of steps: the remaining time is long but does not overflow.
func TestExtremes_HugeStepCountsDoNotOverflow(t *testing.T) {
	for _, steps := range extremes.steps[3:] {
		for _, told := range []bool{false, true} {
			w := extremeRig(t, 1e12)
			w.step(0, termsOf("a", func(t *Terms) {
				t.Budget, t.HasBudget, t.Deadline = money.Picos(100e12), true, agentsStart.Add(1000*time.Hour)
				if !told {
					t.Steps = steps
				}
			}))
			attempt := w.runs("a")
			for n := range int64(4) {
				w.step(time.Minute, Progressed{Attempt: attempt, Message: n + 1, Step: n + 1, Total: steps})
			}
			j, _ := w.Job("a")
			left, _, ok := j.Left(1)
			if !ok || left <= 0 || left > quantity.Forever {
				t.Errorf("%d steps, told %v: %v are left, %v", steps, told, left, ok)
			}
			if _, _, ok := j.Left(1e-9); !ok {
				t.Error("on a slow machine nobody knows")
			}
			w.decider.Interval(j)
		}
	}
}

// Work longer than the longest duration is planned like any work that cannot finish in time.
func TestExtremes_HugeWorkIsPlanned(t *testing.T) {
	w := extremeRig(t, 1e12)
	for i, work := range append(extremes.spans, 2562047*time.Hour+47*time.Minute) {
		w.step(0, termsOf(fmt.Sprint("j", i), func(t *Terms) {
			t.Work, t.Budget, t.HasBudget, t.Restart = work, money.Picos(100e12), true, time.Second
		}))
	}
	w.step(time.Hour, Tick{})
}

// A checkpoint that took the longest duration counts as a long one.
func TestExtremes_LongSaveIsAccepted(t *testing.T) {
	w := extremeRig(t, 1e12)
	w.step(0, termsOf("a", func(t *Terms) { t.Budget, t.HasBudget, t.Work = money.Picos(100e12), true, 10*time.Hour }))
	attempt := w.runs("a")
	w.step(time.Minute, CheckpointSaved{Attempt: attempt, Message: 1, Step: 1, Took: math.MaxInt64, Bytes: math.MaxInt64, Uploaded: math.MaxInt64})
	w.step(time.Minute, CheckpointSaved{Attempt: attempt, Message: 2, Step: 2, Took: math.MaxInt64, Bytes: math.MaxInt64, Uploaded: math.MaxInt64})
	if j, _ := w.Job("a"); j.SaveCost() > quantity.Decade {
		t.Errorf("a save costs %v", j.SaveCost())
	}
}

// GPU-hours whose float64 sum overflows stay finite in the books.
func TestExtremes_GPUHoursStayFinite(t *testing.T) {
	limit := budget.Limit{Scope: "team:red", Window: budget.Week, Jobs: new(10)}
	w := extremeRig(t, 1e12, limit)
	for i := range 4 {
		w.step(0, termsOf(fmt.Sprint("j", i), func(t *Terms) {
			t.GPUHours, t.Need = 1.7e308, plan.Need{Requirements: plan.Requirements{Accelerator: "H100", Accelerators: 8}}
		}))
	}
	b, _ := w.admission.Books(w.Now())
	if u := b.Use(limit); math.IsInf(u.GPUHeld, 0) || math.IsNaN(u.GPUHeld) || u.GPUHeld <= 0 {
		t.Errorf("held are %v GPU-hours", u.GPUHeld)
	}
}

// Jobs with extreme numbers in any combination end in one step without overflow, on the most expensive and on the
// cheapest market.
func TestExtremes_CombinationsDoNotOverflow(t *testing.T) {
	for seed := range uint64(lane.Pick(60, 5000)) {
		rng := rand.New(rand.NewPCG(seed, 29))
		limits := []budget.Limit{{Scope: "all", Window: budget.Total, Dollars: new(money.Picos(1 << 62)), GPUHours: new(2e6)},
			{Scope: "team:red", Window: budget.Day, Wait: true, GPUHours: new(2e6), GPUs: new(1_000_000)}}
		w := extremeRig(t, []money.Rate{1, 1e12, 1e18}[rng.IntN(3)], limits[:rng.IntN(3)]...)
		draw := func(t *Terms) {
			t.Work, t.Steps = extremes.spans[rng.IntN(6)], extremes.steps[rng.IntN(7)]
			t.Restart, t.Grace = extremes.spans[rng.IntN(4)], extremes.spans[rng.IntN(4)]
			t.Transfer, t.IdleLimit, t.WallClock = extremes.spans[rng.IntN(4)], extremes.spans[rng.IntN(4)], extremes.spans[rng.IntN(6)]
			t.GPUHours, t.Nodes = extremes.hours[rng.IntN(5)], []int{1, 2, 8}[rng.IntN(3)]
			t.DeadlineFirst = rng.IntN(3) == 0
			if rng.IntN(3) > 0 {
				t.Budget, _ = money.Parse(extremes.usd[rng.IntN(4)])
				t.HasBudget = true
			}
			if d := extremes.spans[rng.IntN(6)]; d > 0 {
				t.Deadline = agentsStart.Add(w.at).Add(d)
			}
			if rng.IntN(2) == 0 {
				t.Need = plan.Need{Requirements: plan.Requirements{Accelerator: "H100", Accelerators: 8}}
			}
		}
		message := int64(0)
		for i := range 4 {
			job := fmt.Sprint("j", i)
			w.step(time.Second, termsOf(job, draw))
			attempt := w.runs(job)
			for range 4 {
				message++
				step := extremes.steps[rng.IntN(7)]
				after := []time.Duration{1, time.Second, time.Minute, 100 * time.Hour}[rng.IntN(4)]
				switch rng.IntN(4) {
				case 0:
					w.step(after, Progressed{Attempt: attempt, Message: message, Step: step, Total: extremes.steps[rng.IntN(7)], Epoch: 1e9})
				case 1:
					w.step(after, CheckpointSaved{Attempt: attempt, Message: message, Step: step, Took: extremes.spans[rng.IntN(6)],
						Bytes: math.MaxInt64, Uploaded: math.MaxInt64, Captured: agentsStart.Add(w.at).Add(after)})
				case 2:
					var terms Terms
					draw(&terms)
					w.step(after, JobUpdated{Job: job, Changes: Changes{Deadline: &terms.Deadline, Budget: &terms.Budget, GPUHours: &terms.GPUHours,
						WallClock: &terms.WallClock}})
				default:
					w.step(after, Tick{})
				}
			}
			b, burn := w.admission.Books(w.Now())
			courses, places, beyond := w.decider.Courses(w.Now(), 10)
			if len(b.Limits) > 0 {
				uses := map[string]budget.Use{}
				for _, l := range b.Limits {
					uses[l.Name()] = b.Use(l)
				}
				budget.Foresee(b.Limits, uses, courses, places, beyond, w.Now())
			}
			for _, rate := range burn {
				if rate < 0 {
					t.Fatalf("seed %d: an hour costs %v", seed, rate)
				}
			}
			if j, ok := w.Job(job); ok {
				w.decider.Interval(j)
				if left, done, ok := j.Left(0.001); ok && (left < 0 || done < 0) {
					t.Fatalf("seed %d: %v left, %v done", seed, left, done)
				}
			}
		}
	}
}
