package telemetry_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/telemetry"
)

const begin = 1_700_000_000

// drawn returns a random bucket of a machine with the given numbers of cores and GPUs.
func drawn(rng *rand.Rand, at int64, cores, gpus int) telemetry.Bucket {
	b := telemetry.Bucket{Start: at, Width: telemetry.Least, Covered: telemetry.Least}
	for m := range telemetry.Metrics {
		n := 1
		switch m.Kind().Of {
		case telemetry.EachCore:
			n = cores
		case telemetry.EachGPU:
			n = gpus
		case telemetry.Machine, telemetry.Task:
		}
		for range n {
			b.V[m] = append(b.V[m], telemetry.Exactly(rng.Float64()*min(m.Kind().Most, 1e10)))
		}
	}
	return b
}

// hour returns an hour of buckets; with more than 128 cores, every third minute has values for each.
func hour(rng *rand.Rand, at int64, cores, gpus int) (list []telemetry.Bucket) {
	for n := range int64(360) {
		b := drawn(rng, at+n*telemetry.Least, cores, gpus)
		if n%18 != 0 {
			b.V[telemetry.Core] = nil
		}
		if n%2 != 0 {
			b.V[telemetry.TaskThreads] = nil
		}
		list = append(list, b)
	}
	return list
}

func near(a, b, by float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= by*max(math.Abs(a), math.Abs(b))
}

func TestDecode_InvertsEncode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	head := telemetry.Head{Cores: 8, Memory: 64 << 30, Driver: "550.54.15",
		GPUs: []telemetry.Device{{Index: 3, Name: "NVIDIA H100 80GB HBM3", Memory: 80 << 30, Power: 700}}}
	list := hour(rng, begin, 8, 2)
	list[7].V[telemetry.GPU][1] = telemetry.Unknown
	list[8].V[telemetry.CPU] = nil
	list = append(list, telemetry.Merge(list[:6], begin, 60))
	got, buckets, err := telemetry.Decode(telemetry.Encode(head, list))
	if err != nil || got.Driver != head.Driver || !slices.Equal(got.GPUs, head.GPUs) || len(buckets) != len(list) {
		t.Fatalf("%+v, %d buckets, %v", got, len(buckets), err)
	}
	for n, b := range buckets {
		if b.Start != list[n].Start || b.Width != list[n].Width || !near(b.Covered, list[n].Covered, 0.01) {
			t.Fatalf("bucket %d is %+v, was %+v", n, b, list[n])
		}
		for m := range telemetry.Metrics {
			step := 1e-2 // of a value in one byte, relative to its largest
			if !m.Kind().Most1Byte() {
				step = 1.0 / 1000
			}
			if m.Kind().Rough() {
				step = 0.05
			}
			for index := range max(len(b.V[m]), len(list[n].V[m])) {
				is, was := b.Value(m, index), list[n].Value(m, index)
				if !near(is.Mean, was.Mean, step) && math.Abs(is.Mean-was.Mean) > m.Kind().Step() ||
					!near(is.Max, was.Max, step) && math.Abs(is.Max-was.Max) > m.Kind().Step() {
					t.Fatalf("%v[%d] of bucket %d is %v, was %v", m, index, n, is, was)
				}
			}
		}
	}
	if v := buckets[7].Value(telemetry.GPU, 1); v.Known() || len(buckets[8].V[telemetry.CPU]) != 0 {
		t.Errorf("what is not known is read as %v", v)
	}
}

// The largest machine, with incompressible values, takes at most 64 KiB per hour, and a quarter of a year is
// bounded.
func TestEncode_HourTakesAtMost64KiB(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	list := hour(rng, begin-begin%3600, telemetry.MaxCores, telemetry.MaxGPUs)
	if n := len(telemetry.Encode(telemetry.Head{}, list)); n > 64<<10 || n < 50<<10 {
		t.Errorf("an hour takes %d bytes", n)
	}
	if n := len(telemetry.Encode(telemetry.Head{}, hour(rng, 0, 8, 1))); n > 24<<10 {
		t.Errorf("an hour of a small machine takes %d bytes", n)
	}
}

