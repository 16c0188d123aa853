package decimal_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"scrimp/internal/lib/decimal"
	_ "scrimp/internal/test/sameseed"
)

func TestParse_ReadsAndWritesExactly(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "-0": "0", "+.5": "0.5", "7.": "7", "1.2500": "1.25", "1.2e-05": "0.000012",
		"1E3": "1000", "-12.34e1": "-123.4", "0.10000000000000000000000000000001": "0.10000000000000000000000000000001"} {
		d, err := decimal.Parse(text)
		if err != nil || d.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "-", ".", "1e", "e5", "1e999999999", "1,5", "0x1p4", "NaN", "inf", "1_000", "--1", "1 ", "=1+1"} {
		if d, err := decimal.Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

// Sums agree with fractions of math/big, whatever the digits.
func TestArithmetic_AgreesWithFractions(t *testing.T) {
	number := rapid.StringMatching(`-?[0-9]{1,30}(\.[0-9]{1,30})?(e-?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := decimal.Parse(a)
		y, _ := decimal.Parse(b)
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		for _, op := range []struct {
			got  decimal.Decimal
			want *big.Rat
		}{{x.Add(y), new(big.Rat).Add(p, q)}, {x.Sub(y), new(big.Rat).Sub(p, q)}, {x.Neg(), new(big.Rat).Neg(p)}} {
			got, ok := new(big.Rat).SetString(op.got.String())
			if !ok || got.Cmp(op.want) != 0 {
				t.Fatalf("%s and %s: got %v, want %v", a, b, op.got, op.want)
			}
		}
		if x.Cmp(y) != p.Cmp(q) || x.Sign() != p.Sign() {
			t.Fatalf("%s and %s compare as %d", a, b, x.Cmp(y))
		}
	})
}
