package ledger

import (
	"math/big"
	"slices"

	"scrimp/internal/lib/money"
)

// Allocate splits a shared cost among owners by their weights: seconds used,
// bytes kept, money spent. Each part is total·weight/sum, cut off towards zero
// at 1e-12 units; the units that remain go one each to the parts that lost the
// most by the cut (largest remainder), the earlier of equals first. So the
// parts add to the whole exactly, no part is off by a unit or more,
// and a weight of zero pays nothing. A credit (total below zero) splits as the
// same cost would.
//
// It returns false where there is nobody to pay: no weight is above zero. That
// is not a cost of zero: the caller books it as nobody's. It panics on a
// negative weight.
//
// $0.000000000010 among weights 1, 1, 1 is 4, 3 and 3 units.
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
	for i := 0; left.Sign() != 0; i++ { // fewer than there are parts that lost something
		parts[order[i]].Add(parts[order[i]], one)
		left.Sub(left, one)
	}
	out := make([]money.Amount, len(parts))
	for i, p := range parts {
		out[i], _ = money.FromBig(p) // no larger than total
	}
	return out, true
}
