package reconcile

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
)

// gap splits the billed minus our amount. The parts are exact: price takes the rest after time.
func (b *Books) gap(f *found, ours decimal.Decimal) Gap {
	g := Gap{Instance: f.Instance, Job: f.Job, Currency: f.Currency, Ours: ours, Billed: f.billed, Gap: f.billed.Sub(ours),
		Parts: f.parts, Lines: f.lines, By: strings.Join(slices.Sorted(maps.Keys(f.by)), "+"), Notes: f.notes}
	if f.OtherCost.Sign() != 0 {
		g.Parts[Other] = g.Parts[Other].Sub(f.OtherCost)
	}
	left := f.usage.Sub(f.Cost)
	if f.timed && f.untimed == 0 && f.Hours.Sign() > 0 && f.Plain.Sign() > 0 {
		// The bill's hours include a minimum charge, and so does the cost.
		if at := times(f.hours, f.Plain, f.Hours).Sub(f.Cost); size(at).Cmp(b.least(f.lines)) > 0 {
			g.Parts[Time], left = at, left.Sub(at)
		}
	}
	p := Price
	if size(left).Cmp(b.least(f.lines)) <= 0 {
		p = Rounding
	}
	g.Parts[p] = g.Parts[p].Add(left)
	for p, a := range g.Parts {
		if a.Sign() == 0 {
			delete(g.Parts, p)
		}
	}
	return g
}

// least returns half of the bill's last decimal for each line.
func (b *Books) least(lines int) decimal.Decimal {
	d, _ := decimal.Parse(fmt.Sprintf("%de-%d", 5*lines, min(b.places, 9)+1)) // digits and an exponent
	return d
}

// times returns a · b / c, truncated at 1e-12.
func times(a, b, c decimal.Decimal) decimal.Decimal {
	x, y, z := fraction(a), fraction(b), fraction(c)
	r := x.Mul(x, y)
	r.Quo(r, z)
	n := new(big.Int).Mul(r.Num(), big.NewInt(1e12))
	cut, ok := money.FromBig(n.Quo(n, r.Denom()))
	if !ok {
		return decimal.Decimal{}
	}
	return decimal.OfAmount(cut)
}

func fraction(d decimal.Decimal) *big.Rat {
	r, _ := new(big.Rat).SetString(d.String()) // a decimal is a fraction
	return r
}
