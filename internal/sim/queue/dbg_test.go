package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/decide/pack"
)

func TestStat(t *testing.T) {
	if *dataDir == "" {
		t.Skip("no data")
	}
	f, _ := os.Open(filepath.Join(*dataDir, "trace_6274.csv"))
	jobs, _ := ReadTrace("trace", f, DefaultColumns)
	g, _ := os.Open(filepath.Join(*dataDir, "instance_types.csv"))
	mt, _ := ReadCatalog("cat", g)
	var types []pack.Type
	for _, m := range mt {
		types = append(types, pack.Type{Name: m.Name, Size: m.Size, Price: m.Price})
	}
	for _, n := range []int{200, 1000, 5000, 8000} {
		var sizes []pack.Size
		for i := range n {
			sizes = append(sizes, jobs[i%len(jobs)].Size)
		}
		began := time.Now()
		p := pack.Static(types, sizes)
		took := time.Since(began)
		cost := 0.0
		tasks := 0
		for _, b := range p.Bins {
			cost += types[b.Type].Price.Float()
			tasks += len(b.Tasks)
		}
		fmt.Printf("%d tasks %d bins %d cost %.2f bound %.2f gap %.3f%% took %v\n", n, tasks, len(p.Bins), cost, p.Bound, 100*(cost/p.Bound-1), took)
	}
}
