package tick_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/test/lane"
)

// sold returns a line of a market; spans are the minutes in which spot is available.
func sold(machine string, capacity market.Capacity, speed float64, rate money.Rate, spans ...int) market.TraceLine {
	o := market.Offer{Provider: "local", Region: "r", Zone: "z", Machine: machine, Capacity: capacity, CPUs: 1, Memory: size.GiB, Speed: speed, Currency: money.USD}
	o.ID = market.ID(o)
	l := market.TraceLine{Offer: o, Price: []market.Price{{Rate: rate}}}
	for i := 0; i+1 < len(spans); i += 2 {
		l.Available = append(l.Available, market.Span{From: time.Duration(spans[i]) * time.Minute, To: time.Duration(spans[i+1]) * time.Minute})
	}
	return l
}

// only fits the machines with the given names, at the offer's speed.
func only(names ...string) tick.Fits {
	return func(o market.Offer, _ money.Rate) (float64, bool) {
		for _, n := range names {
			if n == o.Machine {
				return o.Speed, true
			}
		}
		return 0, false
	}
}

const dollar = money.Rate(1e12)

func TestHindsight_EqualsCountByHand(t *testing.T) {
	m := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{
		sold("small", market.Spot, 1, dollar/10, 0, 540), sold("small", market.OnDemand, 1, dollar/5),
		sold("big", market.Spot, 2, dollar, 0, 60, 300, 540), sold("big", market.OnDemand, 2, 3*dollar),
		sold("quick", market.Spot, 4, 2*dollar, 60, 90), sold("dear", market.OnDemand, 1, 4*dollar),
	}}
	m.Lines[5].Price = append(m.Lines[5].Price, market.Price{At: 3 * time.Hour, Rate: 2 * dollar}, market.Price{At: 8 * time.Hour, Rate: dollar})
	capped := func(o market.Offer, rate money.Rate) (float64, bool) {
		return o.Speed, o.Machine == "dear" && rate < 3*dollar
	}
	// Two hours of work, a restart of 30 minutes each time, a deadline after 7 hours.
	for name, c := range map[string]struct {
		fits tick.Fits
		want float64
		err  error
	}{
		"two and a half hours of spot":                                {only("small"), 0.25, nil},
		"an hour and a half of spot from hour 5 on":                   {only("big"), 1.5, nil},
		"half an hour of spot is only the start, then on-demand":      {only("quick"), 0, tick.ErrLate},
		"the small one is cheaper for all of it":                      {only("small", "big", "quick"), 0.25, nil},
		"nothing":                                                     {only("none"), 0, tick.ErrNothing},
		"where prices fall it waits":                                  {only("dear"), 5, nil},
		"a price above the most that it may cost is no offer":         {capped, 5, nil},
		"an hour on the big one, which is cheaper, from hour 5, spot": {only("big", "dear"), 1.5, nil},
	} {
		cost, err := tick.Hindsight(m, c.fits, tick.Nodes{}, 0, 2*time.Hour, 7*time.Hour, 30*time.Minute)
		if !errors.Is(err, c.err) || math.Abs(cost.Float()-c.want) > 1e-9 {
			t.Errorf("%s: %v and %v, want %v and %v", name, cost, err, c.want, c.err)
		}
	}
	if _, err := tick.Hindsight(m, only("small"), tick.Nodes{}, 0, 2*time.Hour, 2*time.Hour, time.Minute); !errors.Is(err, tick.ErrLate) {
		t.Errorf("no time to start: %v", err)
	}
	for _, deadline := range []time.Duration{-time.Hour, 0, time.Second, time.Minute, time.Hour} {
		if _, err := tick.Hindsight(m, only("small"), tick.Nodes{}, 0, 2*time.Hour, deadline, time.Minute); !errors.Is(err, tick.ErrLate) {
			t.Errorf("two hours of work within %v: %v", deadline, err)
		}
	}
	// Part of the work on each machine: half an hour on b, with a minute of restart, does 87 minutes of work, and the
	// other 33 take 34 minutes on a.
	parts := market.Trace{Name: "p", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{sold("a", market.Spot, 1, dollar, 0, 61), sold("b", market.Spot, 3, 2*dollar, 60, 90), sold("c", market.OnDemand, 1, 9*dollar)}}
	if cost, err := tick.Hindsight(parts, only("a", "b", "c"), tick.Nodes{}, 0, 2*time.Hour, 2*time.Hour, time.Minute); err != nil || math.Abs(cost.Float()-(30*2+34)/60.0) > 1e-6 {
		t.Errorf("parts: %v, %v", cost, err)
	}
}

