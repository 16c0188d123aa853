package plan

import (
	"testing"

	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// A machine that is too large is refused with what it has, what the job asks for, and the form that allows it.
func TestExcess_NamesTheFieldAndTheFix(t *testing.T) {
	o := market.Offer{CPUs: 4, Memory: 8 * size.GiB, Accelerator: "L4", Accelerators: 2}
	gib := int64(size.GiB)
	for want, n := range map[string]Requirements{
		"": {CPUs: 2, MaxCPUs: 4, Memory: gib, MaxMemory: 8 * gib, MaxAccelerators: 2},
		"8GiB, and the job asks for exactly 4GiB: write memory: 4GiB+ for machines with more":      {Memory: 4 * gib, MaxMemory: 4 * gib},
		"8GiB, and the job asks for at most 6GiB: write memory: 2GiB+ for machines with more":      {Memory: 2 * gib, MaxMemory: 6 * gib},
		"4, and the job asks for exactly 2: write cpus: 2+ for machines with more":                 {CPUs: 2, MaxCPUs: 2},
		"L4:2, and the job asks for exactly L4:1: write accelerator: L4:1+ for machines with more": {Accelerator: "L4", Accelerators: 1, MaxAccelerators: 1},
	} {
		if got := n.Excess(&o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
