package budget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// After any additions and removals, the minimum is that of the present elements, and removed elements are freed
// soon.
func TestSet_KnowsItsMinimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var n names
	there := map[string]bool{}
	for range 20_000 {
		name := fmt.Sprint(rng.IntN(50))
		by := 1
		if there[name] || rng.IntN(3) == 0 {
			by = -1
		}
		n.change(name, by)
		if delete(there, name); by > 0 {
			there[name] = true
		}
		var names []string
		for name := range there {
			names = append(names, name)
		}
		want := ""
		if len(names) > 0 {
			want = slices.Min(names)
		}
		if n.least() != want {
			t.Fatalf("of %v the least is %q", names, n.least())
		}
		if len(n.order) > 2*50+17 {
			t.Fatalf("%d names are kept of %d", len(n.order), len(there))
		}
	}
}

// BenchmarkLeastOfMany removes the minimum of a million elements and adds it again.
func BenchmarkLeastOfMany(b *testing.B) {
	var n names
	for i := range 1_000_000 {
		n.change(fmt.Sprintf("j-%07d", i), 1)
	}
	for b.Loop() {
		n.change("j-0000000", -1)
		n.change("j-0000000", 1)
	}
}
