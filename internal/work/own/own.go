// Package own computes the cost of owning a model (development, training, inference, maintenance, engineering time) in
// the cloud, on own machines or both, and the return of a change. All sums are exact decimals.
package own

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// Phases lists what money is spent on, in table order.
var Phases = []string{"development", "training", "inference", "maintenance", "engineering"}

// MaxMonths bounds a model's life.
const MaxMonths = 240

// maxValues bounds the values of a file: each value with a range needs a total for both of its ends.
const maxValues = 100

// A Value is a number that lines share, with its possible range.
type Value struct {
	Name, Unit, Source string
	Is, Low, High      *big.Rat // Low and High are nil without a range
	percent            bool     // it is written in per cent
}

// A Line is money spent once or monthly: the product of its factors.
type Line struct {
	Phase, What string
	Once        bool
	From, Until int // months, from 1
	factors     []factor
}

// A factor is a number, or one of the file's values.
type factor struct {
	is      *big.Rat
	value   int  // its index, if is is nil
	percent bool // it is written in per cent
}

// An Option is one way to run the model.
type Option struct {
	Name  string
	Lines []Line
}

// A changed value replaces the file's value during the computation of a total; the zero value changes nothing.
type changed struct {
	value int // from 1
	to    *big.Rat
}

// product returns the product of the line's factors.
func (l Line) product(values []Value, c changed) *big.Rat {
	product := big.NewRat(1, 1)
	for _, f := range l.factors {
		switch {
		case f.is != nil:
			product.Mul(product, f.is)
		case f.value == c.value-1:
			product.Mul(product, c.to)
		default:
			product.Mul(product, values[f.value].Is)
		}
	}
	return product
}

// Formula writes the line's product with the names of values, such as 4 × 730 × gpu_price.
func (l Line) Formula(values []Value) string {
	list := make([]string, len(l.factors))
	for i, f := range l.factors {
		list[i] = f.text(values)
	}
	return strings.Join(list, " × ")
}

func (f factor) text(values []Value) string {
	if f.is == nil {
		return values[f.value].Name
	}
	return Value{percent: f.percent}.Text(f.is)
}

// Text writes a number in the way in which the file writes the value: as a percentage or a decimal.
func (v Value) Text(number *big.Rat) string {
	sign := ""
	if v.percent {
		number, sign = new(big.Rat).Mul(number, big.NewRat(100, 1)), " %"
	}
	text := number.FloatString(12)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + sign
}

// total returns the total cost of lines. keep selects lines; nil selects all.
func total(lines []Line, values []Value, c changed, keep func(Line) bool) *big.Rat {
	sum := new(big.Rat)
	for _, l := range lines {
		if keep == nil || keep(l) {
			each := l.product(values, c)
			sum.Add(sum, new(big.Rat).Mul(each, big.NewRat(int64(l.Until-l.From+1), 1)))
		}
	}
	return sum
}

// most bounds a total: amounts can hold much more.
var most = new(big.Rat).SetInt64(sheet.MaxNumber)

// reader reads the parts that both files share.
type reader struct {
	values   []Value
	index    map[string]int
	months   int
	currency money.Currency
	used     []bool // values named by a line
}

// head reads name, currency, months and values.
func (r *reader) head(f map[string]sheet.Node) (name string, currency money.Currency) {
	name = f["name"].Required("write what the file is about")
	currency = money.USD
	if f["currency"].There() {
		currency = money.Currency(f["currency"].Text())
		if !currency.Valid() {
			f["currency"].Wrong(fmt.Sprintf("is %q", currency), "write a code of three capital letters, such as USD")
		}
	}
	r.currency = currency
	r.months = f["months"].Whole(1, MaxMonths, 12)
	r.index = map[string]int{}
	all := f["values"].All()
	if len(all) > maxValues {
		f["values"].Wrong(fmt.Sprintf("has %d values", len(all)), fmt.Sprintf("share at most %d", maxValues))
		all = nil
	}
	for _, v := range all {
		r.value(v)
	}
	r.used = make([]bool, len(r.values))
	return name, currency
}

func (r *reader) value(n sheet.Named) {
	v := Value{Name: n.Name}
	node := n.Node
	if n.IsMapping() {
		f := n.Fields("value", "low", "high", "unit", "source")
		v.Unit, v.Source = f["unit"].Text(), f["source"].Text()
		node = f["value"]
		if !node.There() {
			n.Wrong("has no value", "write value: and a decimal below it")
		}
		low, okLow := r.decimal(f["low"])
		high, okHigh := r.decimal(f["high"])
		if f["low"].There() != f["high"].There() {
			n.Wrong("has one end of a range", "write low and high, or neither")
		} else if okLow && okHigh {
			v.Low, v.High = low, high
		}
	}
	is, ok := r.decimal(node)
	if !ok {
		is = new(big.Rat)
	}
	v.percent = ok && node.IsPercent()
	if v.Low != nil && ok && (v.Low.Cmp(is) > 0 || v.High.Cmp(is) < 0) {
		n.Wrong("lies outside its range", "give low at most, and high at least, the value")
	}
	if _, ok := sheet.Number(n.Name); ok {
		n.Wrong("has a number as its name", "give it a name with a letter in it")
	}
	v.Is = is
	r.index[n.Name] = len(r.values)
	r.values = append(r.values, v)
}

