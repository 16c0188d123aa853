package tick

import (
	"errors"
	"math"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// sold is a line of a market; spans are hours in which spot can be had.
func sold(machine string, capacity market.Capacity, speed float64, rate money.Rate, spans ...time.Duration) market.TraceLine {
	o := market.Offer{Provider: "local", Region: "r", Zone: "z", Machine: machine, Capacity: capacity, CPUs: 1, Memory: size.GiB, Speed: speed, Currency: money.USD}
	o.ID = market.ID(o)
	l := market.TraceLine{Offer: o, Price: []market.Price{{Rate: rate}}}
	for i := 0; i+1 < len(spans); i += 2 {
		l.Available = append(l.Available, market.Span{From: spans[i] * time.Hour, To: spans[i+1] * time.Hour})
	}
	return l
}

// only fits machines of that name, by the offer's speed.
func only(names ...string) Fits {
	return func(o market.Offer, _ money.Rate) (float64, bool) {
		for _, n := range names {
			if n == o.Machine {
				return o.Speed, true
			}
		}
		return 0, false
	}
}

// The optimum of a market counts what fits the job, at the speed at which it works there.
func TestTheOptimumOfAMarketIsOfTheMachinesThatFit(t *testing.T) {
	const dollar = money.Rate(1e12)
	m := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{
		sold("small", market.Spot, 1, dollar/10, 0, 9), sold("small", market.OnDemand, 1, dollar/5),
		sold("big", market.Spot, 2, dollar, 0, 1, 5, 9), sold("big", market.OnDemand, 2, 3*dollar),
	}}
	// Two hours of work are one on the big machine, and a start of 30 minutes each time.
	for _, c := range []struct {
		fits Fits
		want float64
	}{
		{only("small"), 0.25},     // two and a half hours of spot
		{only("big"), 1.5},        // an hour and a half of spot from hour 5 on
		{only("big-od"), 0},       // nothing
		{only("small", "big"), 0}, // two speeds
	} {
		r, err := FromTrace(m, c.fits, 0, 2*time.Hour, 7*time.Hour, 30*time.Minute, 30*time.Minute)
		if err != nil {
			if c.want != 0 {
				t.Error(err)
			}
			continue
		}
		if cost, ok := r.ZoneOptimum(); !ok || math.Abs(cost.Float()-c.want) > 1e-9 {
			t.Errorf("it costs %v (%v), want %v", cost, ok, c.want)
		}
	}
	if _, err := FromTrace(m, only("none"), 0, time.Hour, 7*time.Hour, time.Minute, time.Minute); !errors.Is(err, ErrNoFirm) {
		t.Errorf("nothing fits: %v", err)
	}
	if _, err := FromTrace(m, only("small", "big"), 0, time.Hour, 7*time.Hour, time.Minute, time.Minute); !errors.Is(err, ErrSpeeds) {
		t.Errorf("two speeds: %v", err)
	}
	// With no spot at all it is on-demand, at the least that it costs until the deadline.
	firm := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{sold("big", market.OnDemand, 1, 3*dollar)}}
	firm.Lines[0].Price = append(firm.Lines[0].Price, market.Price{At: 3 * time.Hour, Rate: 2 * dollar}, market.Price{At: 8 * time.Hour, Rate: dollar})
	r, err := FromTrace(firm, only("big"), 0, 2*time.Hour, 7*time.Hour, 30*time.Minute, 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if cost, ok := r.ZoneOptimum(); !ok || math.Abs(cost.Float()-5) > 1e-9 {
		t.Errorf("on-demand alone costs %v (%v), want 2.5 h at 2", cost, ok)
	}
}
