package replay

import (
	"fmt"
	"math/bits"
	"reflect"
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/test/lane"
)

// near reports whether two costs are equal up to truncation: a unit of each machine's cost.
func near(a, b money.Amount, machines int) bool {
	off := a.Sub(b)
	if off.Sign() < 0 {
		off = off.Neg()
	}
	return off.Cmp(money.Picos(int64(machines))) <= 0
}

// A gang that always loses all of its machines together costs n times one machine, run by run, under every rule, with
// the same interruptions and launches: prices, guard and odds apply to the whole gang.
func TestSingle_GangLostTogetherCostsNTimesOneMachine(t *testing.T) {
	mind := plan.NewPlanner()
	runs := generated(lane.Pick(2, 12))
	for _, rule := range []policy.Rule{policy.OnDemand, policy.Greedy, policy.UniformProgress, policy.Default} {
		for i, one := range runs {
			want := Single(one, mind, rule, true)
			for _, nodes := range []int{2, 8} {
				got := Single(tick.OnNodes(runs[i:i+1], nodes, false)[0], mind, rule, true)
				if got.Cost != tick.Times(want.Cost, nodes) || got.Missed != want.Missed || got.Interruptions != want.Interruptions ||
					got.Launches != want.Launches || !reflect.DeepEqual(got.Held, want.Held) {
					t.Errorf("%s, window %d on %d machines: $%.3f, %d interruptions, %d launches; on one $%.3f, %d, %d", rule, i,
						nodes, got.Cost.Float(), got.Interruptions, got.Launches, want.Cost.Float(), want.Interruptions, want.Launches)
				}
			}
		}
	}
}

// The same over zones with live prices and checkpoint transfers.
func TestZones_GangCostsNTimesOneMachine(t *testing.T) {
	for _, looks := range []bool{false, true} {
		runs := generatedZones(lane.Pick(2, 12), looks)
		for i, r := range multizone.OnNodes(runs, 4, false) {
			for _, rule := range []policy.Rule{policy.UniformProgress2, policy.Default} {
				one, all := Zones(&runs[i], plan.NewPlanner(), rule, true), Zones(&r, plan.NewPlanner(), rule, true)
				if !near(all.Cost, tick.Times(one.Cost, 4), 10_000) || all.Missed != one.Missed || all.Carries != one.Carries ||
					!reflect.DeepEqual(all.Held, one.Held) {
					t.Errorf("%s, run %d: $%.3f, %d carries; on one machine $%.3f, %d", rule, i, all.Cost.Float(), all.Carries,
						one.Cost.Float(), one.Carries)
				}
			}
		}
	}
}

// When machines are lost one at a time, the core costs the same as a plain loop without machines: all pay after the
// loss, restart with the replacement, and nothing else changes.
func TestSingle_GangLosingMachinesCostsSameAsPlainLoop(t *testing.T) {
	lost := 0
	for _, b := range []tick.Baseline{"on-demand", "greedy", "uniform-progress", "uniform-progress-2"} {
		for i, r := range tick.OnNodes(generated(16), 4, true) {
			want, got := r.Play(b.Make(r.Job)), Single(r, plan.NewPlanner(), policy.Rule(b), false)
			if !near(want.Cost, got.Cost, 4*(got.Launches+1)) || got.Missed != want.Missed || got.Interruptions != want.Lost {
				t.Errorf("%s, window %d: the core costs $%.6f (missed %v, %d lost), the plain loop $%.6f (missed %v, %d lost)", b, i,
					got.Cost.Float(), got.Missed, got.Interruptions, want.Cost.Float(), want.Missed, want.Lost)
			}
			lost += got.Interruptions
		}
	}
	if lost < 100 {
		t.Errorf("%d interruptions in all: nothing was lost", lost)
	}
}

// A gang meets every deadline that one machine meets, also with losses one at a time.
func TestSingle_GangMeetsDeadlineOfOneMachine(t *testing.T) {
	for _, alone := range []bool{false, true} {
		for i, r := range tick.OnNodes(generated(lane.Pick(3, 24)), 8, alone) {
			if got := Single(r, plan.NewPlanner(), policy.Default, false); got.Missed {
				t.Errorf("window %d, lost alone %v: it is late", i, alone)
			}
		}
		for i, r := range multizone.OnNodes(generatedZones(lane.Pick(2, 12), false), 8, alone) {
			if got := Zones(&r, plan.NewPlanner(), policy.Default, false); got.Missed {
				t.Errorf("zones %d, lost alone %v: it is late", i, alone)
			}
		}
	}
}

