//go:build !local

// Package sale derives the offers of an engine, with their prices, from what its region sells and its reservations.
package sale

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/reservation"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Sale is an offer with what its launch needs.
type Sale struct {
	Offer market.Offer
	Quote market.Quote
	Kind  stock.Type
	Zone  stock.Zone
	Image stock.Image
	Rates Rates
	Held  *reservation.Held // its capacity reservation; nil: none
	Among []Sale            // the pools of a fleet, the cheapest first; nil: one type in one zone
}

// Rates is the hourly cost of a machine by parts.
type Rates struct {
	Machine, Disk, Address money.Rate
	Currency               money.Currency
}

// Sum returns the hourly cost of the whole machine.
func (r Rates) Sum() money.Rate { return r.Machine + r.Disk + r.Address }

// Index holds what a region sells to the account, and the account's reservations there.
type Index struct {
	stock.Stock
	Held reservation.List
}

// Seller derives what an engine sells from what its region sells, and remembers what had no capacity.
type Seller struct {
	engine string // its name
	with   *setting.With
	now    func() time.Time // wall time
	book   *reservation.Book
	inside func(reservation string) int // counts the engine's running machines in a reservation

	mu   sync.Mutex
	full map[market.OfferID]time.Time // when the offer last had no capacity
}

// New returns the seller of the engine whose reservations are in the book.
func New(b *reservation.Book, inside func(reservation string) int) *Seller {
	return &Seller{engine: b.Engine, with: b.With, now: b.Now, book: b, inside: inside,
		full: map[market.OfferID]time.Time{}}
}

// Sales returns what is sold: each type in its zone, then the fleets. Doctor reports what is wrong with a fleet.
func (v *Seller) Sales(x *Index) []Sale {
	all := v.Pools(x)
	pools := all
	for n := range v.with.Fleets {
		for _, c := range v.with.Capacity {
			if s, ok, _ := v.fleet(&v.with.Fleets[n], pools, c); ok {
				all = append(all, s)
			}
		}
	}
	return append(all, v.reserved(x)...)
}

// Pools returns each type in each of its zones, in the order of types, zones and capacities.
func (v *Seller) Pools(x *Index) []Sale {
	most := 0
	for _, zones := range x.Sold {
		most += len(zones) * len(v.with.Capacity)
	}
	all := make([]Sale, 0, most) // 700 bytes each: growing the list would take longer than filling it
	for n := range x.Types {
		k := &x.Types[n]
		image, ok := x.Images[k.Arch]
		if !ok || stock.ArchOf[k.Arch] != runtime.GOARCH {
			continue // no image, or the agent does not run there: doctor reports it
		}
		for _, name := range x.Sold[k.Name] {
			z := x.Zones[name]
			for _, c := range v.with.Capacity {
				if c == market.Spot && !k.Spot || c == market.OnDemand && !k.Demand {
					continue
				}
				all = all[:len(all)+1] // filled in place
				s := &all[len(all)-1]
				s.Kind, s.Zone, s.Image = *k, z, image
				v.fill(x, s, c)
			}
		}
	}
	return all
}

// fill sets a sale's machine and current price.
func (v *Seller) fill(x *Index, s *Sale, c market.Capacity) {
	k, name := &s.Kind, s.Zone.Name
	o, q := &s.Offer, &s.Quote
	o.ID, o.Provider, o.Region, o.Zone = stock.OfferID(v.engine, name, k.Name, c), v.engine, v.with.Region, name
	o.Machine, o.Capacity, o.CPUs, o.Memory = k.Name, c, k.CPUs, k.Memory
	o.Accelerator, o.Accelerators = k.Accelerator, k.Accelerators
	o.Currency, o.Billing = money.USD, Billing(c)
	q.Offer, q.At, q.Source = o.ID, x.PricesAt.UTC(), "aws"
	s.Rates.Currency = money.USD
	s.Rates.Disk, s.Rates.Address = v.Besides(x, name)
	if c == market.Spot {
		o.Notice = warning
		p, ok := x.Spot[stock.SpotKey{Zone: name, Type: k.Name}]
		s.Rates.Machine, q.Priced, q.At = p.Rate, ok, x.SpotAt.UTC()
	} else if p, ok := x.Listed[k.Name]; ok {
		s.Rates.Machine, q.Priced, q.At, q.Source = p.Rate, true, p.At, p.Source
	}
	q.Priced = q.Priced && x.DiskKnown
	if q.Priced {
		q.Rate = s.Rates.Sum()
	}
	q.Available = !v.isFull(o.ID)
}

