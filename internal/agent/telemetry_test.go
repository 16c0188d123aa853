package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/program"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/telemetry"
)

// smi puts a stand-in for nvidia-smi into the path, as a machine with four GPUs has it.
func smi(t testing.TB) {
	t.Helper()
	bin := t.TempDir()
	script := `#!/bin/sh
case $1 in
*utilization*)
	for n in 0 1 2 3; do echo "$n, NVIDIA L4, 550.54.15, ${n}0, 1$n, 23034, 4$n.5, 72.00, 5$n"; done
	;;
*memory*) for n in 0 1 2 3; do echo "GPU-$n, 0"; done ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// The server hears what the machine and the program did, with the GPUs that the task has and no others, before it hears
// of the end.
func TestTheServerHearsWhatTheMachineDid(t *testing.T) {
	smi(t)
	until := filepath.Join(t.TempDir(), "until")
	a := shell(t, "job-1", "until test -e "+until+"; do :; done")
	a.Part, a.GPUs = &api.Part{CPUs: 1, Memory: 1 << 30, Devices: []int{1, 3}}, true
	r := newRig(t, a)
	r.config.pace.usage = 20 * time.Millisecond
	r.server.heard = func(m api.Message) { // nvidia-smi has answered
		if m.Usage != nil && m.Usage.GPU != nil {
			write(t, until, "")
		}
	}
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if len(r.server.measured) == 0 {
		t.Fatalf("nothing was measured: %s", r.server.story())
	}
	m := r.server.measured[len(r.server.measured)-1]
	b := m.Buckets[len(m.Buckets)-1]
	if m.Head.Cores <= 0 || m.Head.Memory != memory() || m.Head.Driver != "550.54.15" ||
		len(m.Head.GPUs) != 2 || m.Head.GPUs[0].Index != 1 || m.Head.GPUs[1].Index != 3 {
		t.Errorf("%+v", m.Head)
	}
	for metric, want := range map[telemetry.Metric][2]float64{telemetry.GPU: {0.1, 0.3},
		telemetry.GPUMemory: {11 << 20, 13 << 20}, telemetry.GPUPower: {41.5, 43.5}, telemetry.GPUTemperature: {51, 53}} {
		v := b.Values[metric.String()]
		if len(v) != 2 || math.Abs(*v[0]/want[0]-1) > 1e-9 || math.Abs(*v[1]/want[1]-1) > 1e-9 { // they are means of several
			t.Errorf("%v is %v, want %v", metric, v, want)
		}
	}
	for _, metric := range []telemetry.Metric{telemetry.CPU, telemetry.IOWait, telemetry.Memory} {
		if v := b.Values[metric.String()]; len(v) != 1 || v[0] == nil || *v[0] < 0 {
			t.Errorf("%v is %v", metric, v)
		}
	}
	if b.Start%telemetry.Least != 0 || b.Covered <= 0 || b.Covered > telemetry.Least {
		t.Errorf("%+v", b)
	}
}

// usedFor is a bucket in which the processors were used so much.
func usedFor(cpu float64) (b telemetry.Bucket) {
	b.Set(telemetry.CPU, cpu)
	return b
}

// What is measured in pieces comes to the same as the whole, and what a server does not take waits for it, a day of it at
// most, and is not sent again and again.
func TestMeasurementsWaitForTheServer(t *testing.T) {
	t.Parallel()
	var s series
	start := time.Unix(1_700_000_000, 0)
	for n := range 40 { // five seconds each: 0.0, 0.1, … as means of ten
		s.add(start.Add(time.Duration(n+1)*5*time.Second), 5*time.Second, usedFor(float64(n)/100), telemetry.Head{Cores: 4})
	}
	s.close()
	first := s.next(start)
	if first == nil || len(first.Buckets) != 20 || first.Head.Cores != 4 {
		t.Fatalf("%+v", first)
	}
	for n, b := range first.Buckets {
		if v := *b.Values["cpu_utilization_ratio"][0]; math.Abs(v-(float64(2*n)+0.5)/100) > 1e-9 || b.Covered != 10 ||
			b.Start != start.Unix()+int64(10*n) {
			t.Errorf("bucket %d: %v of %v s at %d", n, v, b.Covered, b.Start)
		}
	}
	if s.next(start.Add(time.Second)) != nil {
		t.Error("what was sent is sent again at once")
	}
	if again := s.next(start.Add(bucketsAgain)); again == nil || len(again.Buckets) != 20 {
		t.Errorf("what was not taken is not sent again: %+v", again)
	}
	s.taken(start.Unix() + 150)
	if rest := s.next(start.Add(3 * bucketsAgain)); rest == nil || len(rest.Buckets) != 5 {
		t.Errorf("of what was taken in part there is %+v", rest)
	}
	for n := range keptBuckets + 50 {
		s.add(start.Add(time.Duration(n+100)*10*time.Second), 10*time.Second, usedFor(0.5), telemetry.Head{})
	}
	if len(s.list) > keptBuckets || len(s.next(start.Add(time.Hour)).Buckets) != maxBuckets {
		t.Errorf("%d buckets wait", len(s.list))
	}
}

// A job that asks for GPUs is judged by the busiest of them, one that asks for none by its processors, and where nobody
// knows of the GPUs there is no value.
func TestUseOfGPUsIsToldWhereTheJobAsksForSome(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		asks bool
		of   []float64
		want string
	}{
		{true, []float64{0, 0.25, 0.1}, "0.25"}, {true, []float64{0, 0}, "0"}, {true, []float64{nan, 0}, "0"},
		{true, []float64{nan}, "none"}, {true, nil, "none"}, {false, []float64{0}, "none"},
	} {
		m := measurer{g: &attempt{a: api.Assignment{GPUs: c.asks}}}
		var list []meter.Reading
		for _, u := range c.of {
			list = append(list, meter.Reading{Utilization: u})
		}
		is := "none"
		if p := m.inUse(list); p != nil {
			is = fmt.Sprint(*p)
		}
		if is != c.want {
			t.Errorf("%v of a job that asks for some: %v is %s, want %s", c.of, c.asks, is, c.want)
		}
	}
}

// BenchmarkMeasure measures this machine, its program and four GPUs of a stand-in as an agent does every five seconds,
// and reports what that takes of a core, in processor time; nvidia-smi's own comes on top, and is held to 0.5 % by
// asking seldomer.
//
//	go test -run '^$' -bench 'Measure$' ./internal/agent
func BenchmarkMeasure(b *testing.B) {
	r := newRig(b, assign(b, ""))
	g := &attempt{Config: r.config, a: r.server.assignment, box: &outbox.Box{}}
	g.Now = time.Now
	g.gpus = &meter.GPUs{}
	p := startSleeper(b)
	now := time.Now()
	m := &measurer{g: g, program: p.Meter(now), cores: now, head: telemetry.Head{Cores: runtime.NumCPU()}}
	before, n := processorTime(b), 0
	for b.Loop() {
		now = now.Add(usualPace.usage)
		m.once(now)
		n++
	}
	used := processorTime(b) - before
	if len(g.series.list) == 0 && n > 4 {
		b.Fatal("nothing was measured")
	}
	share := float64(used) / float64(n) / float64(usualPace.usage)
	b.ReportMetric(100*share, "%-of-a-core")
	if share > 0.01 {
		b.Errorf("it takes %.2f %% of a core, want less than 1 %%", 100*share)
	}
	if strings.Contains(r.logs.String(), "error") {
		b.Error(r.logs.String())
	}
}

// startSleeper starts a program that does nothing until the benchmark ends.
func startSleeper(b *testing.B) *program.Program {
	b.Helper()
	p, err := program.Start(program.Spec{Args: []string{"/bin/sleep", "3600"}, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}
