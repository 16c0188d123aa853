package server

import "testing"

// A small heap may grow to three times its size until it is collected, and a large one to twice its size.
func TestGrowth_IsLargerForSmallHeaps(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 200, 100 << 20: 200, 256 << 20: 100, 8 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d bytes may grow by %d %%", live, got)
		}
	}
}
