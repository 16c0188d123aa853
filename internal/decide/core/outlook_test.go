package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// fleet runs jobs of two teams through the core, on machines that are never interrupted, minute by minute in
// virtual time at varying paces.
type fleet struct {
	m     *Machine
	rng   *rand.Rand
	now   time.Time
	paces map[string]float64 // steps per minute at speed 1
	done  map[string]float64
	limit budget.Limit
}

const fleetWork = 60 // steps per stated hour of work

func newFleet(seed uint64, places, jobs int) *fleet {
	f := &fleet{m: New(), rng: rand.New(rand.NewPCG(seed, 5)), now: time.Unix(1.77e9, 0).UTC(), paces: map[string]float64{}, done: map[string]float64{}}
	cfg := DefaultConfig()
	cfg.MaxRunning = places
	f.step(Configured{Config: cfg})
	o := market.Offer{ID: "firm", Provider: "p", Zone: "z", Region: "r", Machine: "m", Capacity: market.OnDemand, CPUs: 4, Speed: 1, Currency: money.USD}
	f.step(MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: "firm", Rate: 2e12, Priced: true, Available: true, At: f.now}}})
	f.limit = budget.Limit{Scope: "team:a", Window: budget.Total, Dollars: new(money.Amount)}
	*f.limit.Dollars = money.Picos(9e18)
	f.step(BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{f.limit}}})
	for i := range jobs {
		id := fmt.Sprintf("j%02d", i)
		steps := 200 + f.rng.Int64N(1500)
		said := 1.0
		if f.rng.IntN(2) == 0 { // the stated work is wrong
			said = 0.75 + 0.6*f.rng.Float64()
		}
		f.paces[id] = 1 / said
		f.step(JobSubmitted{Job: id, Terms: Terms{
			Name: id, Owner: ledger.Owner{Tenant: "default", Team: string('a' + rune(i%2))}, Currency: money.USD, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Priority: 1,
			Steps: steps, Work: time.Duration(steps) * time.Hour / fleetWork, Restart: 2 * time.Minute, Grace: time.Minute, Saves: true,
		}})
	}
	return f
}

func (f *fleet) step(b Body) {
	out := f.m.Step(Event{At: f.now, Schema: Schema, Tenant: "default", Body: b})
	for _, a := range out.Actions {
		switch a := a.(type) {
		case Launch:
			f.step(LaunchDone{Launch: a.Allocation, Instance: "i-" + a.Allocation, Offer: a.Offer, Rate: 2e12, From: f.now})
		case Terminate:
			f.step(InstanceEnded{Instance: a.Instance, Until: f.now, Cause: "terminated"})
		case Cancel, Drain, Probe, Notify:
		}
	}
}

// minute advances time by a minute.
func (f *fleet) minute() {
	f.now = f.now.Add(time.Minute)
	f.step(Tick{})
	for _, a := range slices.Clone(f.m.Live()) {
		j, _ := f.m.Job(a.Job())
		message := a.Heard() + 1
		switch {
		case a.Task() == Assigned && f.now.Sub(a.From()) >= 2*time.Minute:
			f.step(AttemptStarted{Attempt: a.ID(), Message: message})
		case a.Task() == TaskRunning:
			f.done[j.ID()] += max(0, f.paces[j.ID()]*(1+0.15*f.rng.NormFloat64()))
			at := min(int64(f.done[j.ID()]), j.Total())
			f.step(Progressed{Attempt: a.ID(), Message: message, Step: at})
			if at == j.Total() {
				f.step(AttemptEnded{Attempt: a.ID(), Message: message + 1, Reason: "completed", Step: at, Saved: true})
			} else if at/60 != j.SavedStep()/60 {
				f.step(CheckpointSaved{Attempt: a.ID(), Message: message + 1, Manifest: "m", Step: at, Captured: f.now})
			}
		}
	}
}

func (f *fleet) spent() money.Amount {
	b, _ := f.m.admission.Books(f.now)
	return b.Use(f.limit).Spent
}

func (f *fleet) outlook(dollars money.Amount) budget.Outlook {
	l := f.limit
	l.Dollars = &dollars
	b, _ := f.m.admission.Books(f.now)
	courses, places, beyond := f.m.decider.Courses(f.now, 1000)
	return budget.Foresee([]budget.Limit{l}, map[string]budget.Use{l.Name(): b.Use(f.limit)}, courses, places, beyond, f.now)[l.Name()]
}

