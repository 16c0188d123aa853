package egress_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
)

// The product of gigabytes and price, with fractions, cut off below a pico.
func TestCost_AgreesWithPlainFractions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		bytes, rate := rng.Int64N(1<<62)>>rng.IntN(60), money.Rate(rng.Int64N(1<<62)>>rng.IntN(60))
		exact := new(big.Rat).Mul(big.NewRat(bytes, 1e9), big.NewRat(int64(rate), 1))
		whole := new(big.Int).Quo(exact.Num(), exact.Denom())
		if got := egress.Cost(bytes, rate); got.Big().Cmp(whole) != 0 {
			t.Fatalf("%d bytes at %d: %s, want %s picos", bytes, rate, got, whole)
		}
	}
}

func TestFrom_TakesOwnChargesBeforeBuiltinOnes(t *testing.T) {
	o := egress.From(catalog.Catalog{}, "aws", "us-east-1")
	if o.Near == nil || o.Near.String() != "0.02" || o.Out == nil || o.Out.String() != "0.09" {
		t.Errorf("built in: %v and %v", o.Near, o.Out)
	}
	own := catalog.Catalog{Own: []catalog.TransferRate{
		{Provider: "aws", What: catalog.TransferOut, Price: 5e10, Currency: money.USD},
		{Provider: "aws", What: catalog.TransferRegion, Price: 5e10, Currency: "EUR"},
	}}
	o = egress.From(own, "aws", "us-east-1")
	if o.Out == nil || o.Out.String() != "0.05" || o.Near != nil {
		t.Errorf("own: %v and %v; euros are not converted", o.Near, o.Out)
	}
	if o = egress.From(own, "", "eu"); o.Near != nil || o.Out != nil {
		t.Errorf("an unknown provider has fares: %+v", o)
	}
}
