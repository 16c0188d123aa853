package evidence

import (
	"testing"
	"time"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/spec"
)

func TestEarlier_ReadsProofFromReceipt(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	begun, again, idle := at.Add(2*time.Minute), at.Add(time.Hour+4*time.Minute), at.Add(3*time.Hour)
	r := receipt.Receipt{
		Job: "j", State: "succeeded", Step: 100, Checkpoints: 3, MarketSpeed: 2, Metrics: map[string]float64{"gpu_util": 63},
		Tries: []receipt.Try{
			{From: at, Begun: &begun, Until: at.Add(time.Hour), First: 0, Last: 60},
			{From: at.Add(time.Hour), Begun: &again, Until: at.Add(2 * time.Hour), First: 50, Last: 100, Restored: "m-1"},
			{From: at.Add(2 * time.Hour), Until: at.Add(2*time.Hour + time.Minute), Restored: "m-2"},
			{From: at.Add(2 * time.Hour), Begun: &idle, Until: at.Add(3 * time.Hour), First: 100, Last: 100, Restored: "m-2"},
		},
	}
	run := earlier(r)
	if len(run.Resumes) != 1 || run.Resumes[0] != 2*time.Minute || run.Worked != 114*time.Minute || !run.Utilisation.OK || run.Utilisation.V != 0.63 || run.CostUSD.OK {
		t.Errorf("%+v", run)
	}
	if p := Programs(spec.Job{Command: "python ../x.py /etc/passwd.cfg"}, t.TempDir()); len(p) != 0 {
		t.Errorf("%v", p)
	}
}

// A check uses a run's measured utilization; the program's own report has precedence.
func TestEarlier_UsesMeasuredUtilization(t *testing.T) {
	figure := func(name string, v float64) map[string]receipt.Figure {
		return map[string]receipt.Figure{name: {Average: v}}
	}
	for name, x := range map[string]struct {
		of    *receipt.Telemetry
		want  float64
		known bool
	}{
		"nothing":           {nil, 0, false},
		"GPU":               {&receipt.Telemetry{Seconds: 600, Cores: 8, GPUs: 1, Figures: figure("gpu_utilization_ratio", 0.31)}, 0.31, true},
		"processors":        {&receipt.Telemetry{Seconds: 600, Cores: 8, Figures: figure("task_cpu_cores", 2)}, 0.25, true},
		"a few seconds":     {&receipt.Telemetry{Seconds: 20, Cores: 8, Figures: figure("task_cpu_cores", 2)}, 0, false},
		"one processor":     {&receipt.Telemetry{Seconds: 600, Cores: 1, Figures: figure("task_cpu_cores", 0.2)}, 0, false},
		"GPU of unread use": {&receipt.Telemetry{Seconds: 600, Cores: 8, GPUs: 1, Figures: figure("task_cpu_cores", 2)}, 0, false},
	} {
		run := earlier(receipt.Receipt{Telemetry: x.of})
		if run.Utilisation.OK != x.known || run.Utilisation.V != x.want {
			t.Errorf("%s: %+v", name, run.Utilisation)
		}
		run = earlier(receipt.Receipt{Telemetry: x.of, Metrics: map[string]float64{"gpu_util": 0.5}})
		if run.Utilisation.V != 0.5 {
			t.Errorf("%s, and the program reports 50 %%: %+v", name, run.Utilisation)
		}
	}
}
