package state

import (
	"math/rand/v2"
	"testing"

	"scrimp/internal/decide/ledger"
)

// The sum of hashes does not depend on the order, and minus undoes plus.
func TestArchiveSum_IsIndependentOfOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		list := make([]ledger.Hash, 1+rng.IntN(5))
		for i := range list {
			for n := range list[i] {
				list[i][n] = []byte{0, 1, 255, byte(rng.IntN(256))}[rng.IntN(4)]
			}
		}
		var sum, shuffled ledger.Hash
		for _, h := range list {
			sum = plus(sum, h)
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, h := range list {
			shuffled = plus(shuffled, h)
		}
		if sum != shuffled {
			t.Fatalf("%x in one order, %x in another", sum, shuffled)
		}
		for _, h := range list {
			sum = minus(sum, h)
		}
		if sum != (ledger.Hash{}) {
			t.Fatalf("%x is left when all were taken out", sum)
		}
	}
}
