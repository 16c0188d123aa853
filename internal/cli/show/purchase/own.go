package purchase

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/own"
	"scrimp/internal/work/sheet"
)

// OwnOption is the cost of one way to run a model.
type OwnOption struct {
	Name     string                  `json:"name"`
	Phases   map[string]money.Amount `json:"phases"`
	Total    money.Amount            `json:"total"`
	PerMonth money.Amount            `json:"per_month"`
}

// OwnBelow gives the month from which an option costs less than another, up to the end of the life.
type OwnBelow struct {
	Option string `json:"option"`
	Than   string `json:"than"`
	Month  int    `json:"from_month"`
}

// OwnSwing holds the totals at the ends of a value's range.
type OwnSwing struct {
	Option string       `json:"option,omitempty"`
	Value  string       `json:"value"`
	Unit   string       `json:"unit,omitempty"`
	Low    money.Amount `json:"low"`
	High   money.Amount `json:"high"`
	AtLow  money.Amount `json:"at_low"`
	AtHigh money.Amount `json:"at_high"`
}

// OwnSwitch is an end of a value's range at which another option is the cheapest.
type OwnSwitch struct {
	Value string       `json:"value"`
	At    money.Amount `json:"at"`
	To    string       `json:"cheapest"`
}

// TCO is the output of scrimp tco.
type TCO struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Months   int            `json:"months"`
	Options  []OwnOption    `json:"options"`
	Cheapest string         `json:"cheapest"`
	Below    []OwnBelow     `json:"below"`
	Swings   []OwnSwing     `json:"sensitivity"`
	Switches []OwnSwitch    `json:"switches"`
	shown    string         // the option whose sensitivity is drawn
	ties     []string       // the cheapest options
}

// amount rounds an exact sum to units of 1e-12. Files are bounded, so every sum fits.
func amount(v *big.Rat) money.Amount {
	a, _ := sheet.Amount(v)
	return a
}

func ownSwings(option string, list []own.Swing) (out []OwnSwing) {
	for _, s := range list {
		out = append(out, OwnSwing{option, s.Value.Name, s.Value.Unit, amount(s.Value.Low), amount(s.Value.High),
			amount(s.Low), amount(s.High)})
	}
	return out
}

// TCOOf computes the result. It draws the sensitivity of the option shown; empty for the cheapest.
func TCOOf(t own.TCO, shown string) TCO {
	v := TCO{Name: t.Name, Currency: t.Currency, Months: t.Months, Cheapest: t.Options[t.Cheapest()].Name,
		Below: []OwnBelow{}, Swings: []OwnSwing{}, Switches: []OwnSwitch{}, shown: shown, ties: t.CheapestOnes()}
	if shown == "" {
		v.shown = v.Cheapest
	}
	for _, o := range t.Options {
		all := t.Phase(o, "")
		line := OwnOption{Name: o.Name, Phases: map[string]money.Amount{}, Total: amount(all),
			PerMonth: amount(new(big.Rat).Quo(all, big.NewRat(int64(t.Months), 1)))}
		for _, p := range own.Phases {
			line.Phases[p] = amount(t.Phase(o, p))
		}
		v.Options = append(v.Options, line)
		v.Swings = append(v.Swings, ownSwings(o.Name, t.Swings(o))...)
		for _, other := range t.Options {
			if m := t.Below(o, other); m > 0 {
				v.Below = append(v.Below, OwnBelow{o.Name, other.Name, m})
			}
		}
	}
	for _, s := range t.Switches() {
		v.Switches = append(v.Switches, OwnSwitch{s.Value.Name, amount(s.At), s.To})
	}
	return v
}

