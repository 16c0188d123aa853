package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// playBurn does TEST_ROUNDS rounds of arithmetic, prints a line for each hundredth, saves after
// each tenth, and prints the time it took.
func playBurn() int {
	rounds, _ := strconv.Atoi(os.Getenv("TEST_ROUNDS"))
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	start, x := time.Now(), uint64(1)
	for i := range rounds {
		for range 1 << 20 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		if i%10 == 0 {
			fmt.Printf("step=%d loss=%d\n", i+1, x%10)
		}
		if dir != "" && i%200 == 100 {
			if err := os.WriteFile(filepath.Join(dir, "state.tmp"), make([]byte, 1<<20), 0o600); err != nil {
				return 2
			}
			if err := os.Rename(filepath.Join(dir, "state.tmp"), filepath.Join(dir, "state")); err != nil {
				return 2
			}
		}
	}
	fmt.Printf("took %d\n", time.Since(start).Nanoseconds())
	return 0
}

// burnAlone runs the program without an agent and returns the time it took by its own clock.
func burnAlone(b *testing.B, rounds int) time.Duration {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"TEST_PROGRAM=burn", fmt.Sprintf("TEST_ROUNDS=%d", rounds), "SCRIMP_CHECKPOINT_DIR=" + b.TempDir()}
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	return took(b, out)
}

func took(b *testing.B, out []byte) time.Duration {
	b.Helper()
	m := regexp.MustCompile(`took (\d+)`).FindSubmatch(out)
	if m == nil {
		b.Fatalf("the program did not end its work: %.200q", out)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(n)
}

// processorTime returns the processor time of this process: the agent and the test's server.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkProgramWithAgent runs a program that only computes, with output, progress, checkpoints
// of 1 MiB and a metadata service to watch, alternately alone and under the agent. It reports
//
//	cpu-%     processor time of the agent (and of the test's server in the same process) as a share of the
//	          program's time: the most it can cost
//	slower-%  how much longer the program took, median of pairs; on a busy machine mostly noise
//
// The goal is less than 1 % of throughput, and the first number shows that the agent keeps to it.
//
//	go test -run '^$' -bench ProgramWithAgent -benchtime 5x ./internal/agent
func BenchmarkProgramWithAgent(b *testing.B) {
	const rounds = 4000
	var ratios []float64
	var used, ran time.Duration
	for b.Loop() {
		alone := burnAlone(b, rounds)
		before := processorTime(b)
		with := burnUnderAgent(b, rounds)
		used += processorTime(b) - before
		ran += with
		ratios = append(ratios, float64(with-alone)/float64(alone))
	}
	slices.Sort(ratios)
	b.ReportMetric(100*float64(used)/float64(ran), "cpu-%")
	b.ReportMetric(100*ratios[len(ratios)/2], "slower-%")
	if share := float64(used) / float64(ran); share > 0.01 {
		b.Errorf("the agent took %.2f %% of the program's time in processor time, want less than 1 %%", 100*share)
	}
}

func burnUnderAgent(b *testing.B, rounds int) time.Duration {
	b.Helper()
	m := newMarket(b)
	a := assign(b, "burn", fmt.Sprintf("TEST_ROUNDS=%d", rounds))
	a.Progress.Pattern = `step=(?P<step>\d+) loss=(?P<loss>\S+)`
	a.Report = time.Second
	r := newRig(b, a)
	r.config.Quiet, r.config.Metadata.AWS = time.Second, m.URL
	r.start()
	if err := r.end(); err != nil {
		b.Fatal(err)
	}
	if len(r.keeper.versions) == 0 || len(told(r.server, stepped)) == 0 {
		b.Fatalf("the agent did not do its work: %s", r.server.story())
	}
	return took(b, r.server.log)
}
