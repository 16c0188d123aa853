//go:build !local

package aws

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/market"
)

// maxPools bounds the types in zones that one fleet may name. Source: docs.aws.amazon.com, Amazon EC2 API reference,
// CreateFleet, "Overrides": 300 for a fleet of type instant.
const maxPools = 300

// fleetSale returns the fleet as one offer, made of the pools of a capacity; false means that none of them belongs to
// it. Its machine has the minimum of each of its types' properties, and its price is that of the most expensive pool
// that EC2 may pick.
func fleetSale(
	f *setting.Fleet, d *Driver, pools []sale, c market.Capacity,
) (s sale, ok bool, err error) {
	for n := range pools {
		p := &pools[n]
		if p.offer.Capacity != c || !f.Wants(p.kind.Name) {
			continue
		}
		if len(s.among) == 0 {
			s.kind, s.zone, s.image = p.kind, p.zone, p.image
		}
		if s.kind.Accelerator != p.kind.Accelerator || s.kind.Accelerators != p.kind.Accelerators {
			return s, false, fmt.Errorf("the fleet %s has machines with different accelerators, %s in %s and %s in %s: "+
				"write types under with.fleets that have the same", f.Name, accelerators(&s.kind), s.kind.Name,
				accelerators(&p.kind), p.kind.Name)
		}
		s.kind.CPUs, s.kind.Memory = min(s.kind.CPUs, p.kind.CPUs), min(s.kind.Memory, p.kind.Memory)
		s.kind.Video, s.kind.Cluster = min(s.kind.Video, p.kind.Video), s.kind.Cluster && p.kind.Cluster
		s.among = append(s.among, *p)
	}
	if len(s.among) == 0 {
		return s, false, nil
	}
	s.offer = s.among[0].offer
	s.offer.ID, s.offer.Zone, s.offer.Machine = d.offerID(setting.AnyZone, f.Name, c), setting.AnyZone, f.Name
	s.offer.CPUs, s.offer.Memory = s.kind.CPUs, s.kind.Memory
	s.kind.Name, s.zone.Name, s.zone.Subnet = f.Name, setting.AnyZone, ""
	priceOf(f, &s)
	s.quote.Offer, s.quote.Available = s.offer.ID, !d.isFull(s.offer.ID)
	return s, true, nil
}

// priceOf keeps the pools that EC2 may pick, the cheapest first.
func priceOf(f *setting.Fleet, s *sale) {
	s.quote = s.among[0].quote
	s.among = slices.DeleteFunc(s.among, func(p sale) bool { return !p.quote.Priced })
	s.quote.Priced = len(s.among) > 0
	if !s.quote.Priced {
		return
	}
	slices.SortFunc(s.among, func(a, b sale) int {
		return cmp.Or(cmp.Compare(a.quote.Rate, b.quote.Rate), cmp.Compare(a.offer.ID, b.offer.ID))
	})
	most := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(s.among[0].quote.Rate)), f.Bound)
	n := slices.IndexFunc(s.among, func(p sale) bool {
		return new(big.Rat).SetInt64(int64(p.quote.Rate)).Cmp(most) > 0
	})
	if n < 0 {
		n = len(s.among)
	}
	s.among = s.among[:min(n, maxPools)]
	last := s.among[len(s.among)-1]
	s.quote, s.rates = last.quote, last.rates
	for _, p := range s.among {
		if p.quote.At.Before(s.quote.At) {
			s.quote.At = p.quote.At
		}
	}
}

func accelerators(k *stock.Type) string {
	if k.Accelerators == 0 {
		return "none"
	}
	return fmt.Sprintf("%d × %s", k.Accelerators, k.Accelerator)
}

// sales returns what is sold: each type in its zone, then the fleets. Doctor reports what is wrong with a fleet.
func (d *Driver) sales(x *index) []sale {
	all := d.pools(x)
	pools := all
	for n := range d.with.Fleets {
		for _, c := range d.with.Capacity {
			if s, ok, _ := fleetSale(&d.with.Fleets[n], d, pools, c); ok {
				all = append(all, s)
			}
		}
	}
	return append(all, d.reserved(x)...)
}

// mixed returns what is wrong with the fleets; empty if nothing is.
func (d *Driver) mixed(pools []sale) string {
	var wrong []string
	for n := range d.with.Fleets {
		f := &d.with.Fleets[n]
		found := false
		for _, c := range d.with.Capacity {
			_, ok, err := fleetSale(f, d, pools, c)
			if err != nil {
				wrong = append(wrong, err.Error())
			}
			found = found || ok || err != nil
		}
		if !found {
			wrong = append(wrong, fmt.Sprintf("the fleet %s has none of what is sold: write other types under with.fleets",
				f.Name))
		}
	}
	return strings.Join(slices.Compact(wrong), "; ")
}

// ways returns the types and zones from which a request may be granted.
func (s *sale) ways() []sale {
	if len(s.among) == 0 {
		return []sale{*s}
	}
	return s.among
}