// The outlook does not predict the breach of a limit that the running and waiting jobs do not reach. If they reach
// it, the time lies within the predicted range, whenever it was predicted, for jobs longer or shorter than stated.
// The range is narrow enough to be useful.
func TestOutlook_PredictsABreachWithinTheSpread(t *testing.T) {
	const slip = 3 * time.Minute // three jobs in sequence, each of which starts and ends at a look once a minute
	reached, unreached, within, missed, cried, certain := 0, 0, 0, 0, 0, 0
	var wide, errs []float64
	for seed := range uint64(lane.Pick(12, 200)) {
		f := newFleet(seed, 3, 8)
		for range 1 + f.rng.IntN(600) {
			f.minute()
		}
		from, before := f.now, f.spent()
		type look struct {
			dollars money.Amount
			o       budget.Outlook
		}
		var looks []look
		for _, more := range []int64{25, 45, 65, 95, 125} {
			d := before.Add(money.Picos(more * 1e12))
			looks = append(looks, look{d, f.outlook(d)})
		}
		reachedAt := make([]time.Time, len(looks))
		for n := 0; !f.m.Quiet() && n < 20_000; n++ {
			f.minute()
			for i, l := range looks {
				if reachedAt[i].IsZero() && f.spent().Cmp(l.dollars) >= 0 {
					reachedAt[i] = f.now
				}
			}
		}
		for i, l := range looks {
			at, o := reachedAt[i], l.o
			if at.IsZero() {
				if unreached++; o.Latest != nil {
					cried++
				}
				continue
			}
			if reached++; o.Earliest == nil {
				missed++
				continue
			}
			if !at.Before(o.Earliest.Add(-slip)) && (o.Latest == nil || !at.After(o.Latest.Add(slip))) {
				within++
			}
			if o.Latest != nil && o.Breach != nil {
				certain++
				wide = append(wide, o.Latest.Sub(*o.Earliest).Hours()/at.Sub(from).Hours())
				errs = append(errs, max(o.Breach.Sub(at), at.Sub(*o.Breach)).Hours()/at.Sub(from).Hours())
			}
		}
	}
	slices.Sort(wide)
	slices.Sort(errs)
	t.Logf("%d reached: %d within the range, %d of which nothing was said, %d said to be certain; of %d not reached %d were said to be certain; the range is %.0f %% (90 %% below %.0f %%) of the time until then and the error %.1f %% (medians), 90 %% of errors below %.0f %%",
		reached, within, missed, certain, unreached, cried, 100*wide[len(wide)/2], 100*wide[len(wide)*9/10], 100*errs[len(errs)/2], 100*errs[len(errs)*9/10])
	if reached < lane.Pick(30, 100) || unreached < lane.Pick(8, 50) || certain < lane.Pick(20, 50) {
		t.Errorf("%d reached, %d not, %d certain: the lives are too dull", reached, unreached, certain)
	}
	if 10*within < 9*reached || 50*missed > reached || 50*cried > unreached {
		t.Error("the range does not hold what happens")
	}
	if wide[len(wide)/2] > 0.6 {
		t.Error("the range says nothing")
	}
}

// heldHolds checks that the outlook predicts no breach of a limit if all its jobs have holds that fit beside the
// amount spent, since their budgets stop them. It returns the number of such limits.
func heldHolds(t *testing.T, m *Machine, b budget.Accounts, at time.Time, seed, event any) (n int) {
	t.Helper()
	courses, places, beyond := m.decider.Courses(at, 50)
	uses := map[string]budget.Use{}
	for _, l := range b.Limits {
		uses[l.Name()] = b.Use(l)
	}
	for name, o := range budget.Foresee(b.Limits, uses, courses, places, beyond, at) {
		i := slices.IndexFunc(b.Limits, func(l budget.Limit) bool { return l.Name() == name })
		u, dollars := uses[name], *b.Limits[i].Dollars
		switch most := u.Spent.Add(u.Held); {
		case u.Unbounded != "":
		case u.Spent.Cmp(dollars) < 0 && most.Cmp(dollars) < 0:
			if n++; o.Chance > 0 || o.Breach != nil || o.Open != nil || o.Most == nil || o.Most.Cmp(dollars) >= 0 {
				t.Fatalf("seed %v, event %v, %s: of %v, %v is spent and %v held, and it is said to be reached: %+v", seed, event, name, dollars, u.Spent, u.Held, o)
			}
		case u.Spent.Cmp(dollars) >= 0 && (o.Breach == nil || !o.Breach.Equal(at)):
			t.Fatalf("seed %v, event %v, %s: of %v, %v is spent, and it is reached %v", seed, event, name, dollars, u.Spent, o.Breach)
		}
	}
	return n
}
