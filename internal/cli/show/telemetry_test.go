package show_test

import (
	"math"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/test/golden"
)

// trained returns the telemetry of two machines; the second has not reported yet.
func trained() api.Telemetry {
	cores, memory, gpu, until := 4, int64(16<<30), int64(23034<<20), now.Add(-3*time.Second)
	n := api.TelemetryNode{Node: 0, Instance: "i-1\x1b[2J", Cores: &cores, Memory: &memory, Until: &until, Seconds: 600,
		GPUs: []api.GPU{{Index: 2, Name: "NVIDIA L4", Memory: &gpu}}}
	for k := range 60 {
		one := func(v float64) []*float64 { return []*float64{&v} }
		b := api.TelemetryBucket{At: now.Add(time.Duration(k-60) * 10 * time.Second), Width: 10, Covered: 10,
			Mean: map[string][]*float64{
				"gpu_utilization_ratio": one(0.5 + 0.5*math.Sin(float64(k)/6)), "gpu_memory_used_bytes": one(20 << 30),
				"gpu_power_watts": {nil}, "cpu_utilization_ratio": one(0.25), "cpu_iowait_ratio": one(0.4),
				"cpu_idle_ratio": one(0.35), "disk_read_bytes_per_second": one(float64(k) * (1 << 20)), "task_cpu_cores": one(0.98),
			}}
		if k == 59 {
			b.Mean["gpu_utilization_ratio"] = []*float64{nil}
			b.Mean["core_utilization_ratio"] = []*float64{new(1.0), new(0.0), nil, new(0.5)}
		}
		n.Buckets = append(n.Buckets, b)
	}
	return api.Telemetry{Job: "lm", State: "running", Attempt: "lm.2", Live: true, Attempts: []string{"lm.1", "lm.2"}, Seconds: 600,
		Hint: "GPU 50 % used: data loading waits (I/O wait 40 %)", Figures: map[string]api.Figure{
			"gpu_utilization_ratio": {Average: 0.5, Peak: 1, Last: new(0.7)}, "cpu_utilization_ratio": {Average: 0.25, Peak: 0.25},
			"cpu_iowait_ratio": {Average: 0.4, Peak: 0.4, Last: new(0.38)}, "task_cpu_cores": {Average: 0.98, Peak: 0.98}},
		Nodes: []api.TelemetryNode{n, {Node: 1, Instance: "i-2"}}}
}

func TestTelemetry_MatchesGolden(t *testing.T) {
	over := trained()
	over.Live, over.State, over.Nodes = false, "succeeded", over.Nodes[:1]
	list := []api.JobTelemetry{
		{Job: "lm", Nodes: 2, Measured: 1, GPUs: 1, Now: map[string]float64{"gpu_utilization_ratio": 0.87, "gpu_power_watts": 71.4,
			"gpu_memory_used_bytes": 20 << 30, "cpu_utilization_ratio": 0.31, "cpu_iowait_ratio": 0, "task_cpu_cores": 2.34,
			"task_memory_bytes": 5 << 30, "disk_read_bytes_per_second": 120 << 20, "network_received_bytes_per_second": 0}},
		{Job: "starts", Nodes: 1, Now: map[string]float64{}},
	}
	for width, name := range map[int]string{100: "100", 60: "60", 0: "piped"} {
		p := show.Place{Width: width, Now: now}
		if width == 0 {
			p = show.Place{}
		}
		golden.Check(t, "top."+name+".txt", utilization.Telemetry(trained(), 10*time.Minute, p))
		golden.Check(t, "top-all."+name+".txt", utilization.Running(list, p))
	}
	p := show.Place{Width: 100, Now: now}
	golden.Check(t, "top-over.100.txt", utilization.Telemetry(over, 0, p))
	golden.Check(t, "top-none.100.txt", utilization.Telemetry(api.Telemetry{Job: "lm", State: "queued"}, time.Minute, p))
	golden.Check(t, "status-use.100.txt", utilization.InUse(trained(), p)+utilization.InUse(over, p))
	if text := utilization.InUse(api.Telemetry{}, p) + utilization.Running(nil, p); text != "No job runs.\n" {
		t.Errorf("of nothing it says %q", text)
	}
	if strings.Contains(utilization.Telemetry(trained(), 0, p), "\x1b") {
		t.Error("a machine's name steers the terminal")
	}
}
