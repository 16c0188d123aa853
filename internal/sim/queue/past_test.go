package queue_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/scheduler"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/sim/queue"
)

var opened = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// drawnPast returns jobs of a log and machine types. Some jobs fit no type.
func drawnPast(seed uint64) (jobs []queue.Past, sales []queue.Sale) {
	rng := rand.New(rand.NewPCG(seed, 7))
	kinds := []string{"", "L4", "H100"}
	for i := range 40 {
		kind := kinds[rng.IntN(3)]
		p := queue.Past{ID: fmt.Sprint("j", i), Name: fmt.Sprint("n", i%5), Submitted: opened.Add(time.Duration(rng.IntN(7200)) *
			time.Second), Work: time.Duration(rng.IntN(9)) * time.Hour / 2, Start: time.Duration(rng.IntN(5e9)),
			Nodes: rng.IntN(3), CPUs: rng.IntN(12), Memory: int64(rng.IntN(40)) * int64(size.GiB) / 3, Accelerator: kind}
		if kind != "" {
			p.Accelerators = 1 + rng.IntN(3)
		}
		jobs = append(jobs, p)
	}
	for i := range 12 {
		s := queue.Sale{Name: fmt.Sprint("m", i%6), CPUs: 8 * (1 + i%3), Memory: int64(16*(1+i%4)) * int64(size.GiB),
			Accelerator: kinds[i%3], Price: money.Rate(rng.Int64N(4e12))}
		if s.Accelerator != "" {
			s.Accelerators = 2
		}
		sales = append(sales, s)
	}
	return jobs, append(sales, queue.Sale{Name: "own", CPUs: 64, Memory: 1 << 40})
}

// checkPast returns what is wrong with the pools of past jobs: a job that is lost or counted twice, one that a machine of
// its pool cannot hold, a machine type without a price, and one that is for sale for less.
func checkPast(jobs []queue.Past, sales []queue.Sale, pools []queue.Pool, left queue.LeftOut) (wrong []string) {
	byID, n := map[string]queue.Past{}, left.Unknown+left.Gangs+left.Large
	for _, j := range jobs {
		byID[j.ID] = j
	}
	for _, p := range pools {
		n += len(p.Jobs)
		for _, j := range p.Jobs {
			was, ok := byID[j.ID]
			delete(byID, j.ID)
			switch {
			case !ok:
				wrong = append(wrong, j.ID+" is there twice")
			case was.Work*1 != time.Duration(j.Work) || was.Nodes > 1:
				wrong = append(wrong, j.ID+" has other work")
			case was.Accelerators > 0 && was.Accelerator != p.Accelerator:
				wrong = append(wrong, j.ID+" runs on another accelerator")
			case j.Size[pack.Memory] < was.Memory*pack.Milli/int64(size.GiB) || j.Size[pack.CPU] != int64(was.CPUs)*pack.Milli:
				wrong = append(wrong, j.ID+" is smaller than it was")
			}
		}
		for _, t := range p.Types {
			cheapest := money.Rate(0)
			for _, s := range sales {
				if fmt.Sprintf("%s (%d, %d)", s.Name, s.Accelerators, s.CPUs) == t.Name && s.Price > 0 &&
					(cheapest == 0 || s.Price < cheapest) {
					cheapest = s.Price
				}
			}
			if t.Price != cheapest || t.Price == 0 {
				wrong = append(wrong, t.Name+" has another price")
			}
		}
	}
	if n != len(jobs) {
		wrong = append(wrong, fmt.Sprintf("%d jobs of %d", n, len(jobs)))
	}
	return wrong
}

// Every job of the log is replayed with its measured work on machines that fit it, or counted as left out, and every
// policy ends them all, in the sum of the pools.
func TestPools_ReplayEveryJobOrCountIt(t *testing.T) {
	for seed := range uint64(30) {
		jobs, sales := drawnPast(seed)
		pools, left := queue.Pools(jobs, sales)
		for _, w := range checkPast(jobs, sales, pools, left) {
			t.Errorf("seed %d: %s", seed, w)
		}
		slices.Reverse(jobs)
		slices.Reverse(sales)
		if again, same := queue.Pools(jobs, sales); !reflect.DeepEqual(again, pools) || same != left {
			t.Errorf("seed %d: another order of the log gives other pools", seed)
		}
		for _, policy := range []string{scheduler.NoPacking, scheduler.Default} {
			var runs []queue.Result
			n, cost := 0, money.Amount{}
			for _, p := range pools {
				c := queue.Config{Jobs: p.Jobs, Types: p.Types, Interference: queue.U95(), Policy: policy, Deadline: 1.25}
				log, r := play(c)
				for _, w := range check(c, log, r) {
					t.Errorf("seed %d, %s: %s", seed, policy, w)
				}
				runs, n, cost = append(runs, r), n+len(p.Jobs), cost.Add(r.Cost)
			}
			if len(runs) == 0 {
				continue
			}
			if all := queue.Merge(runs); len(all.Took) != n || all.Cost != cost || !slices.IsSorted(all.Took) {
				t.Errorf("seed %d, %s: the runs together have %d jobs for %v, want %d for %v", seed, policy, len(all.Took), all.Cost,
					n, cost)
			}
		}
	}
}

// The check of the test above detects planted faults.
func TestCheckPast_FindsPlantedFaults(t *testing.T) {
	jobs, sales := drawnPast(3)
	pools, left := queue.Pools(jobs, sales)
	first := -1
	for i, p := range pools {
		if p.Accelerator != "" && len(p.Jobs) > 1 {
			first = i
		}
	}
	for name, plant := range map[string]func(p *queue.Pool, left *queue.LeftOut){
		"a job is lost":                func(p *queue.Pool, _ *queue.LeftOut) { p.Jobs = p.Jobs[1:] },
		"a job is there twice":         func(p *queue.Pool, _ *queue.LeftOut) { p.Jobs = append(p.Jobs[1:], p.Jobs[1]) },
		"half the work":                func(p *queue.Pool, _ *queue.LeftOut) { p.Jobs[0].Work /= 2 },
		"another accelerator":          func(p *queue.Pool, _ *queue.LeftOut) { p.Accelerator = "T4" },
		"a smaller job":                func(p *queue.Pool, _ *queue.LeftOut) { p.Jobs[0].Size[pack.CPU]-- },
		"a cheaper machine":            func(p *queue.Pool, _ *queue.LeftOut) { p.Types[0].Price-- },
		"one more that is not counted": func(_ *queue.Pool, left *queue.LeftOut) { left.Large-- },
	} {
		planted, l := slices.Clone(pools), left
		planted[first].Jobs, planted[first].Types = slices.Clone(pools[first].Jobs), slices.Clone(pools[first].Types)
		if plant(&planted[first], &l); len(checkPast(jobs, sales, planted, l)) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
