package queue_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/queue"
	"scrimp/internal/test/must"
)

// Every job that Pools would replay ends or never starts. One that ends costs the price of its cheapest machine times its
// hours there, whatever the limit and the weights are.
func TestLimited_CostsTheCheapestMachineOfEachJob(t *testing.T) {
	for seed := range uint64(20) {
		jobs, sales := drawnPast(seed)
		for i := range jobs {
			jobs[i].Team = []string{"a", "b"}[i%2]
		}
		rate := money.Rate(1+seed%4) * 1e12
		list, left := queue.Limited(jobs, sales, weighted(t, rate, map[string]float64{"a": 1 + float64(seed%3)}))
		pools, want := queue.Pools(jobs, sales)
		if left != want {
			t.Errorf("seed %d: left out %+v, want %+v", seed, left, want)
		}
		cost, never := map[string]money.Amount{}, map[string]int{}
		for _, p := range pools {
			for _, j := range p.Jobs {
				past := pastOf(jobs, j.ID)
				if least := leastPrice(past, sales); least > rate {
					never[past.Team]++
				} else {
					cost[past.Team] = cost[past.Team].Add(least.Until(past.Start + past.Work))
				}
			}
		}
		for _, s := range list {
			if s.Cost != cost[s.Team] || s.Never != never[s.Team] {
				t.Errorf("seed %d: %s costs %v, and %d never start; want %v and %d", seed, s.Team, s.Cost, s.Never, cost[s.Team],
					never[s.Team])
			}
		}
	}
}

func weighted(t *testing.T, rate money.Rate, weights map[string]float64) budget.Rules {
	t.Helper()
	r, err := queue.Weighted(rate, weights)
	must.Do(t, err)
	return r
}

func pastOf(jobs []queue.Past, id string) *queue.Past {
	for i := range jobs {
		if jobs[i].ID == id {
			return &jobs[i]
		}
	}
	return nil
}

// leastPrice is the price of the cheapest machine that fits the job, in the plainest way.
func leastPrice(p *queue.Past, sales []queue.Sale) (least money.Rate) {
	least = math.MaxInt64
	for _, s := range sales {
		fits := s.CPUs >= p.CPUs && s.Memory >= p.Memory &&
			(p.Accelerators == 0 || s.Accelerator == p.Accelerator && s.Accelerators >= p.Accelerators)
		if fits && s.Price > 0 {
			least = min(least, s.Price)
		}
	}
	return least
}

// Under $1 an hour, two teams have twelve jobs of an hour each, all submitted at once. By hand: with the same weight they
// take turns, and end after 12 and 13 hours in the mean, or the reverse. A team of weight 3 has three of each four starts
// until its jobs are over, in the 16th hour; so its jobs end after about 8.5 hours, and the others after about 16.5.
// The cost is the same.
func TestLimited_WeightDecidesWhoWaits(t *testing.T) {
	var jobs []queue.Past
	for i := range 24 {
		jobs = append(jobs, queue.Past{ID: fmt.Sprint("j", i), Name: "n", Submitted: opened, Work: time.Hour, CPUs: 1,
			Team: []string{"a", "b"}[i%2]})
	}
	sales := []queue.Sale{{Name: "m", CPUs: 1, Memory: 1 << 30, Price: 1e12}}
	hours := func(weights map[string]float64) (a, b float64) {
		list, _ := queue.Limited(jobs, sales, weighted(t, 1e12, weights))
		if len(list) != 2 || list[0].Cost != money.Picos(12e12) || list[1].Cost != list[0].Cost {
			t.Fatalf("%+v", list)
		}
		return list[0].Mean / 3600, list[1].Mean / 3600
	}
	if a, b := hours(map[string]float64{"a": 1}); min(a, b) != 12 || max(a, b) != 13 {
		t.Errorf("with the same weight %v and %v hours", a, b)
	}
	if a, b := hours(map[string]float64{"a": 3}); math.Abs(a-8.5) > 1 || math.Abs(b-16.5) > 1 || a+b != 25 {
		t.Errorf("with weight 3 %v, and with weight 1 %v hours", a, b)
	}
}
