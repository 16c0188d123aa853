package plan

import (
	"slices"
	"strings"

	"scrimp/internal/decide/policy"
)

// mostZones is the largest number of zones weighed against each other.
const mostZones = 64

// zones returns the spot markets of a job that may choose between zones, sorted by ID. It returns nil if the job
// may not choose, if its future cannot be weighed, or if the zones are not alternatives: they differ in speed, do
// not undercut on-demand, or are more than mostZones.
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

// onDemandIn returns the cheapest on-demand option of a region that does the work in the same way and at the same
// speed as the best one overall, or the best one overall if the region has none.
func (r *ranking) onDemandIn(region string) *Option {
	for _, o := range r.usable { // in order of price
		if !o.spot && o.Offer.Region == region && perHour(o) == perHour(r.onDemand) && o.way == r.onDemand.way {
			return o
		}
	}
	return r.onDemand
}
