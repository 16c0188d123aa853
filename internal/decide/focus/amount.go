package focus

import (
	"cmp"
	"math/big"
	"strings"

	"scrimp/internal/decide/charge"
)

// hours and charges are the units of quantities. A charge that has no price of an hour is one at its amount.
const (
	hours   = "Hours"
	charges = "Charges"
)

// places is how many decimals a quantity has: so many that its product with the price differs from the cost by less
// than 1e-12, whatever the price.
const places = 18

// amounts are the numbers of a row, exact decimals.
type amounts struct {
	priced                                                     bool
	cost, quantity, consumed, unit, price, listPrice, listCost string
}

// amountsOf chooses the quantity so that quantity × price is the cost: the machine time, but for what the ledger's last
// digit (1e-12) rounds. The quantity is rounded away from zero, so that the product is never below the cost, and both
// round to the same.
//
// 90 s at $0.9731 an hour cost $0.0243275: 0.025 × 0.9731.
func amountsOf(c *charge.Charge) amounts {
	rate := big.NewInt(int64(c.Price.Rate))
	total := Number(c.Amount.String())
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
		cost := new(big.Int).Mul(q, big.NewInt(int64(c.ListPrice.Rate))) // of 1e-30, cut off at 1e-18
		a.listCost = decimal(cost.Quo(cost, tenTo12), places)
	}
	return a
}

func tenTo(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// Powers of ten, which nothing changes.
var (
	tenTo12     = tenTo(12)
	tenToPlaces = tenTo(places)
	hour        = big.NewInt(3600e9)
)

// ratio is part of whole with twelve decimals, rounded to the nearest.
func ratio(part, whole int64) string {
	n := new(big.Int).Mul(big.NewInt(part), tenTo12)
	n.Add(n, big.NewInt(whole/2))
	return decimal(n.Quo(n, big.NewInt(whole)), 12)
}

// decimal writes n times 10 to the power of -places.
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

// Number gives a whole number a decimal, so that no loader takes the column for one of integers.
func Number(number string) string {
	if strings.Contains(number, ".") {
		return number
	}
	return number + ".0"
}

// ID is a name that no loader takes for a number, a date, an absent value or a formula: what might be one begins with
// what it is of.
func ID(of, name string) string {
	if charge.Misread(name) {
		return of + "-" + name
	}
	return name
}
