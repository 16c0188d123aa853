package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"scrimp/internal/decide/policy"
)

// history draws the losses of attempts on that many nodes. With the probability alone, a loss takes one machine;
// otherwise it takes all.
func history(g policy.Gangs, rng *rand.Rand, nodes, losses int, alone float64) policy.Gangs {
	for range losses {
		lost := nodes
		if rng.Float64() < alone*float64(nodes)/(alone*float64(nodes)+1-alone) { // each machine has its own lone losses
			lost = 1
		}
		g = g.See(nodes, lost)
	}
	return g
}

// Machines that are always lost together count as one; machines that are always lost alone are lost nodes times as
// often. Without a history the prior decides.
func TestGangs_LearnTheShareOfLoneLosses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ alone, near float64 }{{0, 1}, {0.25, 4.75}, {1, 16}} {
		g := history(nil, rng, 16, 2000, c.alone)
		if got := g.Times(16, 0); math.Abs(got/c.near-1) > 0.1 {
			t.Errorf("a share of %v of lone losses: 16 machines are lost %.2f times as often as one, not about %.2f", c.alone, got,
				c.near)
		}
	}
	for _, n := range []int{1, 2, 16} {
		if together, alone := policy.Gangs(nil).Times(n, 0), policy.Gangs(nil).Times(n, 1); together != 1 || alone != float64(n) {
			t.Errorf("%d machines without a history: %v times, or %v", n, together, alone)
		}
	}
	// the example of docs/formulas.md
	if got := history(nil, rng, 16, 50, 1).Times(16, 0); math.Abs(got-15.35) > 0.01 {
		t.Errorf("16 machines lost one at a time 50 times: %.2f", got)
	}
	if got := history(nil, rng, 16, 50, 0).Times(16, 0); got != 1 {
		t.Errorf("16 machines lost together 50 times: %v", got)
	}
	if g := history(nil, rng, 4, 1, 1); g.Times(4, 0) > 2 || g.Times(4, 0) <= 1 {
		t.Errorf("one lone loss makes it %v times: little is known", g.Times(4, 0))
	}
	// What four machines show holds for eight until these have a history of their own.
	four := history(nil, rng, 4, 500, 1)
	if got := four.Times(8, 0); got < 7 {
		t.Errorf("four machines are always lost alone, and eight are lost %.2f times as often as one", got)
	}
	if got := history(four, rng, 8, 5000, 0).Times(8, 0); got > 4.1 {
		t.Errorf("eight are always lost together: %.2f times, not more than the 4 of four machines", got)
	}
}

// For any history, more machines are never lost less often, between 1 and n times as often as one, and not less often
// than their own losses show, shrunk towards all others.
func TestGangs_MoreMachinesAreNeverLostLessOften(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var g policy.Gangs
		for range rng.IntN(6) {
			g = history(g, rng, 2+rng.IntN(20), rng.IntN(60), rng.Float64())
		}
		before := g.Times(5, 0)
		last := 1.0
		for n := 1; n <= 32; n++ {
			got := g.Times(n, 0)
			if got < last-1e-12 || got < 1 || got > float64(n)+1e-9 {
				t.Fatalf("seed %d: %d machines are lost %v times as often as one, one fewer %v\n%v", seed, n, got, last, g)
			}
			last = got
			for _, x := range g {
				own := float64(x.Lost*x.Nodes) / float64(x.Machines)
				if x.Nodes == n && x.Lost > 200 && got < 0.9*own {
					t.Fatalf("seed %d: %d machines were lost %v times as often as one, and %v is learned", seed, n, own, got)
				}
			}
		}
		if g.See(5, 2); g.Times(5, 0) != before {
			t.Fatalf("seed %d: an observation changes an older history", seed)
		}
	}
}
