package core

import (
	"math/big"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// ranOn is a core with a spot machine, i1, that runs although its provider's list lacks it for a time.
type ranOn struct {
	*Machine
	t       *testing.T
	at      time.Duration
	rate    money.Rate
	paid    map[string]money.Amount  // by task: the sum of its postings
	seconds map[string]time.Duration // by task: the time that its postings cover
	without int                      // postings of machine time without their quantity
	offer   market.Offer
}

func newRanOn(t *testing.T) *ranOn {
	t.Helper()
	r := &ranOn{Machine: New(), t: t, rate: 1e12, paid: map[string]money.Amount{}, seconds: map[string]time.Duration{}}
	cfg := DefaultConfig()
	cfg.Idle = time.Hour
	r.offer = market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1,
		Currency: money.USD}
	r.step(0, Configured{Config: cfg})
	r.price(0, r.rate)
	r.submit("j")
	r.step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: r.offer.ID, Rate: r.rate, From: agentsStart})
	r.step(0, MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k"})
	r.step(time.Minute, AgentClaimed{Attempt: "j.1"})
	r.step(0, AttemptStarted{Attempt: "j.1"})
	return r
}

func (r *ranOn) submit(job string) {
	r.step(0, JobSubmitted{Job: job, Terms: Terms{Name: job, Currency: money.USD, Steps: 100, Restart: time.Minute, Saves: true,
		Budget: money.Picos(5e12), HasBudget: true}})
}

// price gives the offer a new price.
func (r *ranOn) price(after time.Duration, rate money.Rate) {
	r.step(after, MarketSeen{Offers: []market.Offer{r.offer}, Quotes: []market.Quote{{Offer: r.offer.ID, Rate: rate, Priced: true,
		Available: true, At: agentsStart.Add(r.at + after), Source: "p"}}})
}

// step takes a step, and sums its postings of machine time. It fails if one states another amount than its quantity
// times its price.
func (r *ranOn) step(after time.Duration, b Body) {
	r.t.Helper()
	r.at += after
	out := r.Step(Event{At: agentsStart.Add(r.at), Schema: Schema, Tenant: "t", Body: b})
	for _, p := range out.Postings {
		_, _, from := p.From.IsCost()
		_, _, to := p.To.IsCost()
		if p.Phase != ledger.Accrued || from && to {
			continue
		}
		r.paid[p.Owner.Task] = r.paid[p.Owner.Task].Add(state.CostOf(p))
		span := p.End.Sub(p.Begin)
		if p.Quantity.IsZero() {
			r.without++
			continue
		}
		exact := new(big.Int).Div(new(big.Int).Mul(big.NewInt(int64(span)), big.NewInt(int64(p.Price.Rate))), big.NewInt(int64(time.Hour)))
		if off := exact.Sub(exact, p.Amount.Big()); off.CmpAbs(big.NewInt(2)) > 0 || p.Quantity != ledger.Seconds(span) {
			r.t.Errorf("%v of %v at %v cost %v", p.Quantity, span, p.Price.Rate, p.Amount)
		}
		if from {
			span = -span
		}
		r.seconds[p.Owner.Task] += span
	}
}

// unlisted makes the provider's list lack the machine, as of some time ago.
func (r *ranOn) unlisted(after, ago time.Duration) {
	r.t.Helper()
	r.step(after, InventorySeen{Provider: "p", AsOf: agentsStart.Add(r.at + after - ago)})
	if i := r.State().Instance("i1"); i.Live() {
		r.t.Fatal("the machine is not given up")
	}
}

// ends reports the machine's end some time ago, and fails unless the postings of its time cover all of it.
func (r *ranOn) ends(after, ago time.Duration, cost money.Amount) {
	r.t.Helper()
	r.step(after, InstanceEnded{Instance: "i1", Until: agentsStart.Add(r.at + after - ago), Cause: "terminated"})
	total, sum := time.Duration(0), money.Amount{}
	for task := range r.paid {
		total, sum = total+r.seconds[task], sum.Add(r.paid[task])
	}
	if ran := r.at - ago; total != ran || sum != cost || r.without > 0 {
		r.t.Errorf("the machine ran for %v and cost %v; its postings are about %v and %v, %d of them without quantity: %v",
			ran, cost, total, sum, r.without, r.seconds)
	}
}

