package fair

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The decay of an amount of 64 bits equals that with whole numbers of any size, to the last digit, because a log is
// replayed with either.
func TestHalved_EqualsTheExactDecay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := uint64(rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount"))
		part := rapid.Uint64Range(0, 1<<fractionBits-1).Draw(t, "part of a half-life")
		whole := time.Duration(rapid.IntRange(0, 200).Draw(t, "half-lives"))
		want := new(big.Int).SetUint64(n)
		for i, root := range roots {
			if part>>(fractionBits-1-i)&1 == 1 {
				want.Rsh(want.Mul(want, root), rootBits)
			}
		}
		if want.Rsh(want, uint(whole)); halved(n, part, whole) != want.Uint64() {
			t.Fatalf("%d after %d and %d/2^20 half-lives: %d, want %v", n, whole, part, halved(n, part, whole), want)
		}
	})
}