func TestCompact_KeepsSumsOfAQuarterOfAYear(t *testing.T) {
	t.Parallel()
	days := int64(lane.Pick(20, 90))
	rng := rand.New(rand.NewPCG(5, 6))
	const start = begin - begin%86400 + 12340
	var kept []telemetry.Bucket
	sum, seconds, peak := 0.0, 0.0, 0.0
	for n := int64(0); n < days*24*360; n++ {
		if n > 24*360 && n%1000 < 990 { // the machine had no telemetry
			n += 9
		}
		b := telemetry.Bucket{Start: start + n*10, Width: 10, Covered: 4 + 6*rng.Float64()}
		v := rng.Float64()
		b.Set(telemetry.GPU, v)
		sum, seconds, peak = sum+v*b.Covered, seconds+b.Covered, max(peak, v)
		if kept = append(kept, b); n%360 == 359 {
			kept = telemetry.Compact(kept)
		}
		if len(kept) > 2600 {
			t.Fatalf("after %d hours %d buckets are kept", n/360, len(kept))
		}
	}
	for i := range kept {
		if i > 0 && kept[i].Start < kept[i-1].End() {
			t.Fatalf("%+v overlaps %+v", kept[i], kept[i-1])
		}
		if age := kept[len(kept)-1].End() - kept[i].End(); age < 3600 && kept[i].Width != 10 {
			t.Fatalf("%d s ago a bucket has %d s", age, kept[i].Width)
		}
	}
	var s telemetry.Summary
	s.Add(kept)
	if is := s.Of[telemetry.GPU]; !near(is.Average, sum/seconds, 1e-9) || is.Peak != peak || !near(is.Seconds, seconds, 1e-9) {
		t.Errorf("it comes to %+v, want %v over %v s, at most %v", is, sum/seconds, seconds, peak)
	}
}

func TestSummary_IgnoresUnknownValues(t *testing.T) {
	one := telemetry.Bucket{Start: 0, Width: 10, Covered: 10}
	two := telemetry.Bucket{Start: 10, Width: 10, Covered: 5}
	one.V[telemetry.GPU] = []telemetry.Value{telemetry.Exactly(0.8), telemetry.Unknown}
	two.V[telemetry.GPU] = []telemetry.Value{telemetry.Exactly(0.2)}
	b := telemetry.Merge([]telemetry.Bucket{one, two}, 0, 60)
	if v := b.Value(telemetry.GPU, 0); !near(v.Mean, 0.6, 1e-12) || v.Max != 0.8 || b.Covered != 15 {
		t.Errorf("%v of %v s", v, b.Covered)
	}
	if b.Value(telemetry.GPU, 1).Known() || b.Value(telemetry.CPU, 0).Known() {
		t.Error("what nobody measured has a value")
	}
	var s telemetry.Summary
	s.Add([]telemetry.Bucket{b})
	if s.Of[telemetry.CPU].Known() || s.Of[telemetry.GPU].Seconds != 15 {
		t.Errorf("%+v", s.Of[telemetry.GPU])
	}
}

