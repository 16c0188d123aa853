package diagnose

import (
	"testing"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
)

// saver returns two minutes of telemetry of a program on two cores. Its receipt shows 12 saves of 3 s each, uploads
// included. The program writes the given number of bytes per second, and its steps continue during a save.
func saver(written float64) Input {
	in := Input{Job: "train", Account: Account{Checkpoints: 12, SaveSeconds: new(3.0)}, Nodes: []Node{{}}}
	in.Nodes[0].Head = telemetry.Head{Cores: 2, Memory: 8 << 30}
	for i := range 12 {
		b := telemetry.Bucket{Start: int64(i) * 10, Width: 10, Covered: 10}
		for m, v := range map[telemetry.Metric]float64{telemetry.CPU: 1, telemetry.TaskCPU: 1.9, telemetry.TaskMain: 1.9,
			telemetry.TaskMainBlocked: 0.05, telemetry.TaskSteps: 4, telemetry.TaskStalled: 0, telemetry.RunQueue: 2,
			telemetry.TaskWriteCallBytes: written, telemetry.TaskWriteCalls: 1 + written/(1<<20)} {
			b.Set(m, v)
		}
		in.Nodes[0].Buckets = append(in.Nodes[0].Buckets, b)
	}
	return in
}

// The time of a save on the receipt includes its upload, during which the program goes on. Small saves do not slow it
// down, however long their uploads take; large ones do while it writes them.
func TestCheckpointing_IsNotTheUpload(t *testing.T) {
	for written, want := range map[float64]bool{0: false, 10: false, 1 << 20: false, 100 << 20: true} {
		named := false
		for _, c := range Diagnose(saver(written)).Causes {
			named = named || c.Class == class.Checkpointing
		}
		if named != want {
			t.Errorf("a program that writes %.0f bytes a second saves too often: %v", written, named)
		}
	}
}

// Workers that send single samples through pipes read and write thousands of times a second. They neither log nor read
// small files.
func TestDataLoading_IsManySmallMessages(t *testing.T) {
	in := saver(0)
	in.Account = Account{}
	for i := range in.Nodes[0].Buckets {
		b := &in.Nodes[0].Buckets[i]
		for m, v := range map[telemetry.Metric]float64{telemetry.TaskCPU: 1.6, telemetry.TaskMain: 0.9,
			telemetry.TaskMainBlocked: 0.1, telemetry.TaskSystem: 0.5, telemetry.TaskWriteCalls: 1541,
			telemetry.TaskWriteCallBytes: 1541 * 48, telemetry.TaskReadCalls: 2614, telemetry.TaskReadCallBytes: 2614 * 25} {
			b.Set(m, v)
		}
	}
	for _, c := range Diagnose(in).Causes {
		if c.Class != class.DataLoading {
			t.Errorf("%s: %s", c.Class, c.Evidence)
		}
	}
	if len(Diagnose(in).Causes) != 1 {
		t.Error("the messages are no cause")
	}
}

// A program that has reported one step works on its second one: its figures count.
func TestDiagnose_CountsTheTimeAfterTheFirstStep(t *testing.T) {
	in := saver(0)
	in.Live = true
	for i := range in.Nodes[0].Buckets {
		b := &in.Nodes[0].Buckets[i]
		b.Set(telemetry.TaskSteps, 0)
		if i < 3 {
			b.V[telemetry.TaskSteps] = nil
		}
	}
	r := Diagnose(in)
	if r.Phases != (Phases{SetUp: 30, Work: 90}) || len(r.Use) == 0 || r.Note != "" {
		t.Errorf("phases %+v, use %v, note %q", r.Phases, r.Use, r.Note)
	}
}

// The memory of a program that has ended became free within its last ten seconds. It leaked all the same.
func TestMemoryLeak_IgnoresTheEndOfTheProgram(t *testing.T) {
	for end, live := range map[float64]bool{0.5: false, 1: true} {
		in := saver(0)
		in.Account, in.Live = Account{}, live
		for i := range in.Nodes[0].Buckets {
			in.Nodes[0].Buckets[i].Set(telemetry.TaskMemory, (1+float64(i))*(150<<20))
		}
		in.Nodes[0].Buckets[11].Set(telemetry.TaskMemory, 12*end*(150<<20))
		if r := Diagnose(in); len(r.Causes) != 1 || r.Causes[0].Class != class.Leak {
			t.Errorf("live: %v, causes: %+v", live, r.Causes)
		}
	}
}
