//go:build !local

package aws

import (
	"context"
	"runtime"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"scrimp/internal/engine/aws/answer"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// acceleratorName is the catalogue's name of what EC2 calls by its maker and name.
func acceleratorName(machine, maker, name string, memory size.Bytes) string {
	if a, ok := known().accelerators[machine]; ok {
		return a
	}
	if maker == "AMD" {
		name = "radeon " + name
	}
	return catalog.Resolve(name, machine, memory)
}

// rateOf is the product's on-demand price per unit, the first tier; false: it has none above zero.
func rateOf(p *answer.Product, unit string) (money.Rate, bool) {
	for _, d := range p.Prices {
		r, err := money.ParseRate(d.USD)
		if d.Unit == unit && (d.Begin == "" || d.Begin == "0") && err == nil && r > 0 {
			return r, true
		}
	}
	return 0, false
}

// readPrices reads what machines cost on demand, and what their disks do. Where the price list may not be read, the
// catalogue says it.
func (d *Driver) readPrices(ctx context.Context, a *api, x *index) error {
	x.listed, x.disk, x.diskKnown = map[string]listPrice{}, d.with.diskRate, d.with.diskSaid
	machines := map[string]string{"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
		"capacitystatus": "Used", "marketoption": "OnDemand"}
	err := d.products(ctx, a, machines, func(p *answer.Product) {
		if rate, ok := rateOf(p, "Hrs"); ok && d.with.wants(p.Machine) {
			x.listed[p.Machine] = listPrice{rate, d.now().UTC(), "aws"}
		}
	})
	if err == nil && !x.diskKnown {
		disks := map[string]string{"productFamily": "Storage", "volumeApiName": "gp3"}
		err = d.products(ctx, a, disks, func(p *answer.Product) {
			if rate, ok := rateOf(p, "GB-Mo"); ok {
				x.disk, x.diskKnown = rate, true
			}
		})
	}
	x.pricesAt = d.now()
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.log.Warn("the price list is not read: prices are the catalogue's", "engine", d.name, "error", saidBy(err))
		x.pricesAt = d.now().Add(pricesAgain - pricesFor)
	}
	for _, l := range known().onDemand[d.with.Region] {
		o := l.Offer
		if _, has := x.listed[o.Machine]; !has && d.with.wants(o.Machine) {
			x.listed[o.Machine] = listPrice{l.Quote.Rate, l.Quote.At, "catalogue"}
		}
	}
	return nil
}

// products reads the products of EC2 in the region that have these attributes.
func (d *Driver) products(ctx context.Context, a *api, has map[string]string, each func(*answer.Product)) error {
	in := &pricing.GetProductsInput{ServiceCode: sdk.String("AmazonEC2"), FormatVersion: sdk.String("aws_v1"),
		MaxResults: sdk.Int32(100)}
	has["regionCode"] = d.with.Region
	if len(d.with.Types) == 1 && has["volumeApiName"] == "" && !isPattern(d.with.Types[0]) {
		has["instanceType"] = d.with.Types[0]
	}
	for field, value := range has {
		in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: sdk.String(field),
			Value: sdk.String(value)})
	}
	pages := pricing.NewGetProductsPaginator(a.prices, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, answer.LeanProducts)
		if err != nil {
			return err
		}
		for _, text := range page.PriceList {
			if p, ok := answer.ProductOf(text); ok { // one that is not of its form has no price
				each(&p)
			}
		}
	}
	return nil
}

// addressRate is of a public IPv4 address, an hour. Source: aws.amazon.com/vpc/pricing, "Public IPv4 Address", since
// 2024-02-01 the same in all regions.
const addressRate = "0.005"

// monthHours are the hours of a month by which a price per GiB and month becomes one of an hour: 30 days. Source:
// aws.amazon.com/ebs/pricing, the examples.
const monthHours = 720

// besides is what a machine's disk and address cost an hour in a zone.
func (d *Driver) besides(x *index, zone string) (disk, address money.Rate) {
	whole := x.disk.Times(int(d.with.disk / size.GiB))
	disk = (whole + monthHours - 1) / monthHours
	if x.zones[zone].public {
		address, _ = money.ParseRate(addressRate)
	}
	return disk, address
}

