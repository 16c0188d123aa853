package queue_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/scheduler"
	"scrimp/internal/decide/pack/static"
	"scrimp/internal/sim/queue"
	"scrimp/internal/test/must"
)

var (
	dataFolder = flag.String("data", "../../../../shared/data/queue", "folder of the public packing benchmark")
	whole      = flag.Bool("whole", false, "all jobs of the benchmark, not the first 200 alone: minutes")
)

// benchmark reads the public trace, or skips the test.
func benchmark(t *testing.T) (jobs []queue.Job, types []queue.Machine, pairs queue.Interference) {
	t.Helper()
	read := func(name string, take func(f *os.File) error) {
		f, err := os.Open(filepath.Join(*dataFolder, name))
		if err != nil {
			t.Skipf("SKIPPED: the benchmark's data is not beside the repository: %v", err)
		}
		defer f.Close()
		must.Do(t, take(f))
	}
	var err error
	read("trace_6274.csv", func(f *os.File) error {
		jobs, err = queue.ReadTrace("trace_6274.csv", f, queue.DefaultColumns)
		return err
	})
	read("instance_types.csv", func(f *os.File) error { types, err = queue.ReadCatalog("instance_types.csv", f); return err })
	read("pairwise_throughput.csv", func(f *os.File) error {
		pairs, err = queue.ReadPairs("pairwise_throughput.csv", f, jobs)
		return err
	})
	return jobs, types, pairs
}

// The rows of the benchmark: a policy's target cost in per cent of no-packing, and the tolerance for a reproduced
// published figure.
func TestBenchmark_ReachesItsTargets(t *testing.T) {
	jobs, types, pairs := benchmark(t)
	fmt.Println("JOBS  RATES  POLICY             COST  SHARE %  TO REACH  MEAN h  MISSES AT 1.25 %  MOVES")
	none := map[int]float64{}
	for _, c := range []struct {
		jobs         int
		pairs        bool
		policy       string
		share, off   float64
		mean, misses float64 // at most
	}{
		{200, false, scheduler.NoPacking, 100, 0, 99, 1},
		{200, false, scheduler.Eva, 72.5, 0.5, 99, 1},
		{200, false, scheduler.Default, 66, 0, 99, 1},
		{200, false, scheduler.DefaultSLA, 66, 0, 99, 0},
		{len(jobs), false, scheduler.NoPacking, 100, 0, 99, 1},
		{len(jobs), false, scheduler.Stratus, 64.2, 0.5, 99, 1},
		{len(jobs), false, scheduler.Eva, 57.9, 0.5, 99, 1},
		{len(jobs), false, scheduler.Default, 53.0, 0, 18.3, 1},
		{len(jobs), false, scheduler.DefaultSLA, 56.0, 0, 99, 0},
		{len(jobs), true, scheduler.Default, 55.4, 0, 99, 1},
	} {
		if c.jobs > 200 && !*whole {
			continue
		}
		rates, name := queue.U95(), "u95"
		if c.pairs {
			rates, name = pairs, "pairs"
		}
		r := queue.Run(queue.Config{Jobs: jobs[:c.jobs], Types: types, Interference: rates, Policy: c.policy, Deadline: 1.25})
		cost := r.Cost.Float()
		if c.policy == scheduler.NoPacking {
			none[c.jobs] = cost
		}
		share := 100 * cost / none[c.jobs]
		fmt.Printf("%4d  %-5s  %-11s  %10.2f  %7.2f  %8.1f  %6.2f  %16.2f  %5.2f\n", c.jobs, name, c.policy, cost, share, c.share,
			r.Mean/3600, 100*r.Misses[1], r.Moves)
		if c.off > 0 && math.Abs(share-c.share) > c.off || c.off == 0 && share > c.share || r.Mean/3600 > c.mean ||
			r.Misses[1] > c.misses {
			t.Errorf("%s on %d jobs with %s misses its target", c.policy, c.jobs, name)
		}
	}
	if math.Abs(none[200]-20736.38) > 1 || *whole && math.Abs(none[len(jobs)]-831227.28) > 1 {
		t.Errorf("no-packing costs %v, and the benchmark says 20736.38 and 831227.28", none)
	}
}

func TestBenchmark_PacksCloseToTheBound(t *testing.T) {
	jobs, machines, _ := benchmark(t)
	var types []pack.Type
	for _, m := range machines {
		types = append(types, pack.Type{Name: m.Name, Size: m.Size, Price: m.Price})
	}
	fmt.Println("TASKS  COST $/h  ABOVE THE BOUND %  TO REACH")
	for _, n := range []int{1000, 8000} {
		sizes := make([]pack.Size, n)
		for i := range sizes {
			sizes[i] = jobs[i%len(jobs)].Size
		}
		p := static.Pack(types, sizes)
		above := 100 * (p.Cost(types).Float()/p.Bound - 1)
		fmt.Printf("%5d  %8.2f  %17.3f  %8.1f\n", n, p.Cost(types).Float(), above, 0.5)
		if above > 0.5 {
			t.Errorf("%d tasks cost %.3f %% more than the bound", n, above)
		}
	}
}
