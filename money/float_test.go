package money_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"scrimp/money"
)

// Float is the nearest float64 of the exact quotient, and Micros are the exact quotient and remainder, for small and large
// amounts alike.
func TestFloatAndMicros_EqualExactDivision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	million, units := big.NewInt(1_000_000), big.NewInt(1_000_000_000_000)
	for range 20_000 {
		n := big.NewInt(int64(rng.Uint64() >> rng.IntN(64)))
		if n.Mul(n, big.NewInt(1+rng.Int64N(3)*rng.Int64N(1e9))); rng.IntN(2) == 0 {
			n.Neg(n)
		}
		a, ok := money.FromBig(n)
		if !ok {
			continue
		}
		if want, _ := new(big.Rat).SetFrac(n, units).Float64(); a.Float() != want {
			t.Fatalf("%v: %v, want %v", n, a.Float(), want)
		}
		whole, rest := new(big.Int).QuoRem(n, million, new(big.Int))
		micros, picos, ok := a.Micros()
		if ok != whole.IsInt64() || ok && (micros != whole.Int64() || picos != rest.Int64()) {
			t.Fatalf("%v: %d and %d, %v", n, micros, picos, ok)
		}
	}
}