// sale is an offer with what its launch needs.
type sale struct {
	offer market.Offer
	quote market.Quote
	kind  kind
	zone  zone
	image machineImage
	rates rates
	held  *held  // the reservation of capacity that it is of; nil: it is of none
	among []sale // of a fleet, what may be picked, the cheapest first; nil: it is one type in one zone
}

// freeWithin is how long a spot machine that EC2 takes costs nothing, least what every machine costs at least.
const (
	freeWithin = time.Hour
	least      = time.Minute
	warning    = 2 * time.Minute // of an interruption
)

// archOf is how Go names a processor: machines run the server's own program.
var archOf = map[ec2types.ArchitectureType]string{ec2types.ArchitectureTypeX8664: "amd64",
	ec2types.ArchitectureTypeArm64: "arm64"}

// pools are each type in each of its zones, in the order of types, zones and capacities.
func (d *Driver) pools(x *index) []sale {
	most := 0
	for _, zones := range x.sold {
		most += len(zones) * len(d.with.Capacity)
	}
	all := make([]sale, 0, most) // 700 bytes each: to grow the list takes longer than to write it
	for n := range x.types {
		k := &x.types[n]
		image, ok := x.images[k.arch]
		if !ok || archOf[k.arch] != runtime.GOARCH {
			continue // nothing to begin it from, or the agent does not run there: the doctor says so
		}
		for _, name := range x.sold[k.name] {
			z := x.zones[name]
			for _, c := range d.with.Capacity {
				if c == market.Spot && !k.spot || c == market.OnDemand && !k.demand {
					continue
				}
				all = all[:len(all)+1] // written in place
				s := &all[len(all)-1]
				s.kind, s.zone, s.image = *k, z, image
				d.fill(x, s, c)
			}
		}
	}
	return all
}

// fill writes what a sale's machine is and what it costs now.
func (d *Driver) fill(x *index, s *sale, c market.Capacity) {
	k, name := &s.kind, s.zone.name
	o, q := &s.offer, &s.quote
	o.ID, o.Provider, o.Region, o.Zone = d.offerID(name, k.name, c), d.name, d.with.Region, name
	o.Machine, o.Capacity, o.CPUs, o.Memory = k.name, c, k.cpus, k.memory
	o.Accelerator, o.Accelerators = k.accelerator, k.accelerators
	o.Currency, o.Billing = money.USD, billing(c)
	q.Offer, q.At, q.Source = o.ID, x.pricesAt.UTC(), "aws"
	s.rates.currency = money.USD
	s.rates.disk, s.rates.address = d.besides(x, name)
	if c == market.Spot {
		o.Notice = warning
		p, ok := x.spot[spotKey{name, k.name}]
		s.rates.machine, q.Priced, q.At = p.rate, ok, x.spotAt.UTC()
	} else if p, ok := x.listed[k.name]; ok {
		s.rates.machine, q.Priced, q.At, q.Source = p.rate, true, p.at, p.source
	}
	q.Priced = q.Priced && x.diskKnown
	if q.Priced {
		q.Rate = s.rates.sum()
	}
	q.Available = !d.isFull(o.ID)
}

// fullFor is how long an offer counts as not to be had after EC2 had none.
const fullFor = 2 * time.Minute

func (d *Driver) isFull(o market.OfferID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, full := d.full[o]
	return full && d.now().Sub(at) < fullFor
}

func (d *Driver) offerID(zone, kind string, c market.Capacity) market.OfferID {
	return market.OfferID(d.name + "/" + zone + "/" + kind + "/" + string(c))
}

// billing is what a machine costs besides its seconds. Sources: aws.amazon.com/ec2/pricing/on-demand (a minute at
// least) and docs.aws.amazon.com, Amazon EC2 user guide, "Billing for interrupted Spot Instances".
func billing(c market.Capacity) market.Billing {
	if c == market.Spot {
		return market.Billing{Minimum: least, FreeIfInterruptedWithin: freeWithin}
	}
	return market.Billing{Minimum: least}
}
