package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// However jobs arrive, end and are interrupted, a reservation never runs more of them than it has machines, and none
// before its start or after its end. All jobs end. The jobs' bookings plus the unused part equal exactly what was paid
// by then. (The stage checks all of it.)
func TestScenario_ReservedMachinesAreSharedAndAddUp(t *testing.T) {
	moved, kept := 0, 0
	for seed := range uint64(lane.Pick(4, 100)) {
		rng := rand.New(rand.NewPCG(seed, 0x4e5))
		var b strings.Builder
		fmt.Fprintf(&b, "config max_running=%d\nmarket a spot=$1.00 on-demand=$3.00\n", 2+rng.IntN(3))
		fmt.Fprintf(&b, "market b reserved=$%d.00 count=%d from=%dm until=%dm\n", 1+rng.IntN(3), 1+rng.IntN(2), rng.IntN(90), 120+rng.IntN(600))
		for j := range 2 + rng.IntN(3) {
			work := 60 + rng.IntN(300)
			fmt.Fprintf(&b, "job j%d at=%dm work=%dm", j, rng.IntN(200), work)
			if rng.IntN(3) > 0 {
				fmt.Fprintf(&b, " deadline=%dm", work+30+rng.IntN(2*work))
			}
			fmt.Fprintf(&b, " priority=%s\n", []string{"normal", "normal", "low", "critical"}[rng.IntN(4)])
		}
		for at := rng.IntN(120); at < 900; at += 60 + rng.IntN(200) {
			fmt.Fprintf(&b, "at %dm interrupt a notice=%ds back=%dm\n", at, 120*rng.IntN(2), 10+rng.IntN(40))
		}
		b.WriteString("run until done\n")
		story, broken, err := tellStory(b.String())
		must.Do(t, err)
		if len(broken) > 0 || !strings.Contains(story, "agree with the provider's bills") {
			t.Fatalf("seed %d: %v\n%s%s", seed, broken, b.String(), story)
		}
		moved += strings.Count(story, "move_already_paid")
		kept += strings.Count(story, "(promised)")
	}
	if t.Logf("%d moves to what is paid for, kept for another %d times", moved, kept); moved == 0 || kept == 0 {
		t.Error("the seeds prove nothing")
	}
}
