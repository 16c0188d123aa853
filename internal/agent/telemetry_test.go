package agent

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/agent/host"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/telemetry"
)

// smi puts a fake nvidia-smi with four GPUs on the PATH.
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

// The server receives the use of machine and program, with only the task's GPUs, before it learns of the end.
func TestTelemetry_ArrivesBeforeEnd(t *testing.T) {
	smi(t)
	until := filepath.Join(t.TempDir(), "until")
	a := shell(t, "job-1", "until test -e "+until+"; do :; done")
	a.Part, a.GPUs = &api.Part{CPUs: 1, Memory: 1 << 30, Devices: []int{1, 3}}, true
	r := newRig(t, a)
	r.config.pace.Usage = 20 * time.Millisecond
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
	if m.Head.Cores <= 0 || m.Head.Memory != host.Memory() || m.Head.Driver != "550.54.15" ||
		len(m.Head.GPUs) != 2 || m.Head.GPUs[0].Index != 1 || m.Head.GPUs[1].Index != 3 {
		t.Errorf("%+v", m.Head)
	}
	for metric, want := range map[telemetry.Metric][2]float64{telemetry.GPU: {0.1, 0.3},
		telemetry.GPUMemory: {11 << 20, 13 << 20}, telemetry.GPUPower: {41.5, 43.5}, telemetry.GPUTemperature: {51, 53}} {
		v := b.Values[metric.String()]
		if len(v) != 2 || math.Abs(*v[0]/want[0]-1) > 1e-9 || math.Abs(*v[1]/want[1]-1) > 1e-9 { // means of several readings
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
