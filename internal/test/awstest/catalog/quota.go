package catalog

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

// QuotaNames maps the codes of quotas to their names.
var QuotaNames = map[string]string{
	"L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
	"L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
	"L-DB2E81BA": "Running On-Demand G and VT instances", "L-3819A6DF": "All G and VT Spot Instance Requests",
	"L-417A185B": "Running On-Demand P instances", "L-7212CCBC": "All P4, P3 and P2 Spot Instance Requests",
	"L-C4BD4855": "All P5 Spot Instance Requests", "L-7295265B": "Running On-Demand X instances",
	"L-E3A00192": "All X Spot Instance Requests", "L-1945791B": "Running On-Demand Inf instances",
	"L-B5D1601B": "All Inf Spot Instance Requests", "L-2C3B7624": "Running On-Demand Trn instances",
	"L-6B0D517C": "All Trn Spot Instance Requests",
}

// Quota returns the code of the vCPU quota that the type counts against.
func (t Type) Quota(spot bool) string {
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
