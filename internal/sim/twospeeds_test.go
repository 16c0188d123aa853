package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// twoSpeeds draws a market of two machines, spot and on-demand. One is faster and does the work for less; spot periods
// are heavy-tailed.
func twoSpeeds(seed uint64) market.Trace {
	r := rand.New(rand.NewPCG(seed, 3))
	speed := 1.5 + 2.5*r.Float64()
	cost := 0.45 + 0.4*r.Float64() // of the work on the fast one; on the slow one it is 1
	t := market.Trace{Name: "two speeds", Currency: money.USD, Speed: 1}
	for _, m := range []struct {
		name    string
		speed   float64
		rate    money.Rate
		up, gap float64 // minutes
	}{{"slow", 1, 6e11, 180, 60}, {"fast", speed, money.Rate(6e11 * speed * cost), 90, 120}} {
		spot := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: m.name, Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: m.speed, Currency: money.USD, Notice: 30 * time.Second}
		spot.ID = market.ID(spot)
		firm := spot
		firm.Capacity, firm.Notice = market.OnDemand, 0
		firm.ID = market.ID(firm)
		line := market.TraceLine{Offer: spot, Price: []market.Price{{Rate: m.rate}}, Available: []market.Span{}}
		up := r.IntN(2) == 0
		for at := time.Duration(0); at < 60*time.Hour; up = !up {
			mean := m.gap
			if up {
				mean = m.up
			}
			lasts := time.Duration(max(10, mean/4*math.Pow(1-r.Float64(), -1/1.1))) * time.Minute
			if up {
				line.Available = append(line.Available, market.Span{From: at, To: at + lasts, Notice: 30 * time.Second})
			}
			at += lasts
		}
		t.Lines = append(t.Lines, line, market.TraceLine{Offer: firm, Price: []market.Price{{Rate: m.rate * 3}}})
	}
	return t
}

func TestPlay_PrefersFasterMachineWithCheaperWork(t *testing.T) {
	sum := map[policy.Rule]float64{}
	mind := plan.NewPlanner()
	for seed := range uint64(lane.Pick(12, 100)) {
		trace := twoSpeeds(seed)
		for _, rule := range []policy.Rule{policy.Greedy, policy.UniformProgress, policy.Default} {
			got := Play(Playback{
				Terms: core.Terms{
					Name: "j", Currency: money.USD, Steps: 720, Work: 12 * time.Hour, Deadline: epoch.Add(12 * time.Hour),
					Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Priority: 1,
				},
				Restart: 3 * time.Minute, Save: 10 * time.Second, Trace: trace, Opened: epoch, Policy: rule, Planner: mind,
			})
			// The work is known in whole steps of half a minute. Greedy always runs at the guard's limit and has no
			// margin for that.
			late := !got.InTime && (rule == policy.Default || got.Finish > 12*time.Hour+2*time.Minute)
			if got.State != core.Succeeded || late {
				t.Errorf("seed %d, %s: %s after %v", seed, rule, got.State, got.Finish)
			}
			sum[rule] += got.Cost.Float()
		}
	}
	t.Logf("dollars of 30 runs: %v", sum)
	for _, rule := range []policy.Rule{policy.Greedy, policy.UniformProgress} {
		if sum[policy.Default] > 0.9*sum[rule] { // a policy that stays on the slow machine costs as much as the others
			t.Errorf("the default costs %.2f dollars, %s %.2f", sum[policy.Default], rule, sum[rule])
		}
	}
}
