package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// rents is a machine with one job that rents i1, and its postings.
type rents struct {
	m        *core.Machine
	now      time.Time
	postings []ledger.Posting
}

func newRents() *rents {
	r := &rents{m: core.New(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
	r.step(0, core.Configured{Config: core.DefaultConfig()})
	r.step(0, core.MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: r.now}}})
	r.step(0, core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 100, Saves: true, Priority: 1, Restart: time.Minute}})
	return r
}

// step advances time, applies the event, and counts the released machines.
func (r *rents) step(after time.Duration, b core.Body) (returns int) {
	r.now = r.now.Add(after)
	out := r.m.Step(core.Event{At: r.now, Schema: core.Schema, Tenant: "t", Body: b})
	r.postings = append(r.postings, out.Postings...)
	for _, a := range out.Actions {
		if _, ok := a.(core.Terminate); ok {
			returns++
		}
	}
	return returns
}

func (r *rents) spent() (sum money.Amount) {
	for _, p := range r.postings {
		if _, _, ok := p.To.IsCost(); ok {
			sum = sum.Add(p.Amount)
		}
		if _, _, ok := p.From.IsCost(); ok {
			sum = sum.Sub(p.Amount)
		}
	}
	return sum
}

// An inventory taken before a machine ended may arrive after its end and is outdated. One taken later is not: the
// core releases the machine again, and does not pay its cost twice.
func TestInventory_NeverPaysAMachineTwice(t *testing.T) {
	for name, launch := range map[string]string{"of an attempt": "j.1", "of nobody": "ghost.1"} {
		t.Run(name, func(t *testing.T) {
			r := newRents()
			own := core.Rented{Instance: "i1", Launch: launch, Offer: "p/z/m/spot", Rate: 1e12, From: r.now}
			list := core.InventorySeen{Provider: "p", Running: []core.Rented{own}, AsOf: r.now.Add(time.Minute)}
			r.step(time.Second, core.LaunchRefused{Launch: "j.1", Reason: "no_capacity"})
			if launch == "j.1" {
				r = newRents()
				r.step(time.Second, core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: own.Offer, Rate: own.Rate, From: own.From})
			} else if n := r.step(time.Minute, list); n != 1 {
				t.Fatalf("%d machines are given back, want the one that nobody owns", n)
			}
			end := core.InstanceEnded{Instance: "i1", Cause: "terminated"}
			bill := core.BillReceived{Instance: "i1", Launch: launch, Lines: []core.BillLine{{Amount: money.Picos(5e11), Currency: money.USD}}}
			end.Until = r.now.Add(30 * time.Minute)
			r.step(30*time.Minute, end)
			r.step(0, bill)
			want := r.spent()
			if want.Sign() <= 0 {
				t.Fatal("it cost nothing")
			}
			if n := r.step(time.Second, list); n != 0 || r.m.Awaits("i1") {
				t.Errorf("a list of the past: %d machines are given back, its end is awaited: %v", n, r.m.Awaits("i1"))
			}
			list.AsOf = r.now
			if n := r.step(time.Second, list); n != 1 || !r.m.Awaits("i1") {
				t.Errorf("a list of now: %d machines are given back, its end is awaited: %v", n, r.m.Awaits("i1"))
			}
			end.Until = r.now
			r.step(time.Second, end)
			r.step(0, bill) // the bill arrives again
			if got := r.spent(); got != want || r.m.Awaits("i1") {
				t.Errorf("%v was spent, then %v; its end is awaited: %v", want, got, r.m.Awaits("i1"))
			}
			s, err := r.m.Snapshot()
			must.Do(t, err)
			again, err := core.Restore(s)
			if err != nil || again.Unheard(own) {
				t.Errorf("after a restart it counts as unheard of: %v", err)
			}
		})
	}
}

// A server that was replaced during a launch may have rented a machine that ended before anybody saw it run. An
// inventory reports it.
func TestInventory_PaysForAMachineThatEndedUnseen(t *testing.T) {
	r := newRents()
	own := core.Rented{Instance: "i1", Launch: "j.1", Offer: "p/z/m/spot", Rate: 1e12, From: r.now}
	r.step(time.Second, core.LaunchRefused{Launch: "j.1", Reason: "no_capacity"})
	if !r.m.Unheard(own) || r.m.Unheard(core.Rented{Instance: "i2", Launch: "other.1"}) {
		t.Fatal("what j asked for is heard of, or what nobody of ours asked for is not")
	}
	r.step(time.Minute, core.InventorySeen{Provider: "p", Running: []core.Rented{own}, AsOf: r.now})
	if r.m.Unheard(own) || !r.m.Awaits("i1") {
		t.Fatal("a list changes nothing")
	}
	r.step(time.Second, core.InstanceEnded{Instance: "i1", Until: own.From.Add(time.Minute), Cause: "interrupted"})
	if want := money.Rate(1e12).Until(time.Minute); r.spent() != want || r.m.Unheard(own) {
		t.Errorf("%v was posted, want %v; unheard of: %v", r.spent(), want, r.m.Unheard(own))
	}
}
