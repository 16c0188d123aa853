package monthly_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/monthly"
	"scrimp/internal/lib/money"
)

func rat(a money.Amount) *big.Rat { return new(big.Rat).SetFrac(a.Big(), big.NewInt(1e12)) }

// holds compares an amount, which may be truncated to 1e-12, with an exact sum.
func holds(t *testing.T, what string, got *money.Amount, want *big.Rat) {
	t.Helper()
	if got == nil || want == nil {
		if (got == nil) != (want == nil) {
			t.Errorf("%s: %v, plain count %v", what, got, want)
		}
		return
	}
	if off := new(big.Rat).Sub(rat(*got), want); off.Abs(off).Cmp(big.NewRat(1, 1e12)) > 0 {
		t.Errorf("%s: %s, plain count %s", what, got, want.FloatString(12))
	}
}

// Every figure is that of a plain count over the charges in rational numbers.
func TestWorkloads_AgreeWithAPlainCount(t *testing.T) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		began := time.Date(2026, time.Month(6+rng.IntN(5)), 1+rng.IntN(28), rng.IntN(2), 0, 0, 0, time.UTC)
		months := 1 + rng.IntN(8)
		r := monthly.New(now, began, months)
		jobs := map[string]monthly.Job{}
		for i := range 12 {
			ended := rng.IntN(4) > 0
			jobs[fmt.Sprint("j", i)] = monthly.Job{Workload: []string{"training", "search", "session"}[i%3], Ended: ended,
				Succeeded: ended && rng.IntN(3) > 0}
		}
		var list []charge.Charge
		for range 300 {
			at := began.Add(time.Duration(rng.Int64N(int64(now.Sub(began))))).Truncate(time.Hour)
			c := charge.Charge{Begin: at, End: at.Add(time.Hour), Amount: money.Picos(rng.Int64N(9e12)), Currency: money.USD,
				Category: ledger.Compute, Time: time.Hour, Timed: true, Owner: ledger.Owner{Job: fmt.Sprint("j", rng.IntN(12))}}
			c.Accelerators = rng.IntN(3)
			if c.ListPrice.Known = rng.IntN(2) == 0; c.ListPrice.Known {
				c.ListPrice.Rate = money.Rate(rng.Int64N(20e12))
			}
			switch rng.IntN(6) {
			case 0:
				c.Owner.Job, c.Use = "", ledger.Idle
			case 1:
				c.Part, c.Whole = 1, 2
			case 2:
				c.Timed, c.Accelerators = false, 0
			}
			r.Add(&c)
			list = append(list, c)
		}
		first := time.Date(2026, 11-time.Month(months)+1, 1, 0, 0, 0, 0, time.UTC)
		if b := time.Date(2026, began.Month(), 1, 0, 0, 0, 0, time.UTC); b.After(first) {
			first = b
		}
		if !r.First.Equal(first) {
			t.Fatalf("it begins in %s, want %s", r.First, first)
		}
		for _, w := range r.Workloads(func(j string) monthly.Job { return jobs[j] }) {
			check(t, w, list, jobs, first, began)
		}
	}
}