// Text formats the result for people.
func (v TCO) Text(p show.Place) string {
	var b strings.Builder
	head := fmt.Sprintf("%s: %s, %s", v.Name, draw.Count(v.Months, "month"), v.Currency)
	b.WriteString(draw.Wrap("", head, p.Columns()) + "\n")
	b.WriteString(v.table(p))
	cheapest := "Cheapest: " + v.Cheapest + "."
	if n := len(v.ties); n > 1 {
		cheapest = "Cheapest: " + strings.Join(v.ties[:n-1], ", ") + " and " + v.ties[n-1] + ", which cost the same."
	}
	b.WriteString("\n" + draw.Wrap("", cheapest, p.Columns()))
	for _, o := range v.Options {
		var than []string
		for _, l := range v.Below {
			if l.Option == o.Name {
				than = append(than, fmt.Sprintf("%s from month %d", l.Than, l.Month))
			}
		}
		if len(than) > 0 {
			text := o.Name + " costs less in all than " + strings.Join(than, ", ") + " on."
			b.WriteString(draw.Wrap("", text, p.Columns()))
		}
	}
	for _, s := range v.Switches {
		b.WriteString(draw.Wrap("", fmt.Sprintf("%s is the cheapest if %s is %s.", s.To, s.Value, s.At), p.Columns()))
	}
	for _, o := range v.Options {
		if o.Name == v.shown {
			b.WriteString(tornado("What the total of "+o.Name+" becomes", v.Swings, o.Name, o.Total, v.Currency, p))
		}
	}
	return b.String()
}

// table has a row for each option if there are more than three and their phases fit side by side, and otherwise a row
// for each phase.
func (v TCO) table(p show.Place) string {
	columns := []draw.Column{{Name: "OPTION"}}
	for _, phase := range own.Phases {
		columns = append(columns, draw.Column{Name: strings.ToUpper(phase), Right: true})
	}
	columns = append(columns, draw.Column{Name: "TOTAL", Right: true}, draw.Column{Name: "A MONTH", Right: true})
	var rows [][]string
	cents := func(a money.Amount) string { return money.Format(a, v.Currency, 2) }
	for _, o := range v.Options {
		row := []string{o.Name}
		for _, phase := range own.Phases {
			row = append(row, cents(o.Phases[phase]))
		}
		rows = append(rows, append(row, cents(o.Total), cents(o.PerMonth)))
	}
	if len(v.Options) > 3 {
		if whole := draw.Grid(columns, rows, 0); draw.Fits(whole, p.Columns()) {
			return whole
		}
	}
	columns, rows = turned(columns, rows)
	return draw.Blocks(columns, rows, p.Columns())
}

// turned transposes columns and rows.
func turned(columns []draw.Column, rows [][]string) (heads []draw.Column, out [][]string) {
	heads = []draw.Column{{Name: "", Key: true}}
	for _, r := range rows {
		heads = append(heads, draw.Column{Name: r[0], Right: true})
	}
	for i, c := range columns[1:] {
		row := []string{strings.ToLower(c.Name)}
		for _, r := range rows {
			row = append(row, r[i+1])
		}
		out = append(out, row)
	}
	return heads, out
}

// tornado draws the swings of an option, widest first.
func tornado(title string, list []OwnSwing, option string, total money.Amount, c money.Currency, p show.Place) string {
	var bars []draw.Extent
	for _, s := range list {
		if s.Option == option && len(bars) < 15 {
			bars = append(bars, draw.Extent{Name: fmt.Sprintf("%s %s to %s", s.Value, s.Low, s.High), Low: s.AtLow.Float(),
				High: s.AtHigh.Float(), Ends: money.Format(s.AtLow, c, 2) + " to " + money.Format(s.AtHigh, c, 2)})
		}
	}
	if len(bars) == 0 {
		return "\n" + draw.Wrap("", "Sensitivity is unknown: no value has a range. Write low and high.", p.Columns())
	}
	width := 100
	if p.Width > 0 {
		width = p.Columns()
	}
	return "\n" + title + " if one value changes (|: " + money.Format(total, c, 2) + ")\n" +
		draw.Extents(bars, total.Float(), width)
}
