package serving

import (
	"math/big"

	"scrimp/internal/lib/money"
)

// PerMillion returns a sum by millions of n, cut off below 1e-12, and false where n is zero.
func PerMillion(sum money.Amount, n int64) (money.Amount, bool) {
	if n == 0 {
		return money.Amount{}, false
	}
	v := new(big.Int).Mul(sum.Big(), big.NewInt(1e6))
	return settled(v.Quo(v, big.NewInt(n))), true
}

// settled turns picos into an amount. Traces, prices and machines are bounded, so that every sum fits.
func settled(n *big.Int) money.Amount {
	a, ok := money.FromBig(n)
	if !ok {
		a, _ = money.FromBig(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 126), big.NewInt(1)))
	}
	return a
}
