package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestDbg(t *testing.T) {
	if *dataDir == "" {
		t.Skip("no data")
	}
	f, _ := os.Open(filepath.Join(*dataDir, "trace_6274.csv"))
	jobs, _ := ReadTrace("trace", f, DefaultColumns)
	g, _ := os.Open(filepath.Join(*dataDir, "instance_types.csv"))
	types, _ := ReadCatalog("cat", g)
	jobs = jobs[:min(*firstN, len(jobs))]
	var log []Entry
	Run(Config{Jobs: jobs, Types: types, Interference: U95(), Policy: "default-sla", Deadline: 1.25, Note: func(e Entry) { log = append(log, e) }})
	for _, e := range log {
		if e.Kind == Done {
			j := &jobs[e.Task]
			if e.At > j.due(1.25) {
				fmt.Printf("job %d %s work %d arrival %d due %d end %d demand %v\n", e.Task, j.Workload, j.Work/unit, j.Arrival, j.due(1.25), e.At, j.Size)
				for _, x := range log {
					if x.Task == e.Task {
						fmt.Println("   ", x.At, x.Kind, x.Machine)
					}
				}
			}
		}
	}
}
