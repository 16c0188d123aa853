package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// BenchmarkNextTask runs tasks one after the other on a warm machine, with a work folder of 200
// files, checkpoints in the server's store, and with or without a set-up, which is skipped. It
// reports ms-begin: the median time from the response to the pull to the program's own clock.
//
//	go test -run '^$' -bench NextTask -benchtime 20x ./internal/agent
func BenchmarkNextTask(b *testing.B) {
	for _, setup := range []string{"", "mkdir made && cd made && seq 200 | xargs touch"} {
		b.Run(fmt.Sprintf("setup=%t", setup != ""), func(b *testing.B) { benchNext(b, setup) })
	}
}

func benchNext(b *testing.B, setup string) {
	task := func(n int) api.Assignment {
		a := shell(b, "job-1", "date +%s%N")
		a.Attempt, a.Epoch, a.Setup, a.Workdir = fmt.Sprintf("job-1.%d", n), n, setup, api.ServerWork
		a.Checkpoint = api.Checkpoints{Dir: "ckpt", URL: api.ServerStore, Prefix: "jobs/job-1/", KeepLast: 2}
		return a
	}
	n := 1
	r := inLine(b, task(n))
	work := r.upload(b)
	for i := range 200 {
		write(b, filepath.Join(work, strconv.Itoa(i)), strings.Repeat("x", 5000))
	}
	var given []time.Time
	for b.Loop() {
		n++
		r.server.line = append(r.server.line, nextAt(task(n), &given))
	}
	r.start()
	if err := r.end(); err != nil {
		b.Fatal(err)
	}
	var begin []float64
	for i, log := range r.server.logs[1:] {
		lines := strings.Fields(log)
		at, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
		if err != nil {
			b.Fatalf("a task says %q", log)
		}
		begin = append(begin, time.Unix(0, at).Sub(given[i]).Seconds()*1000)
	}
	slices.Sort(begin)
	b.ReportMetric(begin[len(begin)/2], "ms-begin")
	b.ReportMetric(0, "ns/op") // hide it: the loop only writes the list
	if _, err := os.Stat(r.config.MachineDir); err != nil || len(begin) != n-1 {
		b.Fatalf("%d of %d tasks, %v", len(begin), n-1, err)
	}
}

// nextAt records when a task is assigned.
func nextAt(a api.Assignment, when *[]time.Time) given {
	return given{task: a, first: func() { *when = append(*when, time.Now()) }}
}