// Individual losses occur at the trace's own rate for each machine but the first, and more machines only add losses.
func TestLosses_OccurAtTraceRate(t *testing.T) {
	want, alone := 0.0, [tick.MostNodes]int{}
	for i := range lane.Pick(400, 1_000) {
		up := tick.Drawn(uint64(i), 11, 400)
		ends, stays := 0.0, 0.0
		for n := 1; n < len(up); n++ {
			switch {
			case up[n-1] && up[n]:
				stays++
			case up[n-1]:
				ends++
			}
		}
		if ends > 0 {
			want += stays * ends / (stays + ends) // without spot nothing more can be lost
		}
		name := fmt.Sprint("drawn/", i)
		four, most := tick.Losses(name, up, 4), tick.Losses(name, up, tick.MostNodes)
		for n := range up {
			if four.At(n) != most.At(n)&0xf || most.At(n)&1 != 0 || most.At(n) != 0 && !up[n] {
				t.Fatalf("market %d, tick %d: %b of four, %b of all, spot %v", i, n, four.At(n), most.At(n), up[n])
			}
			for m := most.At(n); m != 0; m &= m - 1 {
				alone[bits.TrailingZeros16(m)]++
			}
		}
	}
	for n, got := range alone[1:] {
		if share := float64(got) / want; share < 0.95 || share > 1.05 {
			t.Errorf("node %d was lost %d times by itself, at the rate at which spot ends it would be %.0f times", n+1, got, want)
		}
	}
	if tick.Losses("a", []bool{true, true, true}, 8) != nil || tick.Losses("a", tick.Drawn(1, 11, 400), 1).At(3) != 0 {
		t.Error("one machine, or one of a trace without an end, is lost by itself")
	}
}

// deaf is the default policy without what was learned of gangs.
type deaf struct{ zonechoice.Foresight }

func (d *deaf) Poll(v zonechoice.View) int { v.Losses = 0; return d.Foresight.Poll(v) }
func (d *deaf) Decide(v zonechoice.View) zonechoice.Choice {
	v.Losses = 0
	return d.Foresight.Decide(v)
}

// Where a gang of 16 also loses machines one at a time, it is interrupted more often than one machine. It learns that
// from its own losses: it decides otherwise than without, is in time and pays less. The core and the plain loop learn
// the same. Machines that are lost together teach nothing.
func TestZones_GangLearnsItsLosses(t *testing.T) {
	runs := generatedZones(lane.Pick(12, 120), false)
	var core, with, without money.Amount
	differ := 0
	for i, r := range multizone.OnNodes(runs, 16, true) {
		got := Zones(&r, plan.NewPlanner(), policy.Default, false)
		want, unlearned := r.Play(&zonechoice.Foresight{Job: &r.Job}), r.Play(&deaf{zonechoice.Foresight{Job: &r.Job}})
		if got.Missed || want.Missed {
			t.Errorf("run %d: late in the core %v, in the plain loop %v", i, got.Missed, want.Missed)
		}
		if want.Cost != unlearned.Cost {
			differ++
		}
		core, with, without = core.Add(got.Cost), with.Add(want.Cost), without.Add(unlearned.Cost)
	}
	if differ < len(runs)/4 || with.Cmp(without) >= 0 || core.Cmp(without) >= 0 {
		t.Errorf("%d of %d runs differ: $%.2f in all, in the core $%.2f, and $%.2f without learning", differ, len(runs),
			with.Float(), core.Float(), without.Float())
	}
	r := multizone.OnNodes(runs[:1], 16, false)[0]
	if a, b := r.Play(&zonechoice.Foresight{Job: &r.Job}), r.Play(&deaf{zonechoice.Foresight{Job: &r.Job}}); a != b {
		t.Errorf("machines lost together: %+v, and without learning %+v", a, b)
	}
}
