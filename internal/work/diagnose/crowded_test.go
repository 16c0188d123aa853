package diagnose_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
)

// crowd returns the measurements of a program that gets the given share of the processors that it wants, because other
// programs have the rest: it waits in the run queue and is not blocked.
func crowd(in diagnose.Input, cores int, share float64) diagnose.Input {
	for n := range in.Nodes {
		for i := range in.Nodes[n].Buckets {
			b := &in.Nodes[n].Buckets[i]
			scale := func(m telemetry.Metric, by float64) {
				for i := range b.V[m] {
					b.V[m][i] = telemetry.Exactly(b.V[m][i].Mean * by)
				}
			}
			for _, m := range []telemetry.Metric{telemetry.TaskCPU, telemetry.TaskMain, telemetry.TaskSystem, telemetry.TaskMainBlocked,
				telemetry.TaskReadCalls, telemetry.TaskReadCallBytes, telemetry.TaskWriteCalls, telemetry.TaskWriteCallBytes} {
				scale(m, share)
			}
			b.Set(telemetry.CPU, 0.99)
			b.Set(telemetry.Idle, 0.01)
			b.Set(telemetry.IOWait, 0)
			b.Set(telemetry.RunQueue, float64(cores)/share)
		}
	}
	return in
}

// A healthy program that shares its processors with other programs has no cause of its own, however little of them it
// gets.
func TestDiagnose_NamesNoCauseForAHealthyProgramOnABusyMachine(t *testing.T) {
	for _, cores := range []int{2, 8} {
		for _, share := range []float64{0.9, 0.7, 0.5, 0.35, 0.2, 0.1} {
			t.Run(fmt.Sprintf("%d cores, share %.2f", cores, share), func(t *testing.T) {
				for seed := range uint64(20) {
					p := onCPU()
					p.machine(cores)
					p.useCores = 0.98 * float64(cores)
					r := diagnose.Diagnose(crowd(p.measured(rand.New(rand.NewPCG(seed, 3)), 300), cores, share))
					if len(r.Causes) > 0 {
						t.Fatalf("seed %d: %s: %s", seed, r.Causes[0].Class, r.Causes[0].Evidence)
					}
					if share < 0.3 && (r.Note == "" || !r.Busy) || share > 0.8 && r.Busy {
						t.Fatalf("seed %d: a busy machine is %t, and the note is %q", seed, r.Busy, r.Note)
					}
				}
			})
		}
	}
}
