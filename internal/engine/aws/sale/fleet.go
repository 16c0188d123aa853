//go:build !local

package sale

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

// fleet returns the fleet as one offer, made of the pools of a capacity; false means that none of them belongs to
// it. Its machine has the minimum of each of its types' properties, and its price is that of the most expensive pool
// that EC2 may pick.
func (v *Seller) fleet(f *setting.Fleet, pools []Sale, c market.Capacity) (s Sale, ok bool, err error) {
	for n := range pools {
		p := &pools[n]
		if p.Offer.Capacity != c || !f.Wants(p.Kind.Name) {
			continue
		}
		if len(s.Among) == 0 {
			s.Kind, s.Zone, s.Image = p.Kind, p.Zone, p.Image
		}
		if s.Kind.Accelerator != p.Kind.Accelerator || s.Kind.Accelerators != p.Kind.Accelerators {
			return s, false, fmt.Errorf("the fleet %s has machines with different accelerators, %s in %s and %s in %s: "+
				"write types under with.fleets that have the same", f.Name, accelerators(&s.Kind), s.Kind.Name,
				accelerators(&p.Kind), p.Kind.Name)
		}
		s.Kind.CPUs, s.Kind.Memory = min(s.Kind.CPUs, p.Kind.CPUs), min(s.Kind.Memory, p.Kind.Memory)
		s.Kind.Video, s.Kind.Cluster = min(s.Kind.Video, p.Kind.Video), s.Kind.Cluster && p.Kind.Cluster
		s.Among = append(s.Among, *p)
	}
	if len(s.Among) == 0 {
		return s, false, nil
	}
	s.Offer = s.Among[0].Offer
	s.Offer.ID = stock.OfferID(v.engine, setting.AnyZone, f.Name, c)
	s.Offer.Zone, s.Offer.Machine = setting.AnyZone, f.Name
	s.Offer.CPUs, s.Offer.Memory = s.Kind.CPUs, s.Kind.Memory
	s.Kind.Name, s.Zone.Name, s.Zone.Subnet = f.Name, setting.AnyZone, ""
	priceOf(f, &s)
	s.Quote.Offer, s.Quote.Available = s.Offer.ID, !v.isFull(s.Offer.ID)
	return s, true, nil
}

// priceOf keeps the pools that EC2 may pick, the cheapest first.
func priceOf(f *setting.Fleet, s *Sale) {
	s.Quote = s.Among[0].Quote
	s.Among = slices.DeleteFunc(s.Among, func(p Sale) bool { return !p.Quote.Priced })
	s.Quote.Priced = len(s.Among) > 0
	if !s.Quote.Priced {
		return
	}
	slices.SortFunc(s.Among, func(a, b Sale) int {
		return cmp.Or(cmp.Compare(a.Quote.Rate, b.Quote.Rate), cmp.Compare(a.Offer.ID, b.Offer.ID))
	})
	most := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(s.Among[0].Quote.Rate)), f.Bound)
	n := slices.IndexFunc(s.Among, func(p Sale) bool {
		return new(big.Rat).SetInt64(int64(p.Quote.Rate)).Cmp(most) > 0
	})
	if n < 0 {
		n = len(s.Among)
	}
	s.Among = s.Among[:min(n, maxPools)]
	last := s.Among[len(s.Among)-1]
	s.Quote, s.Rates = last.Quote, last.Rates
	for _, p := range s.Among {
		if p.Quote.At.Before(s.Quote.At) {
			s.Quote.At = p.Quote.At
		}
	}
}

func accelerators(k *stock.Type) string {
	if k.Accelerators == 0 {
		return "none"
	}
	return fmt.Sprintf("%d × %s", k.Accelerators, k.Accelerator)
}

// Mixed returns what is wrong with the fleets; empty if nothing is.
func (v *Seller) Mixed(pools []Sale) string {
	var wrong []string
	for n := range v.with.Fleets {
		f := &v.with.Fleets[n]
		found := false
		for _, c := range v.with.Capacity {
			_, ok, err := v.fleet(f, pools, c)
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

// Ways returns the types and zones from which a request may be granted.
func (s *Sale) Ways() []Sale {
	if len(s.Among) == 0 {
		return []Sale{*s}
	}
	return s.Among
}
