package awstest

import (
	"net/http"

	"scrimp/internal/test/awstest/catalog"
)

// typeOf returns a type of the cloud.
func (s *Server) typeOf(name string) (catalog.Type, bool) {
	k, ok := s.types[name]
	if !ok {
		return catalog.Type{}, false
	}
	return s.o.Types[k], true
}

// zone returns a zone of the cloud.
func (s *Server) zone(name string) (catalog.Zone, bool) {
	for _, z := range s.o.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return catalog.Zone{}, false
}

// zonesOf returns the zones of a region.
func (s *Server) zonesOf(region string) (list []catalog.Zone) {
	for _, z := range s.o.Zones {
		if z.Region == region {
			list = append(list, z)
		}
	}
	return list
}

// onDemand returns the price of a type in a region.
func (s *Server) onDemand(t catalog.Type, region string) int64 {
	if p, ok := s.regional[t.Name+" "+region]; ok {
		return p
	}
	p, err := catalog.ParsePrice(t.OnDemand)
	if err != nil {
		panic(err) // New has checked it
	}
	return p
}

// spotHistory returns the prices of a pool, oldest first. A pool without its own price costs 3/10 of on-demand.
func (s *Server) spotHistory(typ, zone string) []catalog.Step {
	if h, ok := s.spot[catalog.Pool{Type: typ, Zone: zone, Spot: true}]; ok {
		return h
	}
	t, _ := s.typeOf(typ)
	z, _ := s.zone(zone)
	return []catalog.Step{{Pico: s.onDemand(t, z.Region) / 1e6 * 3 / 10 * 1e6}}
}

// quota returns how many of count instances the account's vCPU quota of the region allows, besides running ones and
// planned vCPUs of the same quota, and the refusal if not all. Sources: "Error codes for the Amazon EC2 API":
// VcpuLimitExceeded, MaxSpotInstanceCountExceeded.
func (c *call) quota(spot bool, t catalog.Type, count int) (int, error) {
	code := t.Quota(spot)
	limit, limited := c.s.quotas[code]
	if !limited {
		return count, nil
	}
	left := limit - c.planned[code]
	for _, i := range c.s.instances {
		if i.region == c.region && live(i.state) && (i.request != nil) == spot && i.typ.Quota(spot) == code {
			left -= i.typ.VCPU
		}
	}
	if n := max(0, left) / t.VCPU; n < count {
		if spot {
			return n, bad("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return n, refuse(http.StatusBadRequest, "VcpuLimitExceeded",
			"You have requested more vCPU capacity than your current "+
				"vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit "+
				"http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", limit)
	}
	return count, nil
}
