package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// machineType returns the offer of a machine type of the catalogue.
func machineType(name string) (o market.Offer, ok bool) {
	for _, l := range catalog.Builtin().Listings {
		if l.Plain() && strings.EqualFold(l.Offer.Machine, name) {
			o, ok = l.Offer, true
		}
	}
	return o, ok
}

// MachineType sets in r what the named machine type has, unless r says it already. It returns false for a type that the
// catalogue does not know.
func MachineType(r *yaml.Node, name string) bool {
	o, ok := machineType(name)
	if !ok {
		return false
	}
	put := func(key, value string) {
		if node.Find(r, key) == nil {
			node.Set(r, key, node.Text(value))
		}
	}
	if o.Accelerators > 0 {
		put("accelerator", Counted(o.Accelerator, strconv.Itoa(o.Accelerators)))
		return true
	}
	put("cpus", fmt.Sprintf("%d+", o.CPUs))
	if o.Memory > 0 {
		put("memory", fmt.Sprintf("%dGiB+", o.Memory>>30))
	}
	return true
}
