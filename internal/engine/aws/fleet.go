//go:build !local

package aws

import (
	"cmp"
	"fmt"
	"math/big"
	"path"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/market"
)

// Fleet is a set of types and zones from which EC2 picks machines: those of which it has most, at a price that is
// bounded. One offer of each capacity stands for it.
type Fleet struct {
	Name  string   `yaml:"name"`
	Types []string `yaml:"types,omitempty"` // of the engine's, also as patterns; none: all
	// Within is how much more than the cheapest a machine may cost, in percent: 10%; "": 10%.
	Within string `yaml:"within,omitempty"`

	within *big.Rat // 1.1
}

// anyZone stands for all zones of the subnets.
const anyZone = "any"

// mostPools is how many types in a zone one fleet may name. Source: docs.aws.amazon.com, Amazon EC2 API reference,
// CreateFleet, "Overrides": 300 of a fleet of type instant.
const mostPools = 300

var (
	fleetName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)
	percent   = regexp.MustCompile(`^([0-9]{1,3})%$`)
)

// fleets checks what is set of fleets.
func (w *With) fleets() error {
	names := map[string]bool{}
	for n := range w.Fleets {
		f := &w.Fleets[n]
		at := fmt.Sprintf("with: fleets: %s", cmp.Or(f.Name, fmt.Sprint("the ", n+1, ".")))
		m := percent.FindStringSubmatch(cmp.Or(f.Within, "10%"))
		switch {
		case !fleetName.MatchString(f.Name):
			return fmt.Errorf("%s: name is %q: write small letters, digits and dashes, such as a10g", at, f.Name)
		case names[f.Name]:
			return fmt.Errorf("%s: there are two of that name: each has its own", at)
		case m == nil:
			return fmt.Errorf("%s: within is %q: write how much more than the cheapest a machine may cost, such as 10%%",
				at, f.Within)
		}
		names[f.Name] = true
		f.within, _ = new(big.Rat).SetString(m[1])
		f.within = f.within.Quo(f.within.Add(f.within, big.NewRat(100, 1)), big.NewRat(100, 1))
		for _, t := range f.Types {
			if _, err := path.Match(t, "a.b"); err != nil || !typeName.MatchString(t) {
				return fmt.Errorf("%s: types has %q: write an instance type, such as g5.xlarge, or a pattern, such as g5.*", at, t)
			}
		}
	}
	return nil
}

func (f *Fleet) wants(kind string) bool {
	return len(f.Types) == 0 ||
		slices.ContainsFunc(f.Types, func(p string) bool { ok, _ := path.Match(p, kind); return ok })
}

// sale is the fleet as one offer, made of the pools of a capacity; false: none of them is its. Its machine has at least
// what each of its types has, and is priced as the dearest that may be picked.
func (f *Fleet) sale(d *Driver, pools []sale, c market.Capacity) (s sale, ok bool, err error) {
	for n := range pools {
		p := &pools[n]
		if p.offer.Capacity != c || !f.wants(p.kind.name) {
			continue
		}
		if len(s.among) == 0 {
			s.kind, s.zone, s.image = p.kind, p.zone, p.image
		}
		if s.kind.accelerator != p.kind.accelerator || s.kind.accelerators != p.kind.accelerators {
			return s, false, fmt.Errorf("the fleet %s has machines with different accelerators, %s in %s and %s in %s: "+
				"write types under with.fleets that have the same", f.Name, accelerators(&s.kind), s.kind.name,
				accelerators(&p.kind), p.kind.name)
		}
		s.kind.cpus, s.kind.memory = min(s.kind.cpus, p.kind.cpus), min(s.kind.memory, p.kind.memory)
		s.kind.video, s.kind.cluster = min(s.kind.video, p.kind.video), s.kind.cluster && p.kind.cluster
		s.among = append(s.among, *p)
	}
	if len(s.among) == 0 {
		return s, false, nil
	}
	s.offer = s.among[0].offer
	s.offer.ID, s.offer.Zone, s.offer.Machine = d.offerID(anyZone, f.Name, c), anyZone, f.Name
	s.offer.CPUs, s.offer.Memory = s.kind.cpus, s.kind.memory
	s.kind.name, s.zone.name, s.zone.subnet = f.Name, anyZone, ""
	f.price(&s)
	s.quote.Offer, s.quote.Available = s.offer.ID, !d.isFull(s.offer.ID)
	return s, true, nil
}

// price keeps the pools that may be picked, the cheapest first.
func (f *Fleet) price(s *sale) {
	s.quote = s.among[0].quote
	s.among = slices.DeleteFunc(s.among, func(p sale) bool { return !p.quote.Priced })
	s.quote.Priced = len(s.among) > 0
	if !s.quote.Priced {
		return
	}
	slices.SortFunc(s.among, func(a, b sale) int {
		return cmp.Or(cmp.Compare(a.quote.Rate, b.quote.Rate), cmp.Compare(a.offer.ID, b.offer.ID))
	})
	most := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(s.among[0].quote.Rate)), f.within)
	n := slices.IndexFunc(s.among, func(p sale) bool {
		return new(big.Rat).SetInt64(int64(p.quote.Rate)).Cmp(most) > 0
	})
	if n < 0 {
		n = len(s.among)
	}
	s.among = s.among[:min(n, mostPools)]
	last := s.among[len(s.among)-1]
	s.quote, s.rates = last.quote, last.rates
	for _, p := range s.among {
		if p.quote.At.Before(s.quote.At) {
			s.quote.At = p.quote.At
		}
	}
}

func accelerators(k *kind) string {
	if k.accelerators == 0 {
		return "none"
	}
	return fmt.Sprintf("%d × %s", k.accelerators, k.accelerator)
}

// sales are what is sold: each type in its zone, then the fleets. What is wrong with a fleet the doctor says.
func (d *Driver) sales(x *index) []sale {
	all := d.pools(x)
	pools := all
	for n := range d.with.Fleets {
		for _, c := range d.with.Capacity {
			if s, ok, _ := d.with.Fleets[n].sale(d, pools, c); ok {
				all = append(all, s)
			}
		}
	}
	return append(all, d.reserved(x)...)
}

// mixed says what is wrong with the fleets; "": nothing is.
func (d *Driver) mixed(pools []sale) string {
	var wrong []string
	for n := range d.with.Fleets {
		f := &d.with.Fleets[n]
		found := false
		for _, c := range d.with.Capacity {
			_, ok, err := f.sale(d, pools, c)
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

// ways are the types and zones that a request may be granted from.
func (s *sale) ways() []sale {
	if len(s.among) == 0 {
		return []sale{*s}
	}
	return s.among
}