// On machines of speed 1 the result equals the optimum of the public benchmark with several zones, which was written
// separately, has another state, and counts work by slack.
func TestHindsight_EqualsZoneOptimum(t *testing.T) {
	for seed := range uint64(lane.Pick(60, 120)) {
		chance := rand.New(rand.NewPCG(seed, 3))
		const ticks = 40
		half := 1 + chance.IntN(7)
		r := multizone.Run{Job: zonechoice.Job{Tick: time.Minute, Restart: time.Duration(half) * 30 * time.Second, Work: time.Duration(1+chance.IntN(60)) * 30 * time.Second, Deadline: ticks * time.Minute}}
		m := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{sold("firm", market.OnDemand, 1, 3*dollar)}}
		for z := range 1 + chance.IntN(3) {
			rate := dollar * money.Rate(2+chance.IntN(25)) / 10
			tr := &multizone.Trace{Up: make([]bool, ticks), Price: make([]money.Rate, ticks)}
			l := sold(fmt.Sprint("z", z), market.Spot, 1, rate)
			l.Available = []market.Span{}
			for i := range ticks {
				tr.Price[i] = rate
				if tr.Up[i] = chance.IntN(6) > 0; tr.Up[i] {
					at := time.Duration(i) * time.Minute
					if n := len(l.Available); n > 0 && l.Available[n-1].To == at {
						l.Available[n-1].To = at + time.Minute
					} else {
						l.Available = append(l.Available, market.Span{From: at, To: at + time.Minute})
					}
				}
			}
			m.Lines = append(m.Lines, l)
			r.Traces = append(r.Traces, tr)
			r.Job.Zones = append(r.Job.Zones, zonechoice.Zone{Name: fmt.Sprint("z", z), Region: "r", OnDemand: 3 * dollar})
		}
		want, ok := r.Optimum()
		got, err := tick.Hindsight(m, func(market.Offer, money.Rate) (float64, bool) { return 1, true }, tick.Nodes{}, 0, r.Job.Work, r.Job.Deadline, r.Job.Restart)
		if ok != (err == nil) || ok && math.Abs(got.Float()-want.Float()) > 1e-9 {
			t.Fatalf("seed %d: %v (%v), the zones' optimum %v (%v)", seed, got, err, want, ok)
		}
	}
}

// Neither a second machine nor more time raises the cost.
func TestHindsight_MoreChoiceNeverCostsMore(t *testing.T) {
	better := 0
	for seed := range uint64(lane.Pick(20, 60)) {
		chance := rand.New(rand.NewPCG(seed, 4))
		one := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{sold("firm", market.OnDemand, 1, 3*dollar), sold("spot", market.Spot, 1, dollar, 0, 20+chance.IntN(60), 90+chance.IntN(20), 200)}}
		two := one
		two.Lines = append(append([]market.TraceLine{}, one.Lines...), sold("fast", market.Spot, float64(11+chance.IntN(30))/10, dollar*money.Rate(5+chance.IntN(30))/10, 30, 60+chance.IntN(100)))
		all := func(o market.Offer, _ money.Rate) (float64, bool) { return o.Speed, true }
		cost := func(m market.Trace, deadline time.Duration) float64 {
			c, err := tick.Hindsight(m, all, tick.Nodes{}, 0, 90*time.Minute, deadline, 3*time.Minute)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return c.Float()
		}
		a, b, c := cost(one, 2*time.Hour), cost(two, 2*time.Hour), cost(two, 3*time.Hour)
		if b > a+1e-9 || c > b+1e-9 {
			t.Errorf("seed %d: $%v, with a faster machine $%v, with more time $%v", seed, a, b, c)
		}
		if b < a-1e-9 && c < b-1e-9 {
			better++
		}
	}
	if better < lane.Pick(3, 10) {
		t.Errorf("only %d markets show anything", better)
	}
}

// n machines at once cost n times one. An elastic gang costs no more than any fixed size, and less than the largest if
// the restart takes hours.
func TestHindsight_SeveralMachines(t *testing.T) {
	better := 0
	for seed := range uint64(lane.Pick(5, 20)) {
		chance := rand.New(rand.NewPCG(seed, 5))
		m := market.Trace{Name: "m", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{sold("firm", market.OnDemand, 1, 3*dollar),
			sold("spot", market.Spot, 1, dollar, 0, 20+chance.IntN(60), 90+chance.IntN(20), 400)}}
		all := func(o market.Offer, _ money.Rate) (float64, bool) { return o.Speed, true }
		cost := func(least, most int, work time.Duration) float64 {
			c, err := tick.Hindsight(m, all, tick.Nodes{least, most}, 0, work, 6*time.Hour, 12*time.Minute)
			if errors.Is(err, tick.ErrLate) {
				return math.Inf(1)
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return c.Float()
		}
		one, four, two := cost(0, 0, time.Hour), cost(4, 4, time.Hour), cost(2, 2, 2*time.Hour) // the same work on half as many
		if math.Abs(four-4*one) > 1e-9 {
			t.Errorf("seed %d: four cost $%v, one $%v", seed, four, one)
		}
		some := cost(2, 4, time.Hour)
		if some > four+1e-9 || some > two+1e-9 || some < min(two, four)*0.8 {
			t.Errorf("seed %d: two to four cost $%v, four $%v, two $%v", seed, some, four, two)
		}
		if some < four-1e-9 {
			better++
		}
	}
	if better < lane.Pick(2, 10) {
		t.Errorf("on only %d markets fewer machines are cheaper", better)
	}
}
