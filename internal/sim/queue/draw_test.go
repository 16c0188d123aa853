package queue_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"scrimp/internal/sim/queue"
	"scrimp/internal/test/must"
)

// trace draws jobs: durations in one of three shapes, random arrivals, sizes of a few classes.
func trace(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("job_id,workload,arrival_poisson20_s,work_gavel_s,gpu,vcpu,mem_gb,init_delay_s,fetch_delay_s,build_image_delay_s," +
		"kill_delay_s,upload_delay_s,image_id\n")
	at := 0.0
	shape := seed % 3
	for i := range n {
		at += r.ExpFloat64() * 900
		hours := 0.2 + r.Float64()*8
		switch shape {
		case 1:
			hours = math.Min(200, 0.3*math.Pow(r.Float64(), -1/1.2)) // Pareto: most jobs are short, and a few hold most of the work
		case 2:
			hours = math.Exp(r.NormFloat64()*1.5) * 2
		}
		kind := r.IntN(5)
		gpu := []int{0, 1, 1, 2, 4}[kind]
		fmt.Fprintf(&b, "j%d,w%d,%d,%.3f,%d,%d,%.1f,%d,%d,%d,%d,%d,i%d\n", i, kind, int(at), hours*3600, gpu, 2+r.IntN(6)+2*gpu,
			4+float64(r.IntN(200))/10, r.IntN(150), r.IntN(10), r.IntN(20), r.IntN(5), r.IntN(30), kind%3)
	}
	return b.String()
}

// catalogue holds machines that differ from the benchmark's in type and price.
const catalogue = `name,gpu,vcpu,mem_gb,usd_per_hour,instantiate_s,run_worker_s,register_s,terminate_s
c.4,0,4,16,0.19,20,40,30,5
c.16,0,16,64,0.71,20,40,30,5
c.64,0,64,256,2.75,20,40,30,5
g1.12,1,12,48,1.10,45,60,90,2
g1.48,4,48,192,4.05,45,60,90,2
g2.96,8,96,768,9.60,60,70,90,2
`

func drawn(t *testing.T, seed uint64, n int) queue.Config {
	t.Helper()
	jobs, err := queue.ReadTrace("drawn.csv", strings.NewReader(trace(seed, n)), queue.DefaultColumns)
	must.Do(t, err)
	types, err := queue.ReadCatalog("types.csv", strings.NewReader(catalogue))
	must.Do(t, err)
	c := queue.Config{Jobs: jobs, Types: types, Interference: queue.U95(), Deadline: 1.25}
	if seed%2 == 1 {
		c.Interference = drawnPairs(t, seed, jobs)
	}
	return c
}

func drawnPairs(t *testing.T, seed uint64, jobs []queue.Job) queue.Interference {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	var b strings.Builder
	b.WriteString("workload,colocated_with,normalised_throughput\n")
	for i := range 5 {
		for j := range 5 {
			fmt.Fprintf(&b, "w%d,w%d,%.3f\n", i, j, 0.7+0.3*r.Float64())
		}
	}
	f, err := queue.ReadPairs("pairs.csv", strings.NewReader(b.String()), jobs)
	must.Do(t, err)
	return f
}
