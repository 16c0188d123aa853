package recommend_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

func usd(s string) money.Amount {
	a, err := money.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

// ran is an hour of a job's machine.
func ran(job, capacity string, use recommend.Use, amount, list string, at time.Duration) recommend.Cost {
	return recommend.Cost{Job: job, Series: "s-" + job, Instance: "i-" + job, SKU: "p5", Region: "r", Capacity: capacity, Use: use, Begin: begin.Add(at),
		Time: time.Hour, Amount: usd(amount), List: usd(list), Listed: true}
}

func input(target float64, costs ...recommend.Cost) *recommend.Input {
	in := &recommend.Input{Since: begin, Until: begin.AddDate(0, 0, 30), Currency: money.USD, Costs: costs, Target: target, Jobs: map[string]recommend.Job{}}
	for _, c := range costs {
		in.Jobs[c.Job] = recommend.Job{Saves: true, Deadline: true}
	}
	return in
}

func recommendationOf(t *testing.T, p recommend.Plan, name string) recommend.Recommendation {
	t.Helper()
	for _, l := range p.Recommendations {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("there is no %s in %+v", name, p.Recommendations)
	return recommend.Recommendation{}
}

// Each recommendation saves what the example says.
func TestMake_FindsEachPlantedRecommendation(t *testing.T) {
	idle := recommend.Cost{Instance: "i-w", SKU: "p5", Capacity: "spot", Use: recommend.Idle, Begin: begin, Time: time.Hour, Amount: usd("10")}
	for name, c := range map[string]struct {
		in   *recommend.Input
		want string
	}{
		// one machine waited; a start costs $2 on average
		"idle stop": {input(0.1, idle, ran("a", "spot", recommend.StartUp, "2", "8", 0)), "8"},
		// two useful hours on spot cost $3 in all where on demand costs $8: 37.5 %, so $20 on demand become $7.50
		"spot share": {input(0.1, ran("a", "spot", recommend.Useful, "1", "4", 0), ran("a", "spot", recommend.Useful, "1", "4", time.Hour),
			ran("a", "spot", recommend.Lost, "1", "4", 2*time.Hour), ran("b", "on-demand", recommend.Useful, "20", "20", 0)), "12.5"},
		// the simulation of b saves a fifth of its $20, that of c nothing of its $7; $8 of d cost 37.5 % on spot, as above
		"spot share of simulated jobs": {func() *recommend.Input {
			in := input(0.1, ran("a", "spot", recommend.Useful, "1", "4", 0), ran("a", "spot", recommend.Useful, "1", "4", time.Hour),
				ran("a", "spot", recommend.Lost, "1", "4", 2*time.Hour), ran("b", "on-demand", recommend.Useful, "20", "20", 0),
				ran("c", "on-demand", recommend.Useful, "7", "7", 0), ran("d", "on-demand", recommend.Useful, "8", "8", 0))
			in.OnSpot = map[string]float64{"b": 0.2, "c": -0.5}
			return in
		}(), "9"},
		// a tenth of the $25 of a; b leaves the interval to scrimp already, and the simulation of c finds chance alone
		"checkpoint interval of simulated jobs": {func() *recommend.Input {
			in := input(0.1, ran("a", "spot", recommend.Useful, "20", "80", 0), ran("a", "spot", recommend.Lost, "5", "20", 0),
				ran("b", "spot", recommend.Lost, "6", "24", 0), ran("c", "spot", recommend.Lost, "7", "28", 0))
			in.OnInterval = map[string]float64{"a": 0.1, "b": 0, "c": 0.009}
			return in
		}(), "2.5"},
		"smaller machine": {func() *recommend.Input {
			in := input(0.1, ran("a", "on-demand", recommend.Useful, "20", "20", 0), ran("b", "on-demand", recommend.Useful, "5", "5", 0))
			in.Oversized = []recommend.Oversized{{Series: "s-a", SKU: "p5", Capacity: "on-demand", Cost: usd("80"), Waste: usd("20")}}
			return in
		}(), "5"},
		// $20 and $5 in 32 bits would cost 40 % and 20 % less
		"mixed precision": {func() *recommend.Input {
			in := input(0.1, ran("a", "spot", recommend.Useful, "20", "20", 0), ran("b", "spot", recommend.Lost, "5", "5", 0),
				ran("c", "spot", recommend.Useful, "7", "7", 0))
			in.Full32 = map[string]float64{"a": 0.4, "b": 0.2}
			return in
		}(), "9"},
		// 100 h, 2 interruptions, a save of 9 s: √(2·9/180000) = 1 % of $100 is $1, and $6 were lost
		"checkpoint interval": {func() *recommend.Input {
			in := input(0.1)
			for n := range 100 {
				use := recommend.Useful
				if n < 6 {
					use = recommend.Lost
				}
				in.Costs = append(in.Costs, ran("a", "spot", use, "1", "4", time.Duration(n)*time.Hour))
			}
			in.Jobs["a"] = recommend.Job{Saves: true, Deadline: true, Interruptions: 2, SaveCost: 9 * time.Second}
			return in
		}(), "4.999999999998"}, // each of six costs is cut off
		// eight hours at $1 and sixteen at $2.50, each day: the mean is $2, so half is saved
		"window": {func() *recommend.Input {
			in := input(0.1)
			for n := range 24 * 10 {
				price := "2.5"
				if h := n % 24; h >= 22 || h < 6 {
					price = "1"
				}
				in.Costs = append(in.Costs, ran("a", "spot", recommend.Useful, price, "4", time.Duration(n)*time.Hour))
			}
			in.Jobs["a"] = recommend.Job{}
			return in
		}(), "240"},
		"retention": {func() *recommend.Input {
			in := input(0.1, recommend.Cost{Storage: true, Use: recommend.Useful, Amount: usd("9")})
			in.Orphans = usd("3")
			return in
		}(), "3"},
		"smaller reservation": {input(0.1, recommend.Cost{Reserved: true, Use: recommend.Idle, Amount: usd("7")}), "7"},
	} {
		p := recommend.Make(c.in)
		name, _, _ = strings.Cut(name, " of simulated")
		l := recommendationOf(t, p, name)
		if l.Alone == nil || l.Alone.String() != c.want || l.Evidence == "" || l.Command == "" || l.Confidence == "" || l.Effort == "" || l.Risk == "" {
			t.Errorf("%s: %v, want %s: %+v", name, l.Alone, c.want, l)
		}
		if name == "window" && !strings.Contains(l.Evidence, "22:00 UTC") {
			t.Error(l.Evidence)
		}
	}
}

// Where the facts say nothing, the saving is unknown and not zero, and counts nowhere.
func TestMake_SaysUnknownWhereNothingIsKnown(t *testing.T) {
	in := input(0.5, ran("a", "on-demand", recommend.Useful, "20", "20", 0), ran("b", "spot", recommend.Lost, "2", "4", 0))
	for n := range 24 * 20 {
		in.Costs = append(in.Costs, ran("c", "on-demand", recommend.Useful, "1", "1", time.Duration(n)*time.Hour))
	}
	in.Jobs["c"] = recommend.Job{}
	p := recommend.Make(in)
	for _, name := range []string{"spot share", "checkpoint interval", "commitment"} {
		if l := recommendationOf(t, p, name); l.Alone != nil || l.Saving != nil || l.Needed || l.Confidence != recommend.Low {
			t.Errorf("%+v", l)
		}
	}
	if !p.Reached.IsZero() || p.Enough || p.Target.String() != "251" {
		t.Errorf("%+v", p)
	}
	if p := recommend.Make(input(0.25)); len(p.Recommendations) != 0 || !p.Spent.IsZero() || p.Share != 0 {
		t.Errorf("%+v", p)
	}
}

// For any costs: a recommendation saves together with others at most what it saves alone, savings add up to what is reached,
// that is at most what was spent, and the recommendations that the target needs come first and are no more than it takes.
func TestMake_SavesNoDollarTwice(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		in := input(rng.Float64())
		for n := range rng.IntN(200) {
			job := fmt.Sprint("j", rng.IntN(6))
			c := ran(job, []string{"spot", "on-demand"}[rng.IntN(2)], []recommend.Use{recommend.Useful, recommend.Lost, recommend.StartUp, recommend.Open, recommend.Idle}[rng.IntN(5)],
				fmt.Sprint(rng.IntN(50)), fmt.Sprint(1+rng.IntN(90)), time.Duration(n)*time.Hour)
			if c.Use == recommend.Idle && rng.IntN(2) == 0 {
				c.Job = ""
			}
			c.Storage, c.Reserved, c.Due = rng.IntN(9) == 0, rng.IntN(9) == 0, rng.IntN(9) == 0
			if rng.IntN(9) == 0 {
				c.Amount = c.Amount.Neg()
			}
			in.Costs = append(in.Costs, c)
			in.Jobs[job] = recommend.Job{Saves: rng.IntN(3) > 0, Deadline: rng.IntN(2) == 0, Interruptions: rng.IntN(4), SaveCost: time.Duration(rng.IntN(60)) * time.Second}
		}
		in.Orphans = money.Picos(rng.Int64N(1e13))
		in.Oversized = []recommend.Oversized{{Series: "s-j1", SKU: "p5", Capacity: "spot", Cost: usd("10"), Waste: money.Picos(rng.Int64N(1e13))}}
		positive := money.Amount{}
		for _, c := range in.Costs {
			if c.Amount.Sign() > 0 {
				positive = positive.Add(c.Amount)
			}
		}
		p := recommend.Make(in)
		sum := money.Amount{}
		for _, l := range p.Recommendations {
			if l.Saving == nil {
				continue
			}
			if l.Saving.Cmp(*l.Alone) > 0 || l.Saving.Sign() < 0 {
				t.Fatalf("seed %d: %s saves %v, and %v alone", seed, l.Name, l.Saving, l.Alone)
			}
			if l.Needed != (sum.Cmp(p.Target) < 0 && l.Saving.Sign() > 0) {
				t.Fatalf("seed %d: %s is needed: %v", seed, l.Name, l.Needed)
			}
			if sum = sum.Add(*l.Saving); l.Sum != sum {
				t.Fatalf("seed %d: after %s %v, want %v", seed, l.Name, l.Sum, sum)
			}
		}
		if sum != p.Reached || sum.Cmp(positive) > 0 || p.Enough != (sum.Cmp(p.Target) >= 0) {
			t.Fatalf("seed %d: %v of %v: %+v", seed, sum, positive, p)
		}
	}
}
