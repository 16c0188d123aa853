package terms

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/job/spec"
	"scrimp/internal/market"
)

// Unknown lists the engines and zones in the job's alternatives that do not exist, with those that do. The zones of
// an engine are those of its offers. An engine that has not answered yet has no known zones, and accepts any.
func Unknown(j spec.Job, engines []string, sold []market.Offer) (list spec.Problems) {
	for i, v := range j.AnyOf {
		name, zone, part := strings.Cut(v.Engine, "/")
		p := spec.Problem{Field: fmt.Sprintf("any_of[%d].engine", i)}
		zones := zonesOf(name, sold)
		switch {
		case v.Engine == "":
			continue
		case !slices.Contains(engines, name):
			p.Cause = fmt.Sprintf("is %q, and the server has no engine %s", v.Engine, name)
			p.Fix = "write one of " + strings.Join(slices.Sorted(slices.Values(engines)), ", ") +
				", or make it known with scrimp engine add"
		case part && len(zones) > 0 && !slices.Contains(zones, zone):
			p.Cause = fmt.Sprintf("is %q, and engine %s has no %s", v.Engine, name, zone)
			p.Fix = "write " + name + " for all of it, or one of " + name + "/" + strings.Join(zones, ", "+name+"/")
		default:
			continue
		}
		list = append(list, p)
	}
	return list
}

// zonesOf returns the zones of the engine's offers.
func zonesOf(engine string, sold []market.Offer) (zones []string) {
	for _, o := range sold {
		if o.Provider == engine {
			zones = append(zones, o.Zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
