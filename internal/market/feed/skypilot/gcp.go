package skypilot

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// skyHost is a row of SkyPilot's Google Cloud table with the price of a machine without its accelerators. Other rows,
// without a machine type, price the accelerators by kind, count and zone.
type skyHost struct {
	shape        catalog.Listing
	region, zone string
	prices       [2]string // on-demand, spot
}

// skyWith matches Google Cloud machine types that always have accelerators.
var skyWith = regexp.MustCompile(`^(a[2-9]|g[2-9])-`)

// apart stores a row that is a machine without its accelerators, or accelerators without a machine, until the whole
// table is read. It reports whether the row is one.
func (s *skyTable) apart(machine string, cell func(string) string) bool {
	kind := cell("AcceleratorName")
	if s.page.Provider != "gcp" || strings.HasPrefix(kind, "tpu") {
		return false
	}
	prices := [2]string{cell("Price"), cell("SpotPrice")}
	if cell("InstanceType") == "" {
		if s.parts == nil {
			s.parts = map[string][2]string{}
		}
		s.parts[cell("AvailabilityZone")+" "+strings.TrimSuffix(cell("AcceleratorCount"), ".0")+" "+kind] = prices
		return true
	}
	if !skyWith.MatchString(machine) || kind != "" {
		return false
	}
	shape, ok := s.page.Shapes.Machine("gcp", machine)
	if !ok || shape.Offer.Accelerators == 0 {
		s.t.Skip(catalog.NoMachine, machine, "its accelerators are priced apart, and nobody knows which it has")
		return true
	}
	s.hosts = append(s.hosts, skyHost{shape, cell("Region"), cell("AvailabilityZone"), prices})
	return true
}

// join adds up machines and their accelerators.
func (s *skyTable) join() {
	for _, h := range s.hosts {
		o := h.shape.Offer
		part, ok := s.part(h.zone, o)
		if !ok {
			s.t.Skip(catalog.NoPrice, o.Machine, "its accelerators have no row in "+h.zone)
			continue
		}
		for i, capacity := range []market.Capacity{market.OnDemand, market.Spot} {
			host, why := catalog.ParsePrice(h.prices[i])
			rate, why2 := catalog.ParsePrice(part[i])
			if why = cmp.Or(why, why2); why != "" {
				s.t.Skip(why, o.Machine, string(capacity)+" in "+h.zone)
				continue
			}
			q := market.Quote{Rate: host + rate, Priced: true, At: s.page.At, Source: s.page.Source}
			l := catalog.Sell(h.shape, h.region, h.zone, capacity, q, money.USD)
			s.rows = append(s.rows, l)
			if capacity == market.Spot {
				s.rows = append(s.rows, catalog.SellTerm(l, catalog.Terms{Term: catalog.Preemptible}, q))
			}
		}
	}
}

// skyKinds maps accelerators of Google Cloud machine types to SkyPilot's names.
var skyKinds = map[string]string{
	"A100-SXM-40GB": "A100", "A100-SXM-80GB": "A100-80GB", "H100-SXM-80GB": "H100", "H200-SXM": "H200",
	"B200-SXM": "B200", "L4": "L4",
}

// part returns the price of a machine's accelerators in a zone.
func (s *skyTable) part(zone string, o market.Offer) ([2]string, bool) {
	kind := skyKinds[o.Accelerator]
	if strings.HasPrefix(o.Machine, "a3-megagpu-") {
		kind = "H100-MEGA"
	}
	prices, ok := s.parts[zone+" "+strconv.Itoa(o.Accelerators)+" "+kind]
	return prices, ok
}