// lines reads a list of lines; phased ones name their phase.
func (r *reader) lines(n sheet.Node, phased bool) (list []Line) {
	for _, item := range n.List() {
		f := item.Fields("phase", "what", "once", "monthly", "at", "from", "until")
		l := Line{What: f["what"].Required("write what is paid"), From: 1, Until: r.months}
		if phased {
			l.Phase = f["phase"].Word(Phases...)
			if !f["phase"].There() {
				item.Wrong("has no phase", "write development, training, inference, maintenance or engineering")
			}
		} else if f["phase"].There() {
			f["phase"].Wrong("is of scrimp tco", "leave it out")
		}
		switch once, monthly := f["once"], f["monthly"]; {
		case once.There() == monthly.There():
			item.Wrong("needs either once or monthly, and not both", "write one of them, with a number or a list of factors")
		case once.There():
			l.Once = true
			l.factors = r.money(once)
			l.From = f["at"].Whole(1, r.months, 1)
			l.Until = l.From
			for _, other := range []string{"from", "until"} {
				if f[other].There() {
					f[other].Wrong("goes with monthly", "write at, the month in which it is paid")
				}
			}
		default:
			l.factors = r.money(monthly)
			l.From, l.Until = f["from"].Whole(1, r.months, 1), f["until"].Whole(1, r.months, r.months)
			if f["at"].There() {
				f["at"].Wrong("goes with once", "write from and until")
			}
			if l.Until < l.From {
				f["until"].Wrong("is before from", "give a later month")
				l.Until = l.From
			}
		}
		r.bounded(item, l)
		list = append(list, l)
	}
	return list
}

// maxFactors bounds a product.
const maxFactors = 8

// factors reads a number, a value's name, or a list of them.
func (r *reader) factors(n sheet.Node) (list []factor) {
	items := []sheet.Node{n}
	if n.IsList() {
		items = n.List()
	}
	if len(items) == 0 || len(items) > maxFactors {
		n.Wrong(fmt.Sprintf("has %d factors", len(items)), fmt.Sprintf("write 1 to %d", maxFactors))
		return nil
	}
	for _, item := range items {
		text := item.Text()
		if i, is := r.index[text]; is {
			r.used[i] = true
			list = append(list, factor{value: i, percent: r.values[i].percent})
			continue
		}
		if _, ok := sheet.Number(text); !ok {
			item.Wrong(fmt.Sprintf("is %.40q", text), "write a decimal from 0 to 10^12, such as 12.34, or the name of one of "+
				"the values")
			continue
		}
		if v, ok := r.decimal(item); ok {
			list = append(list, factor{is: v, percent: item.IsPercent()})
		}
	}
	return list
}

// money reads factors, at least one of which must be an amount or a count: percentages alone are not money.
func (r *reader) money(n sheet.Node) []factor {
	list := r.factors(n)
	if len(list) > 0 && !slices.ContainsFunc(list, func(f factor) bool { return !f.percent }) {
		n.Wrong("is a percentage, and of no amount", "write the amount itself such as 12.34, or a list such as [1200, 33%]")
	}
	return list
}

// decimal reads a decimal, a percentage, or an amount in the file's currency.
func (r *reader) decimal(n sheet.Node) (*big.Rat, bool) {
	if n.IsPercent() {
		return n.Decimal()
	}
	return n.Price(r.currency)
}

// bounded refuses a line that may cost more than 10^12.
func (r *reader) bounded(n sheet.Node, l Line) {
	worst := big.NewRat(int64(l.Until-l.From+1), 1)
	for _, f := range l.factors {
		v := f.is
		if v == nil {
			v = r.values[f.value].Is
			if high := r.values[f.value].High; high != nil {
				v = high
			}
		}
		worst.Mul(worst, v)
	}
	if worst.Cmp(most) > 0 {
		n.Wrong("costs more than 10^12 in all", "check its factors and their units")
	}
}

// unused reports values that no line uses, which are mostly misspelt names.
func (r *reader) unused(n sheet.Node) {
	for i, v := range n.All() {
		if i < len(r.used) && !r.used[i] {
			v.Wrong("is used by no line", "name it in a line, or leave it out")
		}
	}
}

// A Swing holds the totals for the lowest and the highest value.
type Swing struct {
	Value     Value
	Low, High *big.Rat
}

// swings returns a swing for each value with a range, widest first.
func swings(values []Value, of func(changed) *big.Rat) (list []Swing) {
	width := func(s Swing) *big.Rat { return new(big.Rat).Abs(new(big.Rat).Sub(s.High, s.Low)) }
	for i, v := range values {
		if v.Low == nil {
			continue
		}
		s := Swing{v, of(changed{i + 1, v.Low}), of(changed{i + 1, v.High})}
		if width(s).Sign() > 0 {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Swing) int { return width(b).Cmp(width(a)) })
	return list
}
