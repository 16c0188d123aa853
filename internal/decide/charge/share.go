package charge

import (
	"math/big"
	"time"

	"scrimp/internal/lib/money"
)

// share returns the cost of the first d of a span that costs a in total, truncated towards zero. The differences of
// consecutive shares add up to a exactly.
func share(a money.Amount, d, whole time.Duration) money.Amount {
	if d == whole {
		return a
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(d)))
	part, _ := money.FromBig(n.Quo(n, big.NewInt(int64(whole)))) // at most a
	return part
}
