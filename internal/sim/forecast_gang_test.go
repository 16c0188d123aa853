package sim

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// A forecast of a gang counts all of its machines: on the same markets it has the same odds and finish, N times the
// cost, and N times the on-demand cost. Only the save interval differs. The forecast is deterministic.
func TestAsk_CountsAllMachinesOfGang(t *testing.T) {
	spot := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 2,
		Currency: money.USD, Notice: 2 * time.Minute}
	spot.ID = market.ID(spot)
	firm := spot
	firm.Capacity, firm.Notice = market.OnDemand, 0
	firm.ID = market.ID(firm)
	ask := func(nodes, least int) Forecast {
		terms := gangTerms(nodes)
		terms.LeastNodes, terms.Interval = least, 10*time.Minute
		terms.Deadline = epoch.Add(8 * time.Hour)
		if least > 0 { // time for a part of them
			terms.Deadline = epoch.Add(60 * time.Hour)
		}
		return Ask(Scenario{Terms: terms, Now: epoch, Pace: 3600, Restart: 3 * time.Minute, Save: 10 * time.Second, Runs: 20,
			Offers: []market.Offer{spot, firm}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: epoch},
				{Offer: firm.ID, Rate: 3e12, Priced: true, Available: true, At: epoch}},
			Hazards: map[market.OfferID]policy.Hazard{spot.ID: {}}})
	}
	one := ask(1, 0)
	if c := one.OnDemand; c == nil || c.Offer != firm.ID || c.Cost != money.FromMicros(15_150_000, 0) {
		t.Errorf("on-demand costs %+v: at twice the speed ten hours take five, with a start of 3 min, at $3 an hour", c)
	}
	for _, nodes := range []int{8, 2}[:lane.Pick(1, 2)] {
		got := ask(nodes, 0)
		for i := range got.Cost {
			if each := got.Cost[i] / float64(nodes); math.Abs(each/one.Cost[i]-1) > 0.1 { // apart from different saves and losses
				t.Errorf("%d machines: quantile %d costs $%.4f each, one $%.4f", nodes, i, each, one.Cost[i])
			}
		}
		if got.InTime != one.InTime || got.OnDemand.Cost != money.FromMicros(int64(nodes)*15_150_000, 0) ||
			(got.Finish[1]-one.Finish[1]).Abs() > 30*time.Minute {
			t.Errorf("%d machines: in time %v, on-demand %v, done in %v; one: %v, %v, %v", nodes, got.InTime, got.OnDemand,
				got.Finish[1], one.InTime, one.OnDemand, one.Finish[1])
		}
		if again := ask(nodes, 0); !reflect.DeepEqual(again, got) {
			t.Errorf("%d machines, asked again: %+v and %+v", nodes, again, got)
		}
	}
	if some := ask(8, 2); some.InTime < one.InTime || some.First.Nodes >= 8 || some.First.Nodes < 2 || some.Cost[1] > 8.2*one.Cost[1] {
		t.Errorf("two to eight machines: %+v", some)
	}
}

// BenchmarkPlayGang simulates one life of a job on one machine and on eight.
func BenchmarkPlayGang(b *testing.B) {
	trace := gangMarket(2*time.Minute, 2*time.Hour, 3*time.Hour, 4*time.Hour, 7*time.Hour, 11*time.Hour, 12*time.Hour)
	for _, nodes := range []int{1, 8} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			terms := gangTerms(nodes)
			terms.Deadline = epoch.Add(20 * time.Hour)
			for b.Loop() {
				Play(Playback{Terms: terms, Restart: 3 * time.Minute, Save: 10 * time.Second, Trace: trace, Opened: epoch, Policy: policy.UniformProgress,
					Config: core.DefaultConfig()})
			}
		})
	}
}
