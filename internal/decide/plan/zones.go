package plan

import (
	"slices"
	"strings"

	"scrimp/internal/decide/policy"
)

// mostZones is how many zones are weighed against each other.
const mostZones = 64

// zones returns the spot markets of a job that may choose between zones, in the order of
// their names; nil where it may not, where its future cannot be weighed, or where they
// are no alternatives to each other (other speeds, prices that do not undercut
// on-demand, more than mostZones).
func (r *ranking) zones(job *Job, v *policy.View) []*Option {
	if !job.byDefault() || job.Need.Critical || r.onDemand == nil || len(r.spots) < 2 || len(r.spots) > mostZones ||
		!placeable(v) {
		return nil
	}
	for _, o := range r.spots {
		if perHour(o) != perHour(r.onDemand) || o.way != r.onDemand.way ||
			perWork(o) >= perWork(r.onDemandIn(o.Offer.Region)) {
			return nil
		}
	}
	list := slices.Clone(r.spots)
	slices.SortFunc(list, func(a, b *Option) int { return strings.Compare(string(a.Offer.ID), string(b.Offer.ID)) })
	return list
}

// onDemandIn is the cheapest on-demand of a region that does the work as the best of all does; that where the
// region has none.
func (r *ranking) onDemandIn(region string) *Option {
	for _, o := range r.usable { // in the order of their prices
		if !o.spot && o.Offer.Region == region && perHour(o) == perHour(r.onDemand) && o.way == r.onDemand.way {
			return o
		}
	}
	return r.onDemand
}
