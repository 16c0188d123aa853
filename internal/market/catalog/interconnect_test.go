package catalog

import (
	"strings"
	"testing"
)

// Each row of the table belongs to a machine type of the catalogue, and has a source and a date.
func TestInterconnects_BelongToSoldMachines(t *testing.T) {
	for key, x := range interconnects {
		provider, machine, _ := strings.Cut(key, "/")
		if _, ok := Builtin().Machine(provider, machine); !ok {
			t.Errorf("%s is not sold", key)
		}
		if x.Source == "" || x.At.IsZero() || !x.Network.OK && !x.Link.OK {
			t.Errorf("%s: %+v", key, x)
		}
	}
	for _, l := range Builtin().Listings {
		if o := l.Offer; o.Accelerators >= 8 && (o.Provider == "aws" || o.Provider == "azure" || o.Provider == "gcp") && !l.Network.OK {
			t.Errorf("the network of %s is not known", o.Machine)
		}
	}
	head := "provider,machine,network_gbps,link_gb_s,source,date\n"
	for _, bad := range []string{"x,m,fast,,s,2026-01-01\n", "x,m,0,,s,2026-01-01\n", "x,m,1,,,2026-01-01\n", "x,m,1,,s,soon\n",
		"x,m,1,,s,2026-01-01\nx,M,2,,s,2026-01-01\n", "x,m,1,NaN,s,2026-01-01\n"} {
		if _, err := parseInterconnects(head + bad); err == nil {
			t.Errorf("taken: %q", bad)
		}
	}
}
