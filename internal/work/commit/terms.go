package commit

import (
	"fmt"
	"math/big"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// Kinds lists the kinds of commitments. A savings plan is an hourly amount; here it counts in the units that it pays.
var Kinds = []string{"reserved", "savings-plan", "committed-use"}

// An Offer is a commitment for sale.
type Offer struct {
	Name, Kind, Source string
	Years              int
	Upfront, Hourly    *big.Rat // of one unit
	Price              *big.Rat // of an hour relative to on-demand, with the upfront part spread over the term
}

// Hours returns the hours of its term.
func (o Offer) Hours() int { return Policy{Months: 12 * o.Years}.TermHours() }

// Owed returns the cost of the units over the term: in total, the part paid upfront, and the rest per hour.
func (o Offer) Owed(units int64) (all, upfront, hourly *big.Rat) {
	n := new(big.Rat).SetInt64(units)
	upfront, hourly = new(big.Rat).Mul(o.Upfront, n), new(big.Rat).Mul(o.Hourly, n)
	all = new(big.Rat).Mul(hourly, big.NewRat(int64(o.Hours()), 1))
	return all.Add(all, upfront), upfront, hourly
}

// Terms is a price file: the on-demand price, and the commitments for sale.
type Terms struct {
	Currency money.Currency
	OnDemand *big.Rat // an hour of one unit
	Source   string
	Offers   []Offer
}

// ReadTerms reads the file. Each price names its source. All errors are returned together, as spec.Problems.
func ReadTerms(file string, text []byte) (Terms, error) {
	r, root := sheet.Open(file, text)
	f := root.Fields("currency", "on_demand", "terms")
	t := Terms{Currency: money.USD}
	if f["currency"].There() {
		if t.Currency = money.Currency(f["currency"].Text()); !t.Currency.Valid() {
			f["currency"].Wrong(fmt.Sprintf("is %q", t.Currency), "write a code of three capital letters, such as USD")
		}
	}
	demand := f["on_demand"].Fields("price", "source")
	t.Source = demand["source"].Required(sourceFix)
	const priceFix = "write what an hour of one unit costs on demand, above zero"
	var ok bool
	switch t.OnDemand, ok = demand["price"].Price(t.Currency); {
	case !demand["price"].There():
		demand["price"].Wrong("is missing", priceFix)
	case ok && t.OnDemand.Sign() == 0:
		demand["price"].Wrong("is zero", priceFix)
	}
	seen := map[string]bool{}
	for _, item := range f["terms"].List() {
		o := t.offer(item)
		if o.Name != "" && seen[o.Name] {
			item.Wrong(fmt.Sprintf("has the same name as another term: %q", o.Name), "give each a name of its own")
		}
		seen[o.Name] = true
		t.Offers = append(t.Offers, o)
	}
	if len(t.Offers) == 0 || len(t.Offers) > 50 {
		f["terms"].Wrong("lists "+draw.Count(len(t.Offers), "term"), "list 1 to 50, each with name, kind, years, "+
			"upfront or hourly, and source")
	}
	return t, r.Err()
}

const sourceFix = "write where the price is from, and its date"

func (t Terms) offer(item sheet.Node) Offer {
	f := item.Fields("name", "kind", "years", "upfront", "hourly", "source")
	o := Offer{Name: f["name"].Required("write a name"), Kind: f["kind"].Word(Kinds...),
		Years: f["years"].Whole(1, 3, 1), Source: f["source"].Required(sourceFix)}
	if o.Years == 2 {
		f["years"].Wrong("is 2", "write 1 or 3")
	}
	if !f["kind"].There() {
		f["kind"].Wrong("is missing", "write reserved, savings-plan or committed-use")
	}
	if !f["upfront"].There() && !f["hourly"].There() {
		item.Wrong("has no price", "write upfront, hourly or both, for one unit")
		return o
	}
	known := true
	for _, part := range []struct {
		name string
		to   **big.Rat
	}{{"upfront", &o.Upfront}, {"hourly", &o.Hourly}} {
		v, ok := f[part.name].Price(t.Currency)
		if *part.to = v; !ok {
			*part.to = new(big.Rat)
			known = known && !f[part.name].There()
		}
	}
	if !known || t.OnDemand == nil || t.OnDemand.Sign() == 0 {
		return o // the problem is already reported
	}
	all, _, _ := o.Owed(1)
	o.Price = all.Quo(all, new(big.Rat).Mul(t.OnDemand, big.NewRat(int64(o.Hours()), 1)))
	switch {
	case o.Price.Sign() == 0:
		item.Wrong("costs nothing", "correct the price, or leave the term out")
	case o.Price.Cmp(big.NewRat(1, 1)) >= 0:
		item.Wrong(fmt.Sprintf("costs %s of on-demand", percentOf(o.Price)), "a commitment must cost less than on-demand: "+
			"correct the price, or leave the term out")
	}
	return o
}

func percentOf(price *big.Rat) string {
	if price.Cmp(big.NewRat(100, 1)) > 0 {
		return "more than 100 times"
	}
	return plainPercent(new(big.Rat).Mul(price, big.NewRat(100, 1)).FloatString(2))
}
