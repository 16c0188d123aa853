package charge

import (
	"math/big"
	"time"

	"scrimp/internal/lib/money"
)

// share is what the first d of a whole span cost that cost a in all, cut off towards zero: the shares of all cuts of
// the span, each less the one before it, add up to a exactly.
func share(a money.Amount, d, whole time.Duration) money.Amount {
	if d == whole {
		return a
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(d)))
	part, _ := money.FromBig(n.Quo(n, big.NewInt(int64(whole)))) // no larger than a
	return part
}
