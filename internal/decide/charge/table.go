package charge

import (
	"cmp"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
)

// Table writes charges as rows that a spreadsheet opens. Amounts are exact; "" is unknown.
type Table struct{}

// cells are the columns of a Table.
var cells = []struct {
	name string
	of   func(*Charge) string
}{
	{"begin", func(c *Charge) string { return c.Begin.UTC().Format(time.RFC3339) }},
	{"end", func(c *Charge) string { return c.End.UTC().Format(time.RFC3339) }},
	{"team", func(c *Charge) string { return c.Owner.Team }},
	{"project", func(c *Charge) string { return c.Owner.Project }},
	{"user", func(c *Charge) string { return c.User }},
	{"job", func(c *Charge) string { return c.Owner.Job }},
	{"attempt", func(c *Charge) string { return c.Owner.Attempt }},
	{"group", func(c *Charge) string { return c.Owner.Group }},
	{"part", func(c *Charge) string { return c.Owner.Part }},
	{"provider", func(c *Charge) string { return c.Provider }},
	{"region", func(c *Charge) string { return c.Region }},
	{"zone", func(c *Charge) string { return c.Zone }},
	{"machine", func(c *Charge) string { return c.SKU }},
	{"instance", func(c *Charge) string { return c.Owner.Instance }},
	{"capacity", func(c *Charge) string { return string(c.Capacity) }},
	{"category", func(c *Charge) string { return string(c.Category) }},
	{"use", func(c *Charge) string { return string(c.Use) }},
	{"confidence", func(c *Charge) string { return string(c.Confidence()) }},
	{"rule", func(c *Charge) string { return c.Rule }},
	{"hours", (*Charge).hours},
	{"price_per_hour", func(c *Charge) string { return price(c.Price) }},
	{"list_price_per_hour", func(c *Charge) string { return price(c.ListPrice) }},
	{"cost", func(c *Charge) string { return c.Amount.String() }},
	{"currency", func(c *Charge) string { return string(c.Currency) }},
}

// Header is the names of the columns.
func (Table) Header() (names []string) {
	for _, c := range cells {
		names = append(names, c.name)
	}
	return names
}

// Row appends the cells of a charge to room.
func (Table) Row(room []string, c Charge) []string {
	for _, column := range cells {
		room = append(room, PlainCell(column.of(&c)))
	}
	return room
}

// Confidence is how sure the amount is: billed once the bill of the machine has come.
func (c *Charge) Confidence() ledger.Phase {
	if c.Billed {
		return ledger.Billed
	}
	return c.Phase
}

// hours are those of the machine time, to the microsecond.
func (c *Charge) hours() string {
	if !c.Timed {
		return ""
	}
	text := ledger.Quantity{Whole: int64(c.Time) / 3600e9, Nanos: int32(int64(c.Time) % 3600e9 / 3600)}.String()
	if c.Amount.Sign() < 0 {
		return "-" + text
	}
	return text
}

func price(p ledger.Price) string {
	if !p.Known {
		return ""
	}
	return p.Rate.String()
}

// PlainCell returns a text that no spreadsheet takes for a formula: one that begins like one begins with a quote.
// Numbers below zero stay numbers.
func PlainCell(s string) string {
	if s == "" || !strings.ContainsAny(s[:1], "=+-@\t\r|%") || s[0] == '-' && number(s[1:]) {
		return s
	}
	return "'" + s
}

func number(s string) bool {
	return strings.Trim(cmp.Or(s, "x"), "0123456789.") == "" && strings.Count(s, ".") < 2
}
