package evidence

import (
	"math"
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

// The shares of a run are those that its receipt's times and bytes give by hand.
func TestEarlier_ReadsSharesFromReceipt(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	first, second := at.Add(15*time.Minute), at.Add(65*time.Minute)
	met, saved, save := false, -0.25, 12.5
	r := receipt.Receipt{
		DeadlineMet: &met, SavedShare: &saved, SaveSeconds: &save, LostSeconds: 1500,
		Tries: []receipt.Try{
			{From: at, Begun: &first, Until: at.Add(time.Hour)},                                                         // 15 of 60 minutes to start
			{From: at.Add(time.Hour), Begun: &second, Until: at.Add(100 * time.Minute), Nodes: make([]receipt.Node, 2)}, // 5 of 40
			{From: at.Add(100 * time.Minute), Until: at.Add(120 * time.Minute)},
		},
		Data: &receipt.DataUse{Seconds: 2400},
		Telemetry: &receipt.Telemetry{Seconds: 600, GPUs: 1, GPUMemory: 80 << 30,
			Figures: map[string]receipt.Figure{"gpu_memory_used_bytes": {Peak: 60 << 30}}},
	}
	run := earlier(r)
	for name, x := range map[string]struct{ got, want float64 }{
		"lost":     {run.Lost.V, 1500.0 / (80 * 60)},    // 45 and 35 minutes of work
		"start-up": {run.StartUp.V, 20.0 / 100},         // of attempts that started
		"waited":   {run.Waited.V, 2400.0 / (160 * 60)}, // 60, two machines of 40, and 20 minutes
		"held":     {run.Held.V, 0.75}, "saved": {run.Saved.V, -0.25}, "save": {run.Save.Seconds(), 12.5},
	} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, x.got, x.want)
		}
	}
	if run.DeadlineMet == nil || *run.DeadlineMet {
		t.Error("the deadline was missed")
	}
	r.Data.Unreported, r.Telemetry, r.Tries, r.SavedShare = 1, nil, nil, nil
	if run := earlier(r); run.Waited.OK || run.Held.OK || run.StartUp.OK || run.Lost.OK || run.Saved.OK {
		t.Errorf("unknown figures are known: %+v", run)
	}
}