// addressRate is the hourly price of a public IPv4 address. Source: aws.amazon.com/vpc/pricing, "Public IPv4
// Address", the same in all regions since 2024-02-01.
const addressRate = "0.005"

// monthHours converts a price per GiB and month to an hourly one: 30 days. Source: the examples of
// aws.amazon.com/ebs/pricing.
const monthHours = 720

// Besides returns the hourly cost of a machine's disk and address in a zone.
func (v *Seller) Besides(x *Index, zone string) (disk, address money.Rate) {
	whole := x.Disk.Times(int(v.with.DiskSize / size.GiB))
	disk = (whole + monthHours - 1) / monthHours
	if x.Zones[zone].Public {
		address, _ = money.ParseRate(addressRate)
	}
	return disk, address
}

// freeWithin is how long an interrupted spot machine is free; least is the minimum charge of any machine.
const (
	freeWithin  = time.Hour
	MinimumTime = time.Minute
	warning     = 2 * time.Minute // before an interruption
)

// fullTTL is how long an offer counts as unavailable after EC2 had no capacity.
const fullTTL = 2 * time.Minute

func (v *Seller) isFull(o market.OfferID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, full := v.full[o]
	return full && v.now().Sub(at) < fullTTL
}

// Billing returns a machine's billing rules besides its rate. Sources: aws.amazon.com/ec2/pricing/on-demand (a minute
// at least) and docs.aws.amazon.com, Amazon EC2 user guide, "Billing for interrupted Spot Instances".
func Billing(c market.Capacity) market.Billing {
	if c == market.Spot {
		return market.Billing{Minimum: MinimumTime, FreeIfInterruptedWithin: freeWithin}
	}
	return market.Billing{Minimum: MinimumTime}
}

// reserved returns the machines of reservations, and the offers of ended ones while their last hours may still be
// unbooked.
func (v *Seller) reserved(x *Index) (all []Sale) {
	now := v.now()
	contracts := v.book.Contracts()
	there := map[market.OfferID]bool{}
	for n := range x.Held.All {
		if s, ok := v.saleOfHeld(x, &x.Held.All[n], now); ok {
			all, there[s.Offer.ID] = append(all, s), true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(contracts)) {
		c := contracts[id]
		if there[id] || now.Sub(c.Until) > reservation.ClosedFor {
			continue
		}
		s := Sale{Offer: c.Offer, Quote: market.Quote{Offer: id, At: x.Held.At.UTC(), Source: "aws"}}
		s.Offer.Reserved = v.book.Sold(c, now, 0, nil)
		all = append(all, s)
	}
	return all
}

// saleOfHeld returns the offer of a reservation; false if it provides no machine. scrimp shows a reservation of unknown
// price and does not rent it, because the ledger would book it as free.
func (v *Seller) saleOfHeld(x *Index, h *reservation.Held, now time.Time) (Sale, bool) {
	id, c := v.book.Contracted(h)
	if h.Unfit != "" || c == nil && h.Over(now) {
		return Sale{}, false
	}
	s := Sale{Zone: x.Zones[h.Zone], Held: h, Offer: v.book.OfferOf(&x.Stock, h, id), Rates: Rates{Currency: money.USD}}
	s.Kind = x.Types[slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.Kind })]
	s.Image = x.Images[s.Kind.Arch]
	s.Rates.Disk, s.Rates.Address = v.Besides(x, h.Zone)
	s.Quote = market.Quote{Offer: id, At: x.Held.At.UTC(), Source: "aws"}
	if h.Set.HourRate != nil || h.Set.PaidAmount != nil {
		s.Quote.Source = "set in engines.yaml"
	}
	if c == nil {
		s.Offer.Machines = h.Count
		return s, true
	}
	s.Rates.Machine = c.Machine
	s.Offer.Reserved = v.book.Sold(c, now, s.Rates.Disk+s.Rates.Address, h.Set)
	if s.Quote.Priced = x.DiskKnown; s.Quote.Priced {
		s.Quote.Rate = s.Rates.Sum()
	}
	s.Quote.Available = h.State == types.CapacityReservationStateActive && !h.Over(now) && !now.Before(h.From) &&
		x.Held.Err == nil && (h.Free > 0 || v.inside(h.ID) > 0) && !v.isFull(id) // one of ours may have to leave
	return s, true
}

// NoRoom returns err, after noting it if it reports missing capacity.
func (v *Seller) NoRoom(o market.OfferID, err error) error {
	if errors.Is(err, engine.ErrNoCapacity) {
		v.Lacks(o)
	}
	return err
}

// Lacks notes that a pool had no capacity.
func (v *Seller) Lacks(o market.OfferID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.full[o] = v.now()
}
