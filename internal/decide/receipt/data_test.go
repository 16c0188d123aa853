package receipt

import (
	"math/rand/v2"
	"testing"

	"scrimp/internal/lib/money"
)

// An unknown price is never zero: its bytes are counted, and no sum contains them.
func TestSumData_KeepsUnknownPricesApart(t *testing.T) {
	if SumData(nil) != nil {
		t.Error("no reads have a sum")
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var reads []DataRead
		var fetched, hits, unpriced, cost, saved int64 // amounts in 1e-9 dollars
		known := false
		for range 1 + rng.IntN(5) {
			d := DataRead{Bytes: rng.Int64N(1e9), Fetched: rng.Int64N(1e9), HitBytes: rng.Int64N(1e9)}
			fetched, hits = fetched+d.Fetched, hits+d.HitBytes
			if rng.IntN(2) == 0 {
				d.Price(new(money.Rate(7e12))) // $7 for 1e9 bytes: 7e-9 dollars a byte
				cost, saved, known = cost+7*d.Fetched, saved+7*d.HitBytes, true
			} else {
				unpriced += d.Fetched + d.HitBytes
			}
			reads = append(reads, d)
		}
		u := SumData(reads)
		if u.Fetched != fetched || u.HitBytes != hits || u.UnpricedFetched+u.UnpricedHits != unpriced ||
			(u.Cost != nil) != known || (u.Saved != nil) != known {
			t.Fatalf("seed %d: %+v", seed, u)
		}
		if known && (*u.Cost != money.Picos(cost*1000) || *u.Saved != money.Picos(saved*1000)) {
			t.Fatalf("seed %d: %v and %v, want %d and %d of 1e-9", seed, u.Cost, u.Saved, cost, saved)
		}
	}
}

func TestDataUse_TextNamesUnknownPrices(t *testing.T) {
	d := DataRead{Files: 3, Bytes: 3 << 30, Hits: 1, HitBytes: 1 << 30, Fetched: 2 << 30}
	if got, want := SumData([]DataRead{d}).Text(), "3GiB in 3 files brought in 0.0s, 1GiB from caches (1GiB of unknown "+
		"price), 2GiB read (2GiB of unknown price)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
