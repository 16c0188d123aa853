package core

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// pacer runs one job whose program reports steps.
type pacer struct {
	m       *Machine
	now     time.Time
	step    int64
	message int64
	attempt string
	t       *testing.T
}

func (p *pacer) tell(b Body) { p.m.Step(Event{At: p.now, Schema: Schema, Tenant: "t", Body: b}) }

func (p *pacer) job() *Job { return p.m.step.State.Job("j") }

// begins starts the next attempt.
func (p *pacer) begins(attempt string) {
	p.attempt, p.message = attempt, 1
	p.tell(LaunchDone{Launch: attempt, Instance: "i-" + attempt, Offer: "p/z/m/on-demand", Rate: 1e12, From: p.now})
	p.now = p.now.Add(time.Minute)
	p.tell(AttemptStarted{Attempt: attempt, Message: 1, Restored: "m", Step: p.step})
}

func (p *pacer) steps(n int, each time.Duration) {
	for range n {
		p.now = p.now.Add(each)
		p.step++
		p.message++
		p.tell(Progressed{Attempt: p.attempt, Message: p.message, Step: p.step})
	}
}

func (p *pacer) near(when string, want float64) {
	p.t.Helper()
	if rate := p.job().StepRate(); math.Abs(rate/want-1) > 0.01 {
		p.t.Errorf("%s: %.1f steps an hour, want %.1f", when, rate, want)
	}
}

// A program whose first steps take minutes and whose later ones take a second has the later pace within a dozen of
// them. The pace is rough for the first four samples, and another slow start does not reset it.
func TestPace_IgnoresSlowFirstSteps(t *testing.T) {
	p := &pacer{m: New(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), step: 500, t: t}
	p.tell(Configured{Config: DefaultConfig()})
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Speed: 1, Currency: money.USD}
	p.tell(MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: p.now}}})
	p.tell(JobSubmitted{Job: "j", Terms: Terms{Currency: money.USD, Steps: 100_000, Saves: true, Restart: time.Minute}})
	p.begins("j.1")
	p.steps(2, 5*time.Minute)
	p.steps(2, time.Second)
	p.near("two of the quick ones", 3600)
	if w := p.job().Restart(); w < 350*time.Second || w > 6*time.Minute {
		t.Errorf("a move takes %v: a minute to start, and five minutes before the first step", w)
	}
	p.steps(6, time.Second)
	if !p.job().Rough() {
		t.Error("ten steps, and not rough")
	}
	p.steps(60, time.Second)
	p.near("a minute past the first ten", 3600)
	if !p.job().Rough() {
		t.Error("one sample, and not rough")
	}
	if p.steps(180, time.Second); p.job().Rough() {
		t.Errorf("rough after %v samples", p.job().Pace().Looks)
	}
	p.tell(InstanceEnded{Instance: "i-j.1", Until: p.now, Cause: "interrupted"})
	p.begins("j.2")
	p.steps(2, 5*time.Minute)
	p.steps(20, time.Second)
	p.near("the next attempt began as slowly", 3600)
	p.steps(1000, 2*time.Second)
	p.near("it is half as fast", 1800)
}
