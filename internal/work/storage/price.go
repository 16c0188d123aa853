package storage

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
)

// Stores lists where files can be: a folder of this machine, or a provider's object store.
var Stores = []string{Local, "aws", "gcp", "azure"}

// Local is the store of folders of this machine and of the server.
const Local = "local"

// DefaultClass returns the storage class of a store's files that name none.
func DefaultClass(store string) string {
	switch store {
	case "azure":
		return "Hot"
	case Local:
		return "disk"
	}
	return "STANDARD"
}

// offline lists the classes whose files cannot be read before somebody restores them, which takes hours.
var offline = []string{"aws/GLACIER", "aws/DEEP_ARCHIVE", "azure/Archive"}

// leastAge lists the age in days that an object must have before a store moves it to a class.
var leastAge = map[string]int{"aws/STANDARD_IA": 30, "aws/ONEZONE_IA": 30}

// A Price is what a storage class of a store charges. A nil price is unknown, which differs from zero.
type Price struct {
	Store, Class string
	Month        *big.Rat // a gigabyte of 1e9 bytes for a month of 730 hours
	Retrieval    *big.Rat // a gigabyte that is read
	Moves        *big.Rat // 1,000 objects that move into the class
	LeastDays    int      // the store charges at least so many days
	LeastBytes   int64    // the store charges at least so many bytes of an object
	Source, Date string
}

// Prices is a list of prices in one currency.
type Prices struct {
	Currency money.Currency
	List     []Price
}

// Of returns the price of a class, or false if nobody knows it.
func (p Prices) Of(store, class string) (Price, bool) {
	if class == "" {
		class = DefaultClass(store)
	}
	i := slices.IndexFunc(p.List, func(x Price) bool {
		return x.Store == store && strings.EqualFold(x.Class, class)
	})
	if i < 0 {
		return Price{}, false
	}
	return p.List[i], true
}

// Limits of a price file.
const (
	maxLeastDays = 3650
	maxLeastKiB  = 1 << 20
)

// ParsePrices reads a file of prices. It adds the built-in ones, which are in dollars, if the file is in dollars and
// does not name them.
func ParsePrices(file string, text []byte, builtin []Price) (Prices, error) {
	r, root := sheet.Open(file, text)
	f := root.Fields("currency", "prices")
	p := Prices{Currency: money.USD}
	if f["currency"].There() {
		p.Currency = money.Currency(f["currency"].Text())
		if !p.Currency.Valid() {
			f["currency"].Wrong(fmt.Sprintf("is %q", p.Currency), "write a code of three capital letters, such as USD")
		}
	}
	if len(f["prices"].List()) == 0 {
		f["prices"].Wrong("has no price", "write one price an item: store, class, month and source")
	}
	for _, n := range f["prices"].List() {
		x := price(n, p.Currency)
		if _, twice := p.Of(x.Store, x.Class); twice && x.Class != "" {
			n.Wrong(fmt.Sprintf("has a second price of %s %s", x.Store, x.Class), "leave one of them out")
		}
		p.List = append(p.List, x)
	}
	if err := r.Err(); err != nil {
		return Prices{}, err
	}
	if p.Currency == money.USD {
		p.add(builtin)
	}
	return p, nil
}

// Builtin returns the built-in prices.
func Builtin(list []Price) Prices { return Prices{Currency: money.USD, List: list} }

func (p *Prices) add(list []Price) {
	for _, x := range list {
		if _, known := p.Of(x.Store, x.Class); !known {
			p.List = append(p.List, x)
		}
	}
}

func price(n sheet.Node, c money.Currency) (x Price) {
	f := n.Fields("store", "class", "month", "retrieval", "moves", "least_days", "least_kib", "source", "date")
	x.Store = f["store"].Word(Stores...)
	if !f["store"].There() {
		n.Wrong("has no store", "write store: and one of "+strings.Join(Stores, ", "))
	}
	x.Class = f["class"].Text()
	if x.Class == "" && x.Store != "" {
		x.Class = DefaultClass(x.Store)
	}
	x.Month, _ = f["month"].Price(c)
	if !f["month"].There() {
		n.Wrong("has no month", "write month: and the price of 10^9 bytes for a month")
	}
	x.Retrieval, _ = f["retrieval"].Price(c)
	x.Moves, _ = f["moves"].Price(c)
	x.LeastDays = f["least_days"].Whole(0, maxLeastDays, 0)
	x.LeastBytes = int64(f["least_kib"].Whole(0, maxLeastKiB, 0)) << 10
	x.Source = f["source"].Required("write where the price comes from")
	x.Date = f["date"].Text()
	if _, err := time.Parse(time.DateOnly, x.Date); err != nil && f["date"].There() {
		f["date"].Wrong(fmt.Sprintf("is %.40q", x.Date), "write a day such as 2026-11-27")
	}
	return x
}

var gigabyte = big.NewRat(1e9, 1)

// hoursAMonth is the length of a month in a price, as in the catalogue.
const hoursAMonth = 730

// months converts days to months of a price.
func months(days int64) *big.Rat { return big.NewRat(days*24, hoursAMonth) }

// cost returns the price of so many bytes, per gigabyte.
func cost(bytes int64, perGigabyte *big.Rat) *big.Rat {
	v := new(big.Rat).Mul(new(big.Rat).SetInt64(bytes), perGigabyte)
	return v.Quo(v, gigabyte)
}

// ParseMonth parses the decimal price of a gigabyte a month.
func ParseMonth(text string) (*big.Rat, error) {
	v, ok := sheet.Number(text)
	if !ok || v.Sign != 0 || v.Value.Sign() < 0 {
		return nil, fmt.Errorf("%.40q is no price", text)
	}
	return v.Value, nil
}

// Month returns the cost of a file for a month in a store, or false if the price is unknown.
func (p Prices) Month(store string, f File) (*big.Rat, bool) {
	if x, ok := p.Of(store, f.Class); ok && x.Month != nil {
		return cost(f.Disk(), x.Month), true
	}
	return nil, false
}

// Disk returns what so many bytes of a local disk cost a month, or nil if its price is unknown.
func (p Prices) Disk(bytes int64) *big.Rat {
	month, _ := p.Month(Local, File{Bytes: bytes})
	return month
}
