package queue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	dataDir = flag.String("data", "", "folder")
	firstN  = flag.Int("n", 200, "")
	pols    = flag.String("policies", "no-packing,stratus,eva", "")
	inter   = flag.String("inter", "u95", "")
)

func TestDev(t *testing.T) {
	if *dataDir == "" {
		t.Skip("no data")
	}
	f, _ := os.Open(filepath.Join(*dataDir, "trace_6274.csv"))
	jobs, err := ReadTrace("trace", f, DefaultColumns)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := os.Open(filepath.Join(*dataDir, "instance_types.csv"))
	types, err := ReadCatalog("cat", g)
	if err != nil {
		t.Fatal(err)
	}
	inf := U95()
	if *inter == "pairs" {
		h, _ := os.Open(filepath.Join(*dataDir, "pairwise_throughput.csv"))
		if inf, err = ReadPairs("pairs", h, jobs); err != nil {
			t.Fatal(err)
		}
	}
	jobs = jobs[:min(*firstN, len(jobs))]
	base := Run(Config{Jobs: jobs, Types: types, Interference: inf, Policy: "no-packing", Deadline: 1.25}).Cost.Float()
	for _, p := range strings.Split(*pols, ",") {
		began := time.Now()
		r := Run(Config{Jobs: jobs, Types: types, Interference: inf, Policy: p, Deadline: 1.25, Clock: time.Now})
		p50, _ := r.Round(0.5)
		p99, _ := r.Round(0.99)
		mx, _ := r.Round(1)
		fmt.Printf("%-12s %12.2f %6.2f%% mean %.2fh p99 %.2f misses %.4f moves %.2f machines %d round %v %v %v total %v\n", p, r.Cost.Float(),
			100*r.Cost.Float()/base, r.Mean/3600, r.P99/3600, r.Misses, r.Moves, r.Machines, p50, p99, mx, time.Since(began).Round(time.Millisecond))
	}
}
