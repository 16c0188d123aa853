package agent

import (
	"testing"
	"time"

	"scrimp/internal/wire/telemetry"
)

// Steps are measured from the first that is reported, and a wait counts while it lasts.
func TestPacing_MeasuresStepsAndTheLongestWait(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var p pacing
	measured := func(s float64) (steps, wait float64, known bool) {
		var b telemetry.Bucket
		p.put(at(s), 5*time.Second, &b)
		return b.Value(telemetry.TaskSteps, 0).Mean, b.Value(telemetry.TaskStepWait, 0).Mean, len(b.V[telemetry.TaskSteps]) > 0
	}
	if _, _, known := measured(5); known {
		t.Error("a program that has reported no step is measured")
	}
	p.saw(at(6), 10) // the first says nothing of how long it took
	p.saw(at(7), 12)
	p.saw(at(7.5), 12) // the same again
	p.saw(at(9), 15)
	if steps, wait, known := measured(10); !known || steps != 1 || wait != 2 {
		t.Errorf("%v steps a second, longest wait %v, %v", steps, wait, known)
	}
	if steps, wait, _ := measured(15); steps != 0 || wait != 6 {
		t.Errorf("while it waits: %v steps a second, longest wait %v", steps, wait)
	}
	p.saw(at(16), 1) // anew
	p.saw(at(17), 2)
	if steps, wait, _ := measured(20); steps != 0.2 || wait != 7 {
		t.Errorf("after it began anew: %v steps a second, longest wait %v", steps, wait)
	}
}
