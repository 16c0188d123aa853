package charge

import (
	"math/big"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
)

// Table writes charges as rows for a spreadsheet. Costs are exact; an empty cell means unknown.
type Table struct{}

// cellKind is the type of a column.
type cellKind int

const (
	name  cellKind = iota // text that a spreadsheet must not misread
	value                 // a number or a time
)

// cell is a column of a Table.
type cell struct {
	header string
	kind   cellKind
	of     func(*Charge) string
}

// cells defines the columns of a Table.
var cells = []cell{
	{"begin", value, func(c *Charge) string { return c.Begin.UTC().Format(time.RFC3339) }},
	{"end", value, func(c *Charge) string { return c.End.UTC().Format(time.RFC3339) }},
	{"team", name, func(c *Charge) string { return c.Owner.Team }},
	{"project", name, func(c *Charge) string { return c.Owner.Project }},
	{"user", name, func(c *Charge) string { return c.User }},
	{"job", name, func(c *Charge) string { return c.Owner.Job }},
	{"attempt", name, func(c *Charge) string { return c.Owner.Attempt }},
	{"group", name, func(c *Charge) string { return c.Owner.Group }},
	{"part", name, func(c *Charge) string { return c.Owner.Part }},
	{"provider", name, func(c *Charge) string { return c.Provider }},
	{"region", name, func(c *Charge) string { return c.Region }},
	{"zone", name, func(c *Charge) string { return c.Zone }},
	{"machine", name, func(c *Charge) string { return c.SKU }},
	{"instance", name, func(c *Charge) string { return c.Owner.Instance }},
	{"capacity", name, func(c *Charge) string { return string(c.Capacity) }},
	{"category", name, func(c *Charge) string { return string(c.Category) }},
	{"use", name, func(c *Charge) string { return string(c.Use) }},
	{"confidence", name, func(c *Charge) string { return string(c.Confidence()) }},
	{"rule", name, func(c *Charge) string { return c.Rule }},
	{"hours", value, (*Charge).Hours},
	{"price_per_hour", value, func(c *Charge) string { return price(c.Price) }},
	{"list_price_per_hour", value, func(c *Charge) string { return price(c.ListPrice) }},
	{"cost", value, func(c *Charge) string { return c.Amount.String() }},
	{"currency", name, func(c *Charge) string { return string(c.Currency) }},
}

// Header returns the names of the columns.
func (Table) Header() (names []string) {
	for _, c := range cells {
		names = append(names, c.header)
	}
	return names
}

// Row appends the cells of a charge to room.
func (Table) Row(room []string, c Charge) []string {
	for _, column := range cells {
		text := column.of(&c)
		if column.kind == name {
			text = TextCell(text)
		}
		room = append(room, text)
	}
	return room
}

// Confidence returns how certain the amount is: billed once the provider billed the machine.
func (c *Charge) Confidence() ledger.Phase {
	if c.Billed {
		return ledger.Billed
	}
	return c.Phase
}

// Hours formats the machine time with as many decimals as bring hours × price within 1e-9 of the cost. A cost that
// is not time × price gets the fewest decimals.
func (c *Charge) Hours() string {
	if !c.Timed {
		return ""
	}
	const fewest, most = 9, 18
	cost, rate := c.Amount.Big(), big.NewInt(int64(c.Price.Rate))
	negative := cost.Sign() < 0
	cost.Abs(cost)
	first := ""
	for places := fewest; places <= most; places++ {
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
		n := new(big.Int).Mul(big.NewInt(int64(c.Time)), unit)
		n.Quo(n.Add(n, halfHour), hour)
		text := new(big.Rat).SetFrac(n, unit).FloatString(places)
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		if negative {
			text = "-" + text
		}
		off := new(big.Int).Sub(new(big.Int).Mul(n, rate), new(big.Int).Mul(cost, unit)) // in units of 1e-12 / unit
		if !c.Price.Known || off.CmpAbs(unit.Mul(unit, big.NewInt(spare))) < 0 {
			return text
		}
		if first == "" {
			first = text
		}
	}
	return first
}

var (
	hour     = big.NewInt(int64(time.Hour))
	halfHour = big.NewInt(int64(time.Hour) / 2)
)

func price(p ledger.Price) string {
	if !p.Known {
		return ""
	}
	return p.Rate.String()
}
