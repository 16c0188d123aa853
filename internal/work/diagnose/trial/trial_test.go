package trial

import (
	"testing"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/series"
)

// measured returns a machine of 16 cores and 64 GiB whose program used 2.5 cores, 10 GiB and the first of two GPUs.
func measured(gpu string) Facts {
	b := telemetry.Bucket{Start: 0, Width: 10, Covered: 10}
	b.V[telemetry.TaskCPU] = []telemetry.Value{telemetry.Exactly(2.5)}
	b.V[telemetry.TaskMemory] = []telemetry.Value{telemetry.Exactly(10 << 30)}
	b.V[telemetry.GPU] = []telemetry.Value{telemetry.Exactly(0.9), telemetry.Unknown}
	head := telemetry.Head{Cores: 16, Memory: 64 << 30}
	if gpu != "" {
		head.GPUs = []telemetry.Device{{Index: 0, Name: gpu}, {Index: 1, Name: gpu}}
	}
	return Facts{Job: "train", Nodes: []series.Node{{Head: head, Buckets: []telemetry.Bucket{b}}}}
}

// A cause whose change is a field of the job file has a command that tries it, if the figures are known.
func TestTry_NamesACommandWhereAFieldTriesTheChange(t *testing.T) {
	for name, want := range map[class.Class]string{
		class.Oversubscription: "scrimp ab train --set env.OMP_NUM_THREADS=16 --set env.MKL_NUM_THREADS=16",
		class.OversizedCPU:     "scrimp ab train --set resources.cpus=4",
		class.OversizedMemory:  "scrimp ab train --set resources.memory=13GiB",
		class.MemoryPressure:   "scrimp ab train --set resources.memory=128GiB",
		class.OversizedGPU:     "scrimp ab train --set resources.accelerator=L4:2",
		class.UnusedGPU:        "scrimp ab train --set resources.accelerator=A100:1",
		class.IdleAfter:        "scrimp ab train --set idle=10m",
	} {
		in := measured("NVIDIA A100-SXM4-80GB")
		if got := Of(name, &in); got == nil || *got != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
		nothing := Facts{Job: "train"}
		if got := Of(name, &nothing); got != nil && name != class.IdleAfter {
			t.Errorf("%s: %s, although nothing was measured", name, *got)
		}
		if got := Of(name, &Facts{}); got != nil {
			t.Errorf("%s: %s, although nobody knows the job", name, *got)
		}
	}
	for _, gpu := range []string{"", "NVIDIA GeForce RTX 4090", "Tesla T4"} {
		in := measured(gpu)
		if got := smallerGPU(&in); got != nil {
			t.Errorf("%q: %s", gpu, *got)
		}
	}
	if in := measured("NVIDIA H100 80GB HBM3"); *smallerGPU(&in) != "scrimp ab train --set resources.accelerator=A100:2" {
		t.Errorf("H100: %s", *smallerGPU(&in))
	}
	for _, c := range class.All() {
		if tries[c] == nil && class.Group(c) == "resources" && c != class.Straggler && c != class.Communication {
			t.Errorf("%s is about resources and has no command", c)
		}
	}
}
