package commit

import (
	"fmt"
	"math/big"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// Kinds are what commitments are sold as. A savings plan is a sum an hour; here it is counted in the units that it
// pays.
var Kinds = []string{"reserved", "savings-plan", "committed-use"}

// An Offer is a commitment that is for sale.
type Offer struct {
	Name, Kind, Source string
	Years              int
	Upfront, Hourly    *big.Rat // of one unit
	Price              int64    // of an hour, in ten thousandths of that on demand, with the upfront spread over the term
}

// Hours returns the hours of its term.
func (o Offer) Hours() int { return Policy{Months: 12 * o.Years}.TermHours() }

// Owed returns what so many units cost over the term, and how much of that at once.
func (o Offer) Owed(units int64) (all, upfront *big.Rat) {
	n := new(big.Rat).SetInt64(units)
	upfront = new(big.Rat).Mul(o.Upfront, n)
	all = new(big.Rat).Mul(o.Hourly, new(big.Rat).Mul(n, big.NewRat(int64(o.Hours()), 1)))
	return all.Add(all, upfront), upfront
}

// Terms are a file of prices: that on demand, and the commitments for sale.
type Terms struct {
	Currency money.Currency
	OnDemand *big.Rat // an hour of one unit
	Source   string
	Offers   []Offer
}

// ReadTerms reads the file. Each price names its source. All that is wrong is returned together, as spec.Problems.
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
	var ok bool
	if t.OnDemand, ok = demand["price"].Decimal(0); !ok || t.OnDemand.Sign() == 0 {
		f["on_demand"].Wrong("has no price above zero", "write what an hour of one unit costs on demand")
		return t, r.Err()
	}
	seen := map[string]bool{}
	for _, item := range f["terms"].List() {
		o := t.offer(item)
		if seen[o.Name] {
			item.Wrong(fmt.Sprintf("has the name %q of another", o.Name), "give each a name of its own")
		}
		seen[o.Name] = true
		t.Offers = append(t.Offers, o)
	}
	if len(t.Offers) == 0 || len(t.Offers) > 50 {
		f["terms"].Wrong(fmt.Sprintf("are %d", len(t.Offers)), "write 1 to 50, each with name, kind, years, upfront or "+
			"hourly, and source")
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
	var upfront, hourly bool
	o.Upfront, upfront = f["upfront"].Decimal(0)
	o.Hourly, hourly = f["hourly"].Decimal(0)
	if !f["upfront"].There() && !f["hourly"].There() {
		item.Wrong("has no price", "write upfront, hourly or both, for one unit")
	}
	if !upfront {
		o.Upfront = new(big.Rat)
	}
	if !hourly {
		o.Hourly = new(big.Rat)
	}
	hour, _ := o.Owed(1)
	hour.Quo(hour, big.NewRat(int64(o.Hours()), 1))
	// To the nearest ten thousandth.
	scaled := hour.Quo(hour, t.OnDemand)
	scaled.Mul(scaled, big.NewRat(One, 1)).Add(scaled, big.NewRat(1, 2))
	n := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	if !n.IsInt64() || n.Int64() < 1 || n.Int64() >= One {
		item.Wrong(fmt.Sprintf("costs %s of on-demand", percentOf(n)), "a commitment is worth it between 0.01% and 99.99%: "+
			"correct the price, or leave it out")
		n.SetInt64(One - 1)
	}
	o.Price = n.Int64()
	return o
}

func percentOf(n *big.Int) string {
	if !n.IsInt64() || n.Int64() > 100*One {
		return "more than 100 times"
	}
	return FormatShare(n.Int64())
}
