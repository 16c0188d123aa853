//go:build !local

package aws

import (
	"runtime"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// addressRate is the hourly price of a public IPv4 address. Source: aws.amazon.com/vpc/pricing, "Public IPv4
// Address", the same in all regions since 2024-02-01.
const addressRate = "0.005"

// monthHours converts a price per GiB and month to an hourly one: 30 days. Source: the examples of
// aws.amazon.com/ebs/pricing.
const monthHours = 720

// besides returns the hourly cost of a machine's disk and address in a zone.
func (d *Driver) besides(x *index, zone string) (disk, address money.Rate) {
	whole := x.Disk.Times(int(d.with.DiskSize / size.GiB))
	disk = (whole + monthHours - 1) / monthHours
	if x.Zones[zone].Public {
		address, _ = money.ParseRate(addressRate)
	}
	return disk, address
}

// sale is an offer with what its launch needs.
type sale struct {
	offer market.Offer
	quote market.Quote
	kind  stock.Type
	zone  stock.Zone
	image stock.Image
	rates rates
	held  *held  // its capacity reservation; nil: none
	among []sale // the pools of a fleet, the cheapest first; nil: one type in one zone
}

// freeWithin is how long an interrupted spot machine is free; least is the minimum charge of any machine.
const (
	freeWithin = time.Hour
	least      = time.Minute
	warning    = 2 * time.Minute // before an interruption
)

// archOf gives Go's names of architectures: machines run the server's own program.
var archOf = map[ec2types.ArchitectureType]string{ec2types.ArchitectureTypeX8664: "amd64",
	ec2types.ArchitectureTypeArm64: "arm64"}

// pools returns each type in each of its zones, in the order of types, zones and capacities.
func (d *Driver) pools(x *index) []sale {
	most := 0
	for _, zones := range x.Sold {
		most += len(zones) * len(d.with.Capacity)
	}
	all := make([]sale, 0, most) // 700 bytes each: growing the list would take longer than filling it
	for n := range x.Types {
		k := &x.Types[n]
		image, ok := x.Images[k.Arch]
		if !ok || archOf[k.Arch] != runtime.GOARCH {
			continue // no image, or the agent does not run there: doctor reports it
		}
		for _, name := range x.Sold[k.Name] {
			z := x.Zones[name]
			for _, c := range d.with.Capacity {
				if c == market.Spot && !k.Spot || c == market.OnDemand && !k.Demand {
					continue
				}
				all = all[:len(all)+1] // filled in place
				s := &all[len(all)-1]
				s.kind, s.zone, s.image = *k, z, image
				d.fill(x, s, c)
			}
		}
	}
	return all
}

// fill sets a sale's machine and current price.
func (d *Driver) fill(x *index, s *sale, c market.Capacity) {
	k, name := &s.kind, s.zone.Name
	o, q := &s.offer, &s.quote
	o.ID, o.Provider, o.Region, o.Zone = d.offerID(name, k.Name, c), d.name, d.with.Region, name
	o.Machine, o.Capacity, o.CPUs, o.Memory = k.Name, c, k.CPUs, k.Memory
	o.Accelerator, o.Accelerators = k.Accelerator, k.Accelerators
	o.Currency, o.Billing = money.USD, billing(c)
	q.Offer, q.At, q.Source = o.ID, x.PricesAt.UTC(), "aws"
	s.rates.currency = money.USD
	s.rates.disk, s.rates.address = d.besides(x, name)
	if c == market.Spot {
		o.Notice = warning
		p, ok := x.Spot[stock.SpotKey{Zone: name, Type: k.Name}]
		s.rates.machine, q.Priced, q.At = p.Rate, ok, x.SpotAt.UTC()
	} else if p, ok := x.Listed[k.Name]; ok {
		s.rates.machine, q.Priced, q.At, q.Source = p.Rate, true, p.At, p.Source
	}
	q.Priced = q.Priced && x.DiskKnown
	if q.Priced {
		q.Rate = s.rates.sum()
	}
	q.Available = !d.isFull(o.ID)
}

// fullTTL is how long an offer counts as unavailable after EC2 had no capacity.
const fullTTL = 2 * time.Minute

func (d *Driver) isFull(o market.OfferID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, full := d.full[o]
	return full && d.now().Sub(at) < fullTTL
}

func (d *Driver) offerID(zone, kind string, c market.Capacity) market.OfferID {
	return market.OfferID(d.name + "/" + zone + "/" + kind + "/" + string(c))
}

// billing returns a machine's billing rules besides its rate. Sources: aws.amazon.com/ec2/pricing/on-demand (a minute
// at least) and docs.aws.amazon.com, Amazon EC2 user guide, "Billing for interrupted Spot Instances".
func billing(c market.Capacity) market.Billing {
	if c == market.Spot {
		return market.Billing{Minimum: least, FreeIfInterruptedWithin: freeWithin}
	}
	return market.Billing{Minimum: least}
}