// A machine that was given up and ran on is posted like one that was never given up: each posting has its quantity, and
// the quantities cover the billed time.
func TestGivenUp_PostsAllTimeOfAMachineThatRanOn(t *testing.T) {
	t.Parallel()
	t.Run("while its program ran", func(t *testing.T) {
		r := newRanOn(t)
		r.step(9*time.Minute, CheckpointSaved{Attempt: "j.1", Message: 1, Manifest: "m", Step: 10, Captured: agentsStart.Add(10 * time.Minute)})
		r.step(51*time.Minute, Tick{})
		r.unlisted(5*time.Second, 55*time.Minute) // less than what is settled
		r.ends(10*time.Minute, 0, hour(r.at+10*time.Minute))
	})
	t.Run("after its program ended", func(t *testing.T) {
		r := newRanOn(t)
		r.step(9*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.unlisted(time.Second, 20*time.Second)
		r.ends(5*time.Minute, 0, hour(r.at+5*time.Minute))
	})
	t.Run("while it waited for more than an hour", func(t *testing.T) {
		r := newRanOn(t)
		r.step(50*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.step(time.Second, MachineCleaned{Instance: "i1"})
		r.step(10*time.Minute, Tick{})
		r.unlisted(time.Second, 20*time.Second)
		r.ends(5*time.Minute, 0, hour(r.at+5*time.Minute))
	})
	t.Run("over a change of its price", func(t *testing.T) {
		r := newRanOn(t)
		r.price(20*time.Minute, 3e12)
		r.price(20*time.Minute, 2e12)
		r.step(29*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.unlisted(time.Second, 60*time.Minute)
		r.ends(49*time.Minute+59*time.Second, 0, hour(21*time.Minute).Add(money.Rate(3e12).Until(20*time.Minute)).
			Add(money.Rate(2e12).Until(79*time.Minute)))
	})
	t.Run("after another job took it", func(t *testing.T) {
		r := newRanOn(t)
		r.step(9*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.step(10*time.Second, MachineCleaned{Instance: "i1"})
		r.submit("k")
		r.unlisted(time.Second, 5*time.Second)
		r.ends(5*time.Minute, 0, hour(r.at+5*time.Minute))
	})
	t.Run("until another job took it", func(t *testing.T) {
		r := newRanOn(t)
		r.step(9*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.step(10*time.Second, MachineCleaned{Instance: "i1"})
		r.submit("k")
		r.unlisted(time.Second, 15*time.Second)
		r.ends(time.Second, 8*time.Second, hour(r.at-7*time.Second))
	})
	t.Run("until its program ended", func(t *testing.T) {
		r := newRanOn(t)
		r.step(9*time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
		r.unlisted(10*time.Second, 30*time.Second)
		r.ends(time.Second, 20*time.Second, hour(r.at-19*time.Second))
	})
}

// A machine that was given up before the next attempt of its gang took it costs the job nothing after that time. If it
// ran on, it costs the job all of its time.
func TestGivenUp_ReversesTheAttemptBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begun, ranOn bool }{
		"it had ended": {begun: true}, "it ran on": {begun: true, ranOn: true}, "the next attempt has not begun": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGang(t, 3, 0, nil)
			g.grants("g.1", "i1", "i2", "i3")
			g.runs("g.1", time.Minute)
			g.do(10*time.Minute, CheckpointSaved{Attempt: "g.1", Message: 5, Manifest: "m", Step: 100,
				Captured: agentsStart.Add(g.at + 10*time.Minute)})
			g.end("i2", "interrupted")
			g.do(time.Second, TaskGone{Attempt: "g.1"})
			g.do(time.Second, TaskGone{Attempt: "g.1", Node: 2})
			if c.begun {
				g.grants("g.2", "i4")
			}
			const ago = 30 * time.Second
			g.ended["i1"] = true
			paid := hour(g.at - ago - g.from["i1"])
			g.sum = g.sum.Add(paid)
			g.do(0, InventorySeen{Provider: "p", AsOf: agentsStart.Add(g.at - ago),
				Running: []Rented{{Instance: "i3", Launch: "g.1", Offer: "p/z/m/spot", Rate: 1e12, From: agentsStart.Add(g.from["i3"])}}})
			if i := g.State().Instance("i1"); i.Live() {
				t.Fatal("the machine is not given up")
			}
			if c.ranOn {
				g.sum = g.sum.Sub(paid).Add(hour(g.at + 10*time.Second - g.from["i1"]))
				g.do(10*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(g.at + 10*time.Second), Cause: "terminated"})
			}
			if !c.begun {
				g.grants("g.2", "i4")
			}
			g.replays()
		})
	}
}
