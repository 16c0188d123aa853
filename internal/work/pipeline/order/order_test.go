package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Each thing follows what it needs, and a circle is one.
func TestOf_FollowsNeedsOrNamesACircle(t *testing.T) {
	circles := 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		needs := make([][]int, 1+rng.IntN(8))
		for i := range needs {
			for j := range needs {
				if rng.IntN(8) == 0 {
					needs[i] = append(needs[i], j)
				}
			}
		}
		order, cycle := Of(len(needs), func(at int) []int { return needs[at] })
		if cycle != nil {
			circles++
			for i := range cycle[1:] {
				if !slices.Contains(needs[cycle[i]], cycle[i+1]) {
					t.Fatalf("seed %d: %v is no circle of %v", seed, cycle, needs)
				}
			}
			if order != nil || len(cycle) < 2 || cycle[0] != cycle[len(cycle)-1] {
				t.Fatalf("seed %d: order %v, circle %v", seed, order, cycle)
			}
			continue
		}
		at := make([]int, len(needs))
		for to, from := range order {
			at[from] = to
		}
		for i, list := range needs {
			for _, n := range list {
				if at[n] >= at[i] {
					t.Fatalf("seed %d: %v of %v", seed, order, needs)
				}
			}
		}
		if len(order) != len(needs) {
			t.Fatalf("seed %d: %v of %v", seed, order, needs)
		}
	}
	if circles == 0 || circles == 500 {
		t.Errorf("%d of 500 have a circle", circles)
	}
}
