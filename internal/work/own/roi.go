package own

import (
	"math/big"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// A ROI is a file of scrimp roi: a change that saves money each month, has an initial cost, and may reduce quality.
type ROI struct {
	Name     string
	Currency money.Currency
	Months   int
	Values   []Value

	Before, After []Line // per month
	Investment    []Line // once

	Metric, Source string
	Quality        bool   // the file states the lost quality
	GivenUp, Worth factor // units of the metric, and the monthly worth of a unit
}

// ParseROI reads the file. All errors are returned together, as spec.Problems.
func ParseROI(file string, text []byte) (ROI, error) {
	s, root := sheet.Open(file, text)
	r := &reader{}
	f := root.Fields("name", "currency", "months", "values", "before", "after", "investment", "quality")
	var t ROI
	t.Name, t.Currency = r.head(f)
	t.Months = r.months
	for _, part := range []struct {
		name string
		to   *[]Line
		once bool
	}{{"before", &t.Before, false}, {"after", &t.After, false}, {"investment", &t.Investment, true}} {
		node := f[part.name]
		*part.to = r.lines(node, false)
		if !node.There() {
			root.Wrong("has no "+part.name, "write "+part.name+" as a list of lines; an empty list [] is nothing")
		}
		for i, item := range node.List() {
			if i < len(*part.to) && (*part.to)[i].Once != part.once {
				item.Wrong("is "+when[!part.once]+", and "+part.name+" is paid "+when[part.once], "write "+field[part.once])
			}
			for _, name := range []string{"from", "until", "at"} {
				if item.IsMapping() && item.Has(name) {
					item.Wrong(name+" has no meaning here", "leave it out: a month is any month")
				}
			}
		}
	}
	t.quality(r, f["quality"])
	if s.Err() == nil { // an unreadable line uses values, too
		r.unused(f["values"])
	}
	t.Values = r.values
	return t, s.Err()
}

var (
	when  = map[bool]string{true: "once", false: "each month"}
	field = map[bool]string{true: "once", false: "monthly"}
)

func (t *ROI) quality(r *reader, n sheet.Node) {
	if t.Quality = n.There(); !t.Quality {
		return
	}
	f := n.Fields("metric", "given_up", "worth", "source")
	t.Metric, t.Source = f["metric"].Required("write what quality is measured in"), f["source"].Text()
	for _, part := range []struct {
		name, fix string
		to        *factor
		read      func(sheet.Node) []factor
	}{{"given_up", "write how many units of the metric the change gives up", &t.GivenUp, r.factors},
		{"worth", "write what one unit of the metric is worth a month", &t.Worth, r.money}} {
		if !f[part.name].There() {
			n.Wrong("has no "+part.name, part.fix)
			continue
		}
		if list := part.read(f[part.name]); len(list) == 1 {
			*part.to = list[0]
		} else if len(list) > 1 {
			f[part.name].Wrong("is a product", "write one number, or the name of one value")
		}
	}
	if t.GivenUp.is == nil && len(r.values) == 0 || t.Worth.is == nil && len(r.values) == 0 {
		t.GivenUp, t.Worth = factor{is: new(big.Rat)}, factor{is: new(big.Rat)}
	}
	r.bounded(n, Line{From: 1, Until: t.Months, factors: []factor{t.GivenUp, t.Worth}})
}

// A Case is the return of a change.
type Case struct {
	Before, After, Saved *big.Rat // per month
	Lost                 *big.Rat // monthly value of the lost quality
	Net                  *big.Rat // per month: saved minus lost
	Investment           *big.Rat
	Gain                 *big.Rat // over the months: total net minus the investment
	Payback              *big.Rat // months; nil for never
	Return               *big.Rat // gain over investment; nil without an investment
	// MostWorth is the worth of a unit of quality above which the change does not pay over the months; nil if no loss
	// of quality is known.
	MostWorth *big.Rat
}

// Case computes the return.
func (t ROI) Case() Case { return t.with(changed{}) }

func (t ROI) with(c changed) Case {
	month := func(lines []Line) *big.Rat {
		sum := new(big.Rat)
		for _, l := range lines {
			sum.Add(sum, l.product(t.Values, c))
		}
		return sum
	}
	months := big.NewRat(int64(t.Months), 1)
	out := Case{Before: month(t.Before), After: month(t.After), Investment: month(t.Investment), Lost: new(big.Rat)}
	out.Saved = new(big.Rat).Sub(out.Before, out.After)
	givenUp := new(big.Rat)
	if t.Quality {
		givenUp = Line{factors: []factor{t.GivenUp}}.product(t.Values, c)
		out.Lost.Mul(givenUp, Line{factors: []factor{t.Worth}}.product(t.Values, c))
	}
	out.Net = new(big.Rat).Sub(out.Saved, out.Lost)
	all := new(big.Rat).Mul(out.Net, months)
	out.Gain = new(big.Rat).Sub(all, out.Investment)
	if out.Net.Sign() > 0 {
		out.Payback = new(big.Rat).Quo(out.Investment, out.Net)
	}
	if out.Investment.Sign() > 0 {
		out.Return = new(big.Rat).Quo(out.Gain, out.Investment)
	}
	if givenUp.Sign() > 0 {
		saved := new(big.Rat).Sub(new(big.Rat).Mul(out.Saved, months), out.Investment)
		if saved.Sign() > 0 {
			out.MostWorth = saved.Quo(saved, new(big.Rat).Mul(givenUp, months))
		}
	}
	return out
}

// Amount returns what a line of the file costs: once, or a month.
func (t ROI) Amount(l Line) *big.Rat { return l.product(t.Values, changed{}) }

// Loss writes what the file says of the lost quality, with the names of values.
func (t ROI) Loss() (givenUp, worth string) {
	if !t.Quality {
		return "", ""
	}
	return t.GivenUp.text(t.Values), t.Worth.text(t.Values)
}

// Cumulative returns the sum of all nets less the investment after each month, from month 0 on.
func (c Case) Cumulative(months int) []*big.Rat {
	sums := []*big.Rat{new(big.Rat).Neg(c.Investment)}
	for m := range months {
		sums = append(sums, new(big.Rat).Add(sums[m], c.Net))
	}
	return sums
}

// Swings returns the gain at the ends of each value's range, widest first.
func (t ROI) Swings() []Swing {
	return swings(t.Values, func(c changed) *big.Rat { return t.with(c).Gain })
}
