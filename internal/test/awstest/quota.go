package awstest

import (
	"net/http"
)

// quotaOf maps families to the codes of their vCPU quotas, on-demand and spot. Source: "Amazon EC2 endpoints and
// quotas", AWS General Reference, read 2026-11.
var quotaOf = map[string][2]string{
	"standard": {"L-1216C47A", "L-34B43A08"}, // A, C, D, H, I, M, R, T, Z
	"g":        {"L-DB2E81BA", "L-3819A6DF"}, // G and VT
	"p":        {"L-417A185B", "L-7212CCBC"}, // P; spot: P4, P3 and P2
	"p5":       {"L-417A185B", "L-C4BD4855"}, // spot: P5
	"x":        {"L-7295265B", "L-E3A00192"},
	"inf":      {"L-1945791B", "L-B5D1601B"},
	"trn":      {"L-2C3B7624", "L-6B0D517C"},
}

var quotaNames = map[string]string{
	"L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
	"L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
	"L-DB2E81BA": "Running On-Demand G and VT instances", "L-3819A6DF": "All G and VT Spot Instance Requests",
	"L-417A185B": "Running On-Demand P instances", "L-7212CCBC": "All P4, P3 and P2 Spot Instance Requests",
	"L-C4BD4855": "All P5 Spot Instance Requests", "L-7295265B": "Running On-Demand X instances",
	"L-E3A00192": "All X Spot Instance Requests", "L-1945791B": "Running On-Demand Inf instances",
	"L-B5D1601B": "All Inf Spot Instance Requests", "L-2C3B7624": "Running On-Demand Trn instances",
	"L-6B0D517C": "All Trn Spot Instance Requests",
}

func (t Type) quota(spot bool) string {
	family := t.Family
	if family == "" {
		family = map[bool]string{true: "p5", false: "standard"}[len(t.Name) > 1 && t.Name[:2] == "p5"]
		for _, f := range []string{"inf", "trn", "g", "x", "p"} {
			if family == "standard" && len(t.Name) > len(f) && t.Name[:len(f)] == f {
				family = f
			}
		}
	}
	pair := quotaOf[family]
	return pair[map[bool]int{false: 0, true: 1}[spot]]
}

// quota returns how many of count instances the account's vCPU quota of the region allows, besides running ones and
// planned vCPUs of the same quota, and the refusal if not all. Sources: "Error codes for the Amazon EC2 API":
// VcpuLimitExceeded, MaxSpotInstanceCountExceeded.
func (c *call) quota(spot bool, t Type, count int) (int, error) {
	code := t.quota(spot)
	limit, limited := c.s.quotas[code]
	if !limited {
		return count, nil
	}
	left := limit - c.planned[code]
	for _, i := range c.s.instances {
		if i.region == c.region && live(i.state) && (i.request != nil) == spot && i.typ.quota(spot) == code {
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
