package focus

import (
	"cmp"
	"math/big"
	"strings"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
)

// hours and charges are the units of quantities. A charge without an hourly price has quantity one and its amount
// as price.
const (
	hours   = "Hours"
	charges = "Charges"
)

// places is the number of decimals of a quantity. With so many, quantity × price differs from the cost by less than
// 1e-12 at any price.
const places = 18

// amounts holds the numbers of a row as exact decimals.
type amounts struct {
	priced                                                     bool
	cost, quantity, consumed, unit, price, listPrice, listCost string
}

// amountsOf chooses the quantity so that quantity × price is the cost. It is the machine time up to the rounding of
// the ledger's last digit (1e-12). The quantity is rounded away from zero, so the product is never below the cost,
// and both round to the same amount.
//
// Example: 90 s at $0.9731 per hour cost $0.0243275 = 0.025 × 0.9731.
func amountsOf(c *charge.Charge) amounts {
	rate := big.NewInt(int64(c.Price.Rate))
	total := Number(c.Amount.String())
	if _, extra := ledger.Extra(c.Rule); extra { // tax has no quantity, and a credit none of its own
		return amounts{cost: total, listCost: total}
	}
	if !c.Timed || !c.Price.Known || rate.Sign() == 0 {
		one, price := "1.0", total
		if c.Amount.Sign() < 0 {
			one, price = "-1.0", Number(c.Amount.Neg().String())
		}
		return amounts{cost: total, quantity: one, consumed: one, unit: charges, price: price, listPrice: price,
			listCost: total}
	}
	q, rest := new(big.Int).QuoRem(new(big.Int).Mul(c.Amount.Big(), tenToPlaces), rate, new(big.Int))
	if rest.Sign() != 0 {
		q.Add(q, big.NewInt(int64(rest.Sign())))
	}
	spent := new(big.Int).Quo(new(big.Int).Mul(big.NewInt(int64(c.Time)), tenToPlaces), hour)
	if c.Amount.Sign() < 0 {
		spent.Neg(spent)
	}
	a := amounts{priced: true, cost: total, quantity: decimal(q, places), consumed: decimal(spent, places), unit: hours,
		price: Number(c.Price.Rate.String())}
	a.listPrice, a.listCost = a.price, total
	if c.ListPrice.Known {
		a.listPrice = Number(c.ListPrice.Rate.String())
		cost := new(big.Int).Mul(q, big.NewInt(int64(c.ListPrice.Rate))) // in units of 1e-30, truncated to 1e-18
		a.listCost = decimal(cost.Quo(cost, tenTo12), places)
	}
	return a
}

func tenTo(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// Powers of ten; read-only.
var (
	tenTo12     = tenTo(12)
	tenToPlaces = tenTo(places)
	hour        = big.NewInt(3600e9)
)

// ratio returns part / whole with twelve decimals, rounded to nearest.
func ratio(part, whole int64) string {
	n := new(big.Int).Mul(big.NewInt(part), tenTo12)
	n.Add(n, big.NewInt(whole/2))
	return decimal(n.Quo(n, big.NewInt(whole)), 12)
}

// decimal formats n · 10^-places.
func decimal(n *big.Int, places int) string {
	digits := new(big.Int).Abs(n).String()
	if len(digits) <= places {
		digits = strings.Repeat("0", places+1-len(digits)) + digits
	}
	at := len(digits) - places
	text := digits[:at] + "." + cmp.Or(strings.TrimRight(digits[at:], "0"), "0")
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}

// Number adds a decimal to a whole number, so that no loader infers an integer column.
func Number(number string) string {
	if strings.Contains(number, ".") {
		return number
	}
	return number + ".0"
}

// ID returns name, prefixed with of and a hyphen if a loader may read it as a number, a date, a missing value or a
// formula.
func ID(of, name string) string {
	if charge.Misread(name) {
		return of + "-" + name
	}
	return name
}
