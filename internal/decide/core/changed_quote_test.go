package core_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// changedQuote measures the cost of one changed quote with many running jobs and many offers: the longest step, the
// time until nothing is due, and the logged bytes. The quoted offer suits every job; no job holds it or would take
// it next.
type changedQuote struct {
	jobs, offers int
	most         time.Duration // limit on the time until all jobs are reviewed
	of           int           // the quoted offer; 0: one that no job's decision names
}

// Limits on the length of a step and on the logged bytes of a changed quote.
const (
	longestStep = 5 * time.Millisecond
	mostLogged  = 64_000
)

// BenchmarkChangedQuote has 1,000 jobs and 1,000 offers.
func BenchmarkChangedQuote(b *testing.B) { changedQuote{1_000, 1_000, time.Second, 0}.run(b) }

// BenchmarkChangedQuoteNear adds and removes an offer that is every job's third choice, so each job gets a new
// reason against it, after hours in which no job recorded one.
func BenchmarkChangedQuoteNear(b *testing.B) { changedQuote{1_000, 1_000, time.Second, 3}.run(b) }

// BenchmarkChangedQuoteManyJobs has ten times as many jobs.
func BenchmarkChangedQuoteManyJobs(b *testing.B) {
	changedQuote{10_000, 1_000, 10 * time.Second, 0}.run(b)
}

// BenchmarkChangedQuoteManyOffers has as many offers as the catalogs of all providers together.
func BenchmarkChangedQuoteManyOffers(b *testing.B) {
	changedQuote{1_000, 120_000, time.Second, 0}.run(b)
}

// market returns the offers, a third of them on-demand.
func (c changedQuote) market(now time.Time) (seen core.MarketSeen) {
	for n := range c.offers {
		o := market.Offer{
			Provider: "p", Region: fmt.Sprint("r", n/100), Zone: fmt.Sprint("z", n/20), Machine: fmt.Sprint("m", n%10),
			Capacity: market.Spot, CPUs: 4, Memory: size.GiB, Speed: 1, Currency: money.USD,
		}
		rate := money.Rate(1e12 + int64(n)*1e9)
		if n/10%2 == 1 {
			o.Capacity, rate = market.OnDemand, 3*rate
		}
		o.ID = market.ID(o)
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{
			Offer: o.ID, Rate: rate, Priced: true, Available: true, At: now,
		})
	}
	return seen
}

// quoted is a machine in which those jobs run.
type quoted struct {
	changedQuote
	testing.TB
	m       *core.Machine
	now     time.Time
	actions []core.Action // pending

	count                     bool
	longest, reviewed         time.Duration
	logged, decided, launched int
}

func (q *quoted) step(body core.Body) core.Outcome {
	e := core.Event{At: q.now, Schema: core.Schema, Tenant: "default", Body: body}
	begun, clock := processor(), time.Now()
	out := q.m.Step(e)
	// The clock includes time used by other programs; processor time includes the garbage collector.
	took := min(processor()-begun, time.Since(clock))
	q.actions = append(q.actions, out.Actions...)
	if !q.count {
		return out
	}
	q.longest, q.reviewed, q.decided = max(q.longest, took), q.reviewed+took, q.decided+out.Decided
	facts, err := state.EncodeFacts(out.Facts)
	if err != nil {
		q.Fatal(err)
	}
	postings, err := json.Marshal(out.Postings)
	if err != nil {
		q.Fatal(err)
	}
	q.logged += len(facts) + len(postings)
	return out
}

// settle executes the requested actions and steps until nothing is due now.
func (q *quoted) settle(out core.Outcome) {
	for range 10 * q.jobs {
		switch {
		case len(q.actions) > 0:
			a := q.actions[0]
			q.actions = q.actions[1:]
			q.act(a)
			out.Wake = q.now
		case !out.Wake.IsZero() && !out.Wake.After(q.now):
			out = q.step(core.Tick{})
		default:
			return
		}
	}
}

