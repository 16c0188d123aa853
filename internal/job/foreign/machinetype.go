package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/foreign/gpu"
	"scrimp/internal/job/foreign/node"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// machineTypes holds the offer of each machine type of the catalogue, by its name in lower case.
var machineTypes = sync.OnceValue(func() map[string]market.Offer {
	all := map[string]market.Offer{}
	for _, l := range catalog.Builtin().Listings {
		if l.Plain() {
			all[strings.ToLower(l.Offer.Machine)] = l.Offer
		}
	}
	return all
})

// machineType sets in r what the named machine type has, unless r says it already. It returns false for a type that the
// catalogue does not know.
func machineType(r *yaml.Node, name string) bool {
	o, ok := machineTypes()[strings.ToLower(name)]
	if !ok {
		return false
	}
	put := func(key, value string) {
		if node.Find(r, key) == nil {
			node.Set(r, key, node.Text(value))
		}
	}
	if o.Accelerators > 0 {
		put("accelerator", gpu.Counted(o.Accelerator, strconv.Itoa(o.Accelerators)))
		return true
	}
	put("cpus", fmt.Sprintf("%d+", o.CPUs))
	if o.Memory > 0 {
		put("memory", fmt.Sprintf("%dGiB+", o.Memory>>30))
	}
	return true
}
