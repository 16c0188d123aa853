package measure

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/program"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/telemetry"
)

// usedFor returns a bucket with the given processor use.
func usedFor(cpu float64) (b telemetry.Bucket) {
	b.Set(telemetry.CPU, cpu)
	return b
}

// Measuring in pieces gives the same as measuring at once. Buckets wait for the server, for a day
// at most, and are not sent again too often.
func TestSeries_WaitsForServer(t *testing.T) {
	t.Parallel()
	var s Series
	start := time.Unix(1_700_000_000, 0)
	for n := range 40 { // five seconds each: 0.0, 0.1, … as means of ten
		s.add(start.Add(time.Duration(n+1)*5*time.Second), 5*time.Second, usedFor(float64(n)/100), telemetry.Head{Cores: 4})
	}
	s.close()
	first := s.Next(start)
	if first == nil || len(first.Buckets) != 20 || first.Head.Cores != 4 {
		t.Fatalf("%+v", first)
	}
	for n, b := range first.Buckets {
		if v := *b.Values["cpu_utilization_ratio"][0]; math.Abs(v-(float64(2*n)+0.5)/100) > 1e-9 || b.Covered != 10 ||
			b.Start != start.Unix()+int64(10*n) {
			t.Errorf("bucket %d: %v of %v s at %d", n, v, b.Covered, b.Start)
		}
	}
	if s.Next(start.Add(time.Second)) != nil {
		t.Error("what was sent is sent again at once")
	}
	if again := s.Next(start.Add(bucketsAgain)); again == nil || len(again.Buckets) != 20 {
		t.Errorf("what was not taken is not sent again: %+v", again)
	}
	s.Taken(start.Unix() + 150)
	if rest := s.Next(start.Add(3 * bucketsAgain)); rest == nil || len(rest.Buckets) != 5 {
		t.Errorf("of what was taken in part there is %+v", rest)
	}
	for n := range keptBuckets + 50 {
		s.add(start.Add(time.Duration(n+100)*10*time.Second), 10*time.Second, usedFor(0.5), telemetry.Head{})
	}
	if len(s.list) > keptBuckets || len(s.Next(start.Add(time.Hour)).Buckets) != maxBuckets {
		t.Errorf("%d buckets wait", len(s.list))
	}
}

// A machine on which measuring takes long is measured rarely, and no ten seconds are lost between two measurements.
func TestSeries_LosesNothingOfLongSpans(t *testing.T) {
	t.Parallel()
	var s Series
	start := time.Unix(1_700_000_000, 0)
	for n, seconds := range []int{25, 30, 12, 5, 8, 20} {
		start = start.Add(time.Duration(seconds) * time.Second)
		s.add(start, time.Duration(seconds)*time.Second, usedFor(float64(n+1)/10), telemetry.Head{})
	}
	s.close()
	covered := 0.0
	for n, b := range s.list {
		covered += b.Covered
		if b.Start != 1_700_000_000+int64(10*n) || b.Covered > 10 {
			t.Errorf("bucket %d covers %v s at %d", n, b.Covered, b.Start)
		}
	}
	if len(s.list) != 10 || covered < 90 {
		t.Errorf("%d buckets cover %v of 100 s", len(s.list), covered)
	}
	s.add(start.Add(8*time.Hour), 8*time.Hour, usedFor(1), telemetry.Head{}) // the machine slept
	if s.close(); len(s.list) > 17 {
		t.Errorf("a night is %d buckets", len(s.list)-10)
	}
}

// The use of a job that requests GPUs is that of the busiest one, or unknown. The use of other jobs
// is that of their processors.
func TestInUse_ReportsBusiestGPU(t *testing.T) {
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
		m := Measurer{NeedsGPUs: c.asks}
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

// The readings of a task are those of its part, else of the accelerators that the machine's environment grants, else all.
func TestTaskGPUs_AreTheTasksOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part    *api.Part
		visible []int
		want    []int
	}{
		{nil, nil, []int{0, 1, 2, 3}}, {nil, []int{2, 3}, []int{2, 3}}, {nil, []int{6, 7}, []int{0, 1, 2, 3}},
		{&api.Part{Devices: []int{1}}, []int{2}, []int{1}}, {&api.Part{}, nil, nil},
	} {
		m := Measurer{Part: c.part, Visible: c.visible}
		var is []int
		for _, r := range m.own([]meter.Reading{device(0), device(1), device(2), device(3)}) {
			is = append(is, r.Index)
		}
		if !slices.Equal(is, c.want) {
			t.Errorf("of part %+v and visible %v the task has %v, want %v", c.part, c.visible, is, c.want)
		}
	}
}

func device(index int) meter.Reading { return meter.Reading{Device: telemetry.Device{Index: index}} }

// BenchmarkMeasure measures this machine, its program and four fake GPUs as an agent does every
// five seconds, and reports the processor time as a share of a core. nvidia-smi costs extra, which
// the agent limits to 0.5 % by asking less often.
//
//	go test -run '^$' -bench 'Measure$' ./internal/agent/measure
func BenchmarkMeasure(b *testing.B) {
	const every = 5 * time.Second // as an agent does
	p := startSleeper(b)
	now := time.Now()
	m := &Measurer{Box: &outbox.Box{}, GPUs: &meter.GPUs{}, Now: time.Now, Series: &Series{}, Pacing: &Pacing{},
		program: p.Meter(now), cores: now, head: telemetry.Head{Cores: runtime.NumCPU()}}
	before, n := usedTime(b), 0
	for b.Loop() {
		now = now.Add(every)
		m.once(b.Context(), now)
		n++
	}
	used := usedTime(b) - before
	if len(m.Series.list) == 0 && n > 4 {
		b.Fatal("nothing was measured")
	}
	share := float64(used) / float64(n) / float64(every)
	b.ReportMetric(100*share, "%-of-a-core")
	if share > 0.01 {
		b.Errorf("it takes %.2f %% of a core, want less than 1 %%", 100*share)
	}
}

// startSleeper starts a program that sleeps until the benchmark ends.
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

// usedTime returns the processor time of this process.
func usedTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