func (q *quoted) act(a core.Action) {
	switch a := a.(type) {
	case core.BuildTable: // built between steps
		t := plan.Build(a.Request)
		q.m.Adopt(t)
		q.step(core.TableReady{Table: t.Key(), Version: plan.TableVersion, Hash: t.Hash()})
	case core.Launch:
		q.launched++
		i := fmt.Sprint("i-", q.launched)
		q.step(core.LaunchDone{Launch: a.Allocation, Instance: i, Offer: a.Offer, Rate: 1e12, From: q.now})
		q.step(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
	}
}

// fill starts the jobs, half of them with a deadline and a budget.
func (q *quoted) fill() {
	for n := range q.jobs {
		id := fmt.Sprintf("job%05d", n)
		t := core.Terms{
			Currency: money.USD, Priority: 1, Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Promise: 0.99,
		}
		if n%2 == 0 {
			t.Work, t.HasBudget, t.Budget = 10*time.Hour, true, money.Picos(1e15)
			t.Steps, t.Deadline = 600, q.now.Add(time.Duration(20+n%40)*time.Hour)
		}
		q.settle(q.step(core.JobSubmitted{Job: id, Terms: t}))
	}
	for range 4 {
		q.now = q.now.Add(time.Minute)
		q.settle(q.step(core.MarketSeen{}))
	}
	if n := len(q.m.Live()); n != q.jobs {
		q.Fatalf("%d jobs run", n)
	}
}

// filled returns a machine in which all jobs run.
func (c changedQuote) filled(b testing.TB) (*quoted, core.MarketSeen) {
	q := &quoted{changedQuote: c, TB: b, m: core.NewWith(plan.NewPlanner().OnRequest()), now: start}
	cfg := core.DefaultConfig()
	cfg.MaxRunning = c.jobs
	q.step(core.Configured{Config: cfg})
	seen := c.market(q.now)
	q.settle(q.step(seen))
	q.fill()
	return q, seen
}

// A restart reviews the running jobs a few per step, so that requests are answered between steps.
func TestRestart_ReviewsAFewJobsPerStep(t *testing.T) {
	before, _ := changedQuote{jobs: 100, offers: 30}.filled(t)
	m := core.On(before.m.State(), plan.NewPlanner().OnRequest())
	e := core.Event{At: before.now.Add(time.Minute), Schema: core.Schema, Tenant: "default", Body: core.Tick{}}
	decided, steps := 0, 0
	for e.At.Before(before.now.Add(2 * time.Minute)) {
		out := m.Step(e)
		if out.Decided > 2*16 {
			t.Fatalf("a step decided about %d jobs", out.Decided)
		}
		decided, steps = decided+out.Decided, steps+1
		if steps > 1000 {
			t.Fatal("the looks do not end")
		}
		if e.At = out.Wake; out.Wake.IsZero() || out.Wake.Before(m.State().Now()) {
			e.At = m.State().Now()
		}
	}
	if decided < 100 {
		t.Errorf("%d of 100 jobs were looked at in %d steps", decided, steps)
	}
}

func (c changedQuote) run(b *testing.B) {
	q, seen := c.filled(b)
	runtime.GC()
	quote := seen.Quotes[cmp.Or(c.of, c.offers/2)]
	for b.Loop() {
		q.now, q.count = q.now.Add(time.Minute), false
		if c.of > 0 {
			q.now, quote.Available = q.now.Add(2*time.Hour), !quote.Available
		}
		q.settle(q.step(core.Tick{})) // work that is due by time alone
		q.count = true
		quote.Rate, quote.At = quote.Rate*101/100, q.now
		q.settle(q.step(core.MarketSeen{Quotes: []market.Quote{quote}}))
	}
	b.ReportMetric(q.longest.Seconds()*1e3, "ms-longest")
	b.ReportMetric(q.reviewed.Seconds()*1e3/float64(b.N), "ms-reviewed")
	b.ReportMetric(float64(q.logged)/1e3/float64(b.N), "KB-logged")
	b.ReportMetric(float64(q.decided)/float64(b.N), "decisions")
	switch {
	case q.decided < c.jobs*b.N:
		b.Fatalf("%d jobs were decided again %d times", c.jobs, q.decided)
	case q.longest > longestStep:
		b.Fatalf("a step took %v", q.longest)
	case q.reviewed > c.most*time.Duration(b.N):
		b.Fatalf("all were reviewed after %v", q.reviewed/time.Duration(b.N))
	case q.logged > mostLogged*b.N:
		b.Fatalf("%d bytes were logged", q.logged/b.N)
	}
}
