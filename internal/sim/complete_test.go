package sim

import (
	"math/big"
	"time"

	"scrimp/internal/decide/ledger"
)

// checkComplete verifies that each posting for machine time has its duration and price, that both yield its amount, and
// that the durations of a machine's postings add up to the paid time.
func (w *World) checkComplete() {
	seconds, most := map[string]time.Duration{}, 2.0
	if w.seats() > 0 { // the price of a part of a machine is rounded
		most = 3
	}
	for n, p := range w.postings {
		if p.Category != ledger.Compute {
			continue
		}
		if p.Provider == "" || p.Zone == "" || p.SKU == "" {
			w.breaks("complete: posting %d is of provider %q, zone %q, SKU %q", n, p.Provider, p.Zone, p.SKU)
		}
		if p.Quantity.IsZero() {
			if p.Rule == "" && p.Phase == ledger.Accrued {
				w.breaks("complete: posting %d of %v says of no time what it cost", n, p.Amount)
			}
			continue
		}
		span := p.End.Sub(p.Begin)
		if p.Quantity != ledger.Seconds(span) || p.Unit != ledger.SecondUnit || !p.Price.Known {
			w.breaks("complete: posting %d is about %v and %v %s at %v", n, span, p.Quantity, p.Unit, p.Price)
		}
		if off := offBy(p); off >= most {
			w.breaks("complete: posting %d: %v s at %v an hour are not %v: %.2f off", n, p.Quantity, p.Price.Rate, p.Amount, off)
		}
		w.saw("a posting about time")
		_, _, to := p.To.IsCost()
		_, _, from := p.From.IsCost()
		switch {
		case to && !from:
			seconds[p.Owner.Instance] += span
		case from && !to:
			seconds[p.Owner.Instance] -= span
			w.saw("time is taken back")
		default:
			w.saw("time that was posted gets its use")
		}
	}
	for _, id := range sortedKeys(w.instances) {
		i := w.m.State().Instance(id)
		if i == nil || i.Live() || i.Stray() || w.seats() > 0 || i.Until().IsZero() {
			continue
		}
		if paid := i.Until().Sub(i.From()); seconds[id] != paid {
			w.breaks("complete: %s was paid for %v, its postings are about %v", id, paid, seconds[id])
		}
	}
}

// offBy returns the difference between the amount and quantity × price, in units of 1e-12.
func offBy(p ledger.Posting) float64 {
	nanos := new(big.Int).Add(new(big.Int).Mul(big.NewInt(p.Quantity.Whole), big.NewInt(1e9)), big.NewInt(int64(p.Quantity.Nanos)))
	exact := new(big.Rat).SetFrac(nanos.Mul(nanos, big.NewInt(int64(p.Price.Rate))), big.NewInt(int64(time.Hour)))
	off, _ := exact.Sub(exact, new(big.Rat).SetInt(p.Amount.Big())).Float64()
	return max(off, -off)
}
