package simulate

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// No policy costs less than the optimum, apart from the rounding of ticks, and a policy that is in time costs at most
// on-demand plus the restarts. The markets are drawn, one of them with a machine of twice the speed.
func TestPlay_NoPolicyBeatsOptimum(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mind := plan.NewPlanner()
	for _, fast := range []bool{false, true} {
		optimum, paid := 0.0, map[policy.Rule]float64{}
		for seed := range uint64(lane.Pick(6, 25)) {
			trace := market.Generate(market.Params{Name: "drawn", Zones: 2, CPUs: 2, Memory: 4 * size.GiB, MedianUp: 40 * time.Minute, MedianDown: 30 * time.Minute, Notice: 2 * time.Minute, Length: 48 * time.Hour}, seed)
			if fast {
				for i := range trace.Lines {
					l := &trace.Lines[i]
					l.Offer.Machine, l.Offer.Speed = "fast", 1
					if l.Offer.Zone == "zone-b" {
						l.Offer.Speed = 2
					}
					l.Offer.ID = market.ID(l.Offer)
				}
			}
			s := &stage{trace: trace, opened: opened, restart: 3 * time.Minute, save: 10 * time.Second, seeds: 1, terms: core.Terms{
				Name: "j", Currency: money.USD, Steps: 300, Work: 3 * time.Hour, Deadline: opened.Add(6 * time.Hour), Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Priority: 1,
			}}
			must.Do(t, s.survey("job"))
			best, err := s.optimum(time.Hour)
			must.Do(t, err)
			optimum += best.Float()
			for _, rule := range []policy.Rule{policy.Default, policy.Greedy, policy.UniformProgress2, policy.OnDemand} {
				p := s.play(time.Hour, rule, mind)
				if !p.InTime {
					t.Errorf("seed %d: %s is late", seed, rule)
				}
				if p.Cost.Float() < best.Float()*0.97 {
					t.Errorf("seed %d, fast %v: %s costs $%.4f, the optimum $%.4f", seed, fast, rule, p.Cost.Float(), best.Float())
				}
				paid[rule] += p.Cost.Float()
			}
		}
		for rule, usd := range paid {
			t.Logf("fast %v: %s costs %.3f of the optimum", fast, rule, usd/optimum)
			if usd < optimum {
				t.Errorf("fast %v: in the mean %s costs $%.4f, the optimum $%.4f", fast, rule, usd, optimum)
			}
			if rule != policy.OnDemand && usd > paid[policy.OnDemand]*1.05 {
				t.Errorf("fast %v: %s costs $%.4f, on-demand $%.4f", fast, rule, usd, paid[policy.OnDemand])
			}
		}
	}
}

// The optimum and all costs of a gang count all of its machines: no policy beats the optimum, on-demand costs the
// machines' hours, and shares are those of one machine.
func TestPlay_GangCountsAllMachines(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mind := plan.NewPlanner()
	trace := market.Generate(market.Params{Name: "drawn", Zones: 2, CPUs: 2, Memory: 4 * size.GiB, MedianUp: 90 * time.Minute, MedianDown: 30 * time.Minute, Notice: 2 * time.Minute, Length: 48 * time.Hour}, 3)
	one := 0.0
	for _, nodes := range [][2]int{{1, 0}, {4, 0}, {4, 2}} {
		s := &stage{trace: trace, opened: opened, restart: 3 * time.Minute, save: 10 * time.Second, seeds: 1, terms: core.Terms{
			Name: "j", Currency: money.USD, Steps: 300, Work: 3 * time.Hour, Deadline: opened.Add(8 * time.Hour), Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Priority: 1,
			Nodes: nodes[0], LeastNodes: nodes[1],
		}}
		must.Do(t, s.survey("job"))
		best, err := s.optimum(time.Hour)
		must.Do(t, err)
		if nodes[0] == 1 {
			one = best.Float()
		}
		if each := best.Float() / float64(nodes[0]); nodes[1] == 0 && each != one || each > one || each < one/2 {
			t.Errorf("%v machines: the optimum is $%v for each, for one $%v", nodes, each, one)
		}
		for _, rule := range []policy.Rule{policy.Default, policy.Greedy, policy.OnDemand} {
			if p := s.play(time.Hour, rule, mind); !p.InTime || p.Cost.Float() < best.Float()*0.97 {
				t.Errorf("%v machines, %s: in time %v, $%.4f, the optimum $%.4f", nodes, rule, p.InTime, p.Cost.Float(), best.Float())
			}
		}
	}
}
