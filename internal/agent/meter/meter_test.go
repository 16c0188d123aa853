package meter_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/meter"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/telemetry"
)

// files writes the kernel's files.
func files(t *testing.T, root string, list map[string]string) {
	t.Helper()
	for name, text := range list {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// kernel returns the files of a machine with two cores whose counters have grown n times.
func kernel(n int) map[string]string {
	return map[string]string{
		// For each core: user, nice, system, idle, iowait, irq, softirq, steal, guest (part of user).
		"proc/stat": fmt.Sprintf("cpu  %d 0 %d %d %d 0 0 %d %d 0\ncpu0 %d 0 0 0 0 0 0 0 0 0\ncpu1 0 0 %d %d %d 0 0 0 0 0\n"+
			"intr 1 2 3\nctxt 5\nprocs_running 5\n", 1000*n, 100*n, 500*n, 400*n, 0, 900*n, 1000*n, 100*n, 500*n, 400*n),
		"proc/meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\nBuffers: 50 kB\nCached: 250 kB\n",
		"proc/diskstats": fmt.Sprintf("   8 0 sda 1 0 %d 0 1 0 %d 0 0 0 0\n   8 1 sda1 1 0 %d 0 1 0 %d 0 0 0 0\n"+
			" 253 0 dm-0 1 0 %d 0 1 0 %d 0 0 0 0\n", 2000*n, 4000*n, 2000*n, 4000*n, 2000*n, 4000*n),
		"proc/net/dev": fmt.Sprintf("Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|"+
			"bytes packets\n    lo: 99999 0 0 0 0 0 0 0 99999 0\n  eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\nib0:%d 1 0 0 0 0 0 0 %d 1\n"+
			"veth1: 7777 0 0 0 0 0 0 0 7777 0\n", 3000*n, 1000*n, 500*n, 500*n),
		"sys/block/sda/size": "1", "sys/block/dm-0/size": "1",
	}
}

// Usage is the difference of the kernel's counters, and each disk and each network counts once.
func TestMachine_MeasuresKernelCounters(t *testing.T) {
	root := t.TempDir()
	files(t, root, kernel(1))
	m := meter.Machine{Root: root}
	begin := time.Unix(1000, 0)
	var b telemetry.Bucket
	if span := m.Measure(begin, &b); span != 0 {
		t.Errorf("the first measurement is of %v", span)
	}
	files(t, root, kernel(3)) // the counters grew by twice their first values
	if span := m.Measure(begin.Add(5*time.Second), &b); span != 5*time.Second {
		t.Errorf("the span is %v", span)
	}
	m.Cores(&b)
	const all = 2 * (1000 + 100 + 500 + 400) // without steal, which is 0, and guests, which are part of user
	for metric, want := range map[telemetry.Metric]float64{
		telemetry.CPU: 2 * 1100.0 / all, telemetry.Idle: 2 * 500.0 / all, telemetry.IOWait: 2 * 400.0 / all,
		telemetry.Memory: 400 << 10, telemetry.PageCache: 300 << 10,
		telemetry.DiskRead: 2 * 2000 * 512 / 5.0, telemetry.DiskWrite: 2 * 4000 * 512 / 5.0,
		telemetry.NetReceive: 2 * 3500 / 5.0, telemetry.NetTransmit: 2 * 1500 / 5.0, telemetry.RunQueue: 4,
	} {
		if is := b.Value(metric, 0).Mean; math.Abs(is-want) > 1e-9*want {
			t.Errorf("%v is %v, want %v", metric, is, want)
		}
	}
	if one, two := b.Value(telemetry.Core, 0).Mean, b.Value(telemetry.Core, 1).Mean; one != 1 || math.Abs(two-0.1) > 1e-9 {
		t.Errorf("the cores are used %v and %v, want 1 and 0.1", one, two)
	}
	if h := m.Head(); h.Cores != 2 || h.Memory != 1000<<10 {
		t.Errorf("%+v", h)
	}
}

// A machine without kernel files has unknown values, not zeros.
func TestMachine_ReportsUnknownWithoutCounters(t *testing.T) {
	m := meter.Machine{Root: t.TempDir()}
	var b telemetry.Bucket
	m.Measure(time.Unix(1000, 0), &b)
	m.Measure(time.Unix(1010, 0), &b)
	m.Cores(&b)
	for metric := range telemetry.Metrics {
		if len(b.V[metric]) > 0 {
			t.Errorf("%v is %v", metric, b.V[metric])
		}
	}
}

// The measurements of this machine agree with other sources.
func TestMachine_MeasuresThisMachine(t *testing.T) {
	var m meter.Machine
	var b telemetry.Bucket
	m.Measure(time.Now(), &b)
	eventually.True(t, "the kernel has counted on", func() bool {
		return m.Measure(time.Now(), &b) > 0 && len(b.V[telemetry.CPU]) > 0
	})
	sum := b.Value(telemetry.CPU, 0).Mean + b.Value(telemetry.Idle, 0).Mean + b.Value(telemetry.IOWait, 0).Mean
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("used, idle and waiting are %v of the time", sum)
	}
	text, err := os.ReadFile("/proc/stat")
	if cores := strings.Count(string(text), "\ncpu"); err != nil || m.Head().Cores != cores {
		t.Errorf("%d cores, /proc/stat has %d", m.Head().Cores, cores)
	}
	if used := b.Value(telemetry.Memory, 0).Mean; used <= 0 || used > float64(m.Head().Memory) {
		t.Errorf("%v bytes are used of %d", used, m.Head().Memory)
	}
}

func TestParseSMI_ReportsUnknown(t *testing.T) {
	list, err := meter.ParseSMI("0, NVIDIA A100-SXM4-40GB, 535.129.03, [N/A], 1024, 40960, 52.17, 400.00, 31\n" +
		"1, \"Quadro, old\", 470.1, 87, [Not Supported], [N/A], [Unknown Error], [N/A], N/A\n")
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	a, b := list[0], list[1]
	if !math.IsNaN(a.Utilization) || a.MemoryUsed != 1<<30 || a.Memory != 40<<30 || a.Watts != 52.17 || a.Power != 400 ||
		a.Temperature != 31 || a.Driver != "535.129.03" {
		t.Errorf("%+v", a)
	}
	if b.Utilization != 0.87 || !math.IsNaN(b.MemoryUsed) || !math.IsNaN(b.Watts) || !math.IsNaN(b.Temperature) ||
		b.Memory != 0 || b.Power != 0 || b.Name != "Quadro, old" || b.Index != 1 {
		t.Errorf("%+v", b)
	}
	for _, bad := range []string{"No devices were found\n", "0, A100\n", "x, A100, 1, 2, 3, 4, 5, 6, 7\n",
		"-1, A100, 1, 2, 3, 4, 5, 6, 7\n"} {
		if list, err := meter.ParseSMI(bad); err == nil || len(list) > 0 {
			t.Errorf("%q is read as %+v, %v", bad, list, err)
		}
	}
	if list, err := meter.ParseSMI(""); err != nil || len(list) != 0 {
		t.Errorf("no GPU is %+v, %v", list, err)
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, NVIDIA H100 80GB HBM3, 550.54.15, 100, 60000, 81559, 612.31, 700.00, 61\n")
	f.Add("0, \"a\nb\", 1, nan, -1, inf, 1e400, 5, 0x7\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := meter.ParseSMI(text)
		var b telemetry.Bucket
		meter.Put(list, &b)
		b.Start, b.Width, b.Covered = 0, telemetry.Least, telemetry.Least
		if b.Clear(); !b.Valid() {
			t.Errorf("%q makes %+v", text, b)
		}
	})
}

// smi puts a fake nvidia-smi with the given script on the PATH.
func smi(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// GPUs are read only on demand, and a failing driver means unknown, not idle.
func TestGPUs_ReadOnDemand(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "calls")
	smi(t, `echo "$@" >>`+counter+`
[ "$(wc -l <`+counter+`)" -gt 1 ] && exit 9
echo "0, NVIDIA L4, 550.54.15, 42, 100, 23034, 30.5, 72.00, 40"`)
	var g meter.GPUs
	ctx, done := t.Context(), make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	t.Cleanup(func() { <-done })
	if _, err := os.Stat(counter); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was asked before somebody wanted to know")
	}
	var list []meter.Reading
	eventually.True(t, "a reading", func() bool { list = g.Latest(time.Now()); return len(list) == 1 })
	if list[0].Utilization != 0.42 || list[0].Name != "NVIDIA L4" {
		t.Errorf("%+v", list[0])
	}
	if asked, _ := os.ReadFile(counter); !strings.Contains(string(asked),
		"--query-gpu=index,name,driver_version,utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu "+
			"--format=csv,noheader,nounits") {
		t.Errorf("it was asked %q", asked)
	}
	if late := g.Latest(time.Now().Add(time.Minute)); late != nil {
		t.Errorf("a minute later the last reading still counts: %+v", late)
	}
}
