package own

import (
	"math/big"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// A TCO is a file of scrimp tco: the cost of each way to run a model over its life.
type TCO struct {
	Name     string
	Currency money.Currency
	Months   int
	Values   []Value
	Options  []Option
}

// ParseTCO reads the file. All errors are returned together, as spec.Problems.
func ParseTCO(file string, text []byte) (TCO, error) {
	s, root := sheet.Open(file, text)
	r := &reader{}
	f := root.Fields("name", "currency", "months", "values", "options")
	var t TCO
	t.Name, t.Currency = r.head(f)
	t.Months = r.months
	if !f["options"].There() {
		f["options"].Wrong("is missing", optionsFix)
	}
	for _, o := range f["options"].All() {
		option := Option{Name: o.Name, Lines: r.lines(o.Node, true)}
		if len(option.Lines) == 0 {
			o.Wrong("has no lines", "write what it costs, one line an item")
		}
		t.Options = append(t.Options, option)
	}
	if n := len(t.Options); f["options"].There() && (n == 0 || n > MaxOptions) {
		f["options"].Wrong("lists "+draw.Count(n, "option"), optionsFix)
	}
	if s.Err() == nil { // an unreadable line uses values, too
		r.unused(f["values"])
	}
	t.Values = r.values
	return t, s.Err()
}

const optionsFix = "list 1 to 10, such as cloud, on-premises and hybrid"

// MaxOptions bounds the options of a file.
const MaxOptions = 10

// Phase returns the cost of an option in a phase; an empty phase means in total.
func (t TCO) Phase(o Option, phase string) *big.Rat {
	return total(o.Lines, t.Values, changed{}, func(l Line) bool { return phase == "" || l.Phase == phase })
}

// Cheapest returns the index of the cheapest option, the first among equals.
func (t TCO) Cheapest() int { return t.cheapest(changed{}) }

// CheapestOnes returns the names of the cheapest options.
func (t TCO) CheapestOnes() (names []string) {
	least := t.Phase(t.Options[t.Cheapest()], "")
	for _, o := range t.Options {
		if t.Phase(o, "").Cmp(least) == 0 {
			names = append(names, o.Name)
		}
	}
	return names
}

func (t TCO) cheapest(c changed) int {
	best, least := 0, (*big.Rat)(nil)
	for i, o := range t.Options {
		if v := total(o.Lines, t.Values, c, nil); least == nil || v.Cmp(least) < 0 {
			best, least = i, v
		}
	}
	return best
}

// Below returns the first month from which one option's cumulative cost stays below another's until the end of the
// life, or 0.
func (t TCO) Below(one, other Option) int {
	first := 0
	a, b := t.cumulative(one), t.cumulative(other)
	for m := range t.Months {
		switch {
		case a[m].Cmp(b[m]) >= 0:
			first = 0
		case first == 0:
			first = m + 1
		}
	}
	return first
}

// cumulative returns an option's cost by the end of each month.
func (t TCO) cumulative(o Option) []*big.Rat {
	out := make([]*big.Rat, t.Months)
	for m := range out {
		out[m] = new(big.Rat)
	}
	for _, l := range o.Lines {
		each := l.product(t.Values, changed{})
		for m := l.From - 1; m < l.Until; m++ {
			out[m].Add(out[m], each)
		}
	}
	for m := 1; m < t.Months; m++ {
		out[m].Add(out[m], out[m-1])
	}
	return out
}

// Swings returns an option's total at the ends of each value's range, widest first.
func (t TCO) Swings(o Option) []Swing {
	return swings(t.Values, func(c changed) *big.Rat { return total(o.Lines, t.Values, c, nil) })
}

// A Switch is an end of a value's range at which another option is the cheapest.
type Switch struct {
	Value Value
	At    *big.Rat
	To    string
}

// Switches returns the ends of ranges that change the cheapest option.
func (t TCO) Switches() (list []Switch) {
	now := t.Cheapest()
	for i, v := range t.Values {
		if v.Low == nil {
			continue
		}
		for _, at := range []*big.Rat{v.Low, v.High} {
			if best := t.cheapest(changed{i + 1, at}); best != now {
				list = append(list, Switch{v, at, t.Options[best].Name})
			}
		}
	}
	return list
}