func TestDecode_TornEndLosesOneRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	whole := telemetry.Encode(telemetry.Head{Cores: 2}, hour(rng, begin, 2, 1)[:3])
	last := len(telemetry.Encode(telemetry.Head{Cores: 2}, hour(rand.New(rand.NewPCG(7, 8)), begin, 2, 1)[:2]))
	for n := last + 1; n < len(whole); n++ {
		if _, list, err := telemetry.Decode(whole[:n]); !errors.Is(err, telemetry.ErrTorn) || len(list) != 2 {
			t.Fatalf("of %d bytes: %d buckets, %v", n, len(list), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(telemetry.Encode(telemetry.Head{Cores: 2}, hour(rand.New(rand.NewPCG(9, 9)), begin, 2, 1)[:3]))
	f.Add([]byte{3, 'B', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, list, _ := telemetry.Decode(b)
		for _, one := range list {
			for m := range telemetry.Metrics {
				if len(one.V[m]) > m.Width() {
					t.Fatalf("%v has %d values", m, len(one.V[m]))
				}
			}
		}
	})
}

func TestHint_ExplainsTheFigures(t *testing.T) {
	of := func(cores int, set ...float64) string { // GPU, CPU, I/O wait, cores of the task, threads that want to run
		b := telemetry.Bucket{Start: 0, Width: 10, Covered: 10}
		for n, m := range []telemetry.Metric{telemetry.GPU, telemetry.CPU, telemetry.IOWait, telemetry.TaskCPU,
			telemetry.RunQueue} {
			if n < len(set) && set[n] >= 0 {
				b.Set(m, set[n])
			}
		}
		var s telemetry.Summary
		for range 6 {
			s.Add([]telemetry.Bucket{b})
		}
		return s.Hint(cores)
	}
	for want, is := range map[string]string{
		"GPU 23 % used: data loading waits (I/O wait 40 %)": of(8, 0.23, 0.3, 0.4, 2),
		"the processors are busy (CPU 96 %)":                of(8, 0.4, 0.96, 0, 7.6),
		"the program uses one core of 8":                    of(8, 0.4, 0.14, 0, 1.02),
		"larger batches, or a smaller GPU":                  of(8, 0.3, 0.3, 0, 3),
		"above 70 % is the target":                          of(8, 0.6, 0.3, 0, 3),
		"CPU 12 % of 8 cores used: a smaller machine":       of(8, -1, 0.12, 0, 1),
		"reading data waits for the disk (I/O wait 30 %)":   of(4, -1, 0.12, 0.3, 0.4),
		"CPU 1 % of 8 cores used: a smaller machine":        of(8, -1, 0.95, 0, 0.1), // other programs keep it busy
		"CPU 20 % of 8 cores used: a smaller machine":       of(8, -1, 0.2, 0, -1),
	} {
		if !strings.Contains(is, want) {
			t.Errorf("the hint is %q, want %q", is, want)
		}
	}
	for n, is := range []string{of(8, 0.9, 0.1, 0.4, 1), of(8, -1, 0.8, 0, 6), of(1, -1, 0.1, 0, 0.1), of(8, -1, -1, -1, -1),
		of(2, -1, 1, 0, 0.16, 21)} {
		if is != "" {
			t.Errorf("case %d has the hint %q", n, is)
		}
	}
}

// These are the figures of a GPT-2 small on an H100 whose program took 18 of 64 seconds to start: its GPU was not
// hungry.
func TestHint_IgnoresTheStartOfTheProgram(t *testing.T) {
	of := func(use ...float64) string {
		var list []telemetry.Bucket
		for n, v := range use {
			b := telemetry.Bucket{Start: int64(10 * n), Width: 10, Covered: 10}
			b.Set(telemetry.GPU, v)
			b.Set(telemetry.TaskCPU, 1)
			list = append(list, b)
		}
		var s telemetry.Summary
		s.Add(list)
		return s.Hint(16)
	}
	for _, c := range []struct {
		use  []float64
		want string
	}{
		{[]float64{0, 0.2, 1, 1, 1, 1, 1}, ""},
		{[]float64{0, 0, 0.8, 1, 1, 1, 1}, "GPU 96 % used from its first use on, after 29 % of the time"},
		{[]float64{0, 0, 0.3, 0.3, 0.3, 0.3, 0.3}, "GPU 30 % used: the program uses one core of 16"},
		{[]float64{0, 0, 0, 0, 0, 0}, "GPU 0 % used"},
		{[]float64{1, 0, 0, 0, 0, 0, 0, 0}, "used: the program uses one core"}, // it started at once, and then had nothing to do
	} {
		if is := of(c.use...); !strings.Contains(is, c.want) || (c.want == "") != (is == "") {
			t.Errorf("GPUs used %v have the hint %q, want %q", c.use, is, c.want)
		}
	}
}

// A bucket of an agent is validated before any of it is stored.
func TestValid_RefusesImpossibleBuckets(t *testing.T) {
	good := drawn(rand.New(rand.NewPCG(1, 1)), begin, 4, 1)
	if !good.Valid() {
		t.Fatal("what was measured is refused")
	}
	for name, spoil := range map[string]func(b *telemetry.Bucket){
		"a negative share":  func(b *telemetry.Bucket) { b.Set(telemetry.CPU, -0.1) },
		"more than all":     func(b *telemetry.Bucket) { b.Set(telemetry.GPU, 1.01) },
		"an infinite rate":  func(b *telemetry.Bucket) { b.Set(telemetry.DiskRead, math.Inf(1)) },
		"too many GPUs":     func(b *telemetry.Bucket) { b.V[telemetry.GPU] = make([]telemetry.Value, 17) },
		"two values of one": func(b *telemetry.Bucket) { b.V[telemetry.CPU] = make([]telemetry.Value, 2) },
		"a wide bucket":     func(b *telemetry.Bucket) { b.Width = 60 },
		"an odd start":      func(b *telemetry.Bucket) { b.Start++ },
		"a time before all": func(b *telemetry.Bucket) { b.Start = -10 },
		"nothing covered":   func(b *telemetry.Bucket) { b.Covered = 0 },
		"too much covered":  func(b *telemetry.Bucket) { b.Covered = 11 },
		"no number covered": func(b *telemetry.Bucket) { b.Covered = math.NaN() },
	} {
		b := drawn(rand.New(rand.NewPCG(1, 1)), begin, 4, 1)
		if spoil(&b); b.Valid() {
			t.Errorf("%s is let in", name)
		}
	}
}

func BenchmarkHour(b *testing.B) {
	list := hour(rand.New(rand.NewPCG(3, 4)), begin, 64, 8)
	for b.Loop() {
		text := telemetry.Encode(telemetry.Head{}, list)
		if _, back, err := telemetry.Decode(text); err != nil || len(back) != len(list) {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(text)), "B/hour")
	}
}
