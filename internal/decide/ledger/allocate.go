package ledger

import (
	"math/big"
	"slices"

	"scrimp/internal/lib/money"
)

// Allocate splits a shared cost among owners by weight: seconds used, bytes stored, money spent. Each part is
// total·weight/sum, truncated towards zero at 1e-12 units. The remaining units go one each to the parts that lost
// the most by truncation (largest remainder), the earlier part first among equals. So the parts add up to the total
// exactly, no part is off by a unit or more, and a weight of zero pays nothing. A credit (negative total) splits
// like a cost.
//
// It returns false if nobody can pay because no weight is positive. That is not a cost of zero: the caller books it
// as nobody's. It panics on a negative weight.
//
// Example: $0.000000000010 among the weights 1, 1, 1 gives 4, 3 and 3 units.
func Allocate(total money.Amount, weights []*big.Int) ([]money.Amount, bool) {
	sum := new(big.Int)
	for _, w := range weights {
		if w.Sign() < 0 {
			panic("ledger: a negative weight: " + w.String())
		}
		sum.Add(sum, w)
	}
	if sum.Sign() == 0 {
		return nil, false
	}
	whole := total.Big()
	parts, lost, left := make([]*big.Int, len(weights)), make([]*big.Int, len(weights)), new(big.Int).Set(whole)
	order := make([]int, len(weights))
	for i, w := range weights {
		parts[i], lost[i] = new(big.Int).QuoRem(new(big.Int).Mul(whole, w), sum, new(big.Int))
		left.Sub(left, parts[i])
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return lost[y].CmpAbs(lost[x]) })
	one := big.NewInt(int64(left.Sign()))
	for i := 0; left.Sign() != 0; i++ { // fewer than the parts that lost something
		parts[order[i]].Add(parts[order[i]], one)
		left.Sub(left, one)
	}
	out := make([]money.Amount, len(parts))
	for i, p := range parts {
		out[i], _ = money.FromBig(p) // cannot fail: no larger than total
	}
	return out, true
}