func check(t *testing.T, w monthly.Workload, list []charge.Charge, jobs map[string]monthly.Job, first, began time.Time) {
	all, gpus, gpuTime, listed, listTime := new(big.Rat), new(big.Rat), new(big.Rat), new(big.Rat), new(big.Rat)
	byMonth, byJob := map[string]*big.Rat{}, map[string]*big.Rat{}
	sum := func(of map[string]*big.Rat, name string, v *big.Rat) {
		if of[name] == nil {
			of[name] = new(big.Rat)
		}
		of[name].Add(of[name], v)
	}
	for _, c := range list {
		name := jobs[c.Owner.Job].Workload
		if c.Owner.Job == "" {
			name = monthly.Idle
		}
		if name != w.Name || c.Begin.Before(first) {
			continue
		}
		all.Add(all, rat(c.Amount))
		sum(byMonth, c.Begin.Format("2006-01"), rat(c.Amount))
		if c.Owner.Job != "" {
			sum(byJob, c.Owner.Job, rat(c.Amount))
		}
		hours := big.NewRat(int64(c.Accelerators), 1)
		if c.Whole > 0 {
			hours.Mul(hours, big.NewRat(c.Part, c.Whole))
		}
		if c.Accelerators > 0 {
			gpus.Add(gpus, rat(c.Amount))
			gpuTime.Add(gpuTime, hours)
			if c.ListPrice.Known {
				listed.Add(listed, big.NewRat(int64(c.ListPrice.Rate), 1e12))
				listTime.Add(listTime, hours)
			}
		}
	}
	holds(t, "spent", &w.Spent, all)
	whole, n := new(big.Rat), int64(0)
	for m, got := range w.Months {
		begin := first.AddDate(0, m, 0)
		want := byMonth[begin.Format("2006-01")]
		if want == nil {
			want = new(big.Rat)
		}
		holds(t, begin.Format("2006-01"), &got, want)
		if !begin.Before(began) && begin.Month() != time.November {
			whole.Add(whole, want)
			n++
		}
	}
	var month, perSuccess, median, p90 *big.Rat
	if n > 0 {
		month = whole.Quo(whole, big.NewRat(n, 1))
	}
	holds(t, "a month", w.AMonth, month)
	var costs []*big.Rat
	ended, succeeded := new(big.Rat), int64(0)
	for id, cost := range byJob {
		if jobs[id].Ended {
			costs = append(costs, cost)
			ended.Add(ended, cost)
		}
		if jobs[id].Succeeded {
			succeeded++
		}
	}
	if succeeded > 0 {
		perSuccess = ended.Quo(ended, big.NewRat(succeeded, 1))
	}
	sort.Slice(costs, func(i, j int) bool { return costs[i].Cmp(costs[j]) < 0 })
	reached := func(share *big.Rat) *big.Rat { // the first cost that so large a share of the runs does not exceed
		at := slices.IndexFunc(costs, func(c *big.Rat) bool {
			below := 0
			for _, o := range costs {
				if o.Cmp(c) <= 0 {
					below++
				}
			}
			return big.NewRat(int64(below), int64(len(costs))).Cmp(share) >= 0
		})
		if at < 0 {
			return nil
		}
		return costs[at]
	}
	median, p90 = reached(big.NewRat(1, 2)), reached(big.NewRat(9, 10))
	holds(t, "per success", w.PerSuccess, perSuccess)
	holds(t, "median", w.Median, median)
	holds(t, "p90", w.P90, p90)
	if w.Runs != len(byJob) || w.Ended != len(costs) || int64(w.Succeeded) != succeeded {
		t.Errorf("%s: %d runs, %d ended, %d succeeded", w.Name, w.Runs, w.Ended, w.Succeeded)
	}
	per := func(cost, hours *big.Rat) *big.Rat {
		if hours.Sign() == 0 {
			return nil
		}
		return new(big.Rat).Quo(cost, hours)
	}
	holds(t, "per GPU-hour", w.PerGPUHour, per(gpus, gpuTime))
	holds(t, "on-demand", w.ListedHour, per(listed, listTime))
	if want, _ := gpuTime.Float64(); w.GPUHours != want {
		t.Errorf("%s: %v GPU-hours, plain count %v", w.Name, w.GPUHours, want)
	}
}

// A month in which the ledger begins, and the current one, are in no mean.
func TestNew_CountsWholeMonths(t *testing.T) {
	now := time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC)
	for began, want := range map[string]string{"2026-11-17": "[false]", "2026-09-02": "[false true false]",
		"2026-09-01": "[true true false]", "2020-01-05": "[true true true false]"} {
		at, err := time.Parse(time.DateOnly, began)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(monthly.New(now, at, 4).Whole()); got != want {
			t.Errorf("began %s: %s, want %s", began, got, want)
		}
	}
}
