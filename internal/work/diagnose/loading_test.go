package diagnose

import (
	"testing"

	"scrimp/internal/wire/telemetry"
)

// Processors that other programs fill are no sign that this program loads data.
func TestDataLoading_IsNotOthersWork(t *testing.T) {
	for own, want := range map[float64]bool{0.2: false, 6: true} {
		b := telemetry.Bucket{Start: 0, Width: 10, Covered: 10}
		in := Input{Job: "train", Nodes: []Node{{Buckets: []telemetry.Bucket{b}}}}
		for i := range in.Nodes[0].Buckets {
			b := &in.Nodes[0].Buckets[i]
			b.Set(telemetry.GPU, 0.4)
			b.Set(telemetry.CPU, 1)
			b.Set(telemetry.TaskCPU, own)
			b.Set(telemetry.TaskMain, own)
		}
		in.Nodes[0].Head.Cores = 8
		f := featuresOf(in)
		if _, is := dataLoading(&f); is != want {
			t.Errorf("a program that uses %.1f of 8 full cores loads data: %v", own, is)
		}
	}
}
