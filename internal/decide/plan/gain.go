package plan

import (
	"cmp"
	"slices"

	"scrimp/internal/market"
)

// Gain returns how many times as fast the work is on units processors (or accelerators) as on least of them. parallel
// is the share of its time on least that shrinks in proportion to their number (Amdahl's law), 0 ≤ parallel ≤ 1. With
// 0.9, 16 instead of 4 give 1 / (0.1 + 0.9 · 4/16) = 3.08. 0 means that nothing shows a gain. TestGain_IsAmdahlsLaw.
func Gain(parallel float64, least, units int) float64 {
	if parallel <= 0 || least <= 0 || units <= least {
		return 1
	}
	return 1 / (1 - parallel + float64(min(parallel, 1)*float64(least)/float64(units)))
}

// Gets is the number of processors, or of accelerators, that a job with a range of them has on a machine, and why.
type Gets struct {
	Field string `json:"field"` // cpus or accelerator
	Units int    `json:"units"`
	Least int    `json:"least"`          // lower end of the range
	Most  int    `json:"most,omitempty"` // upper end; 0: none
	// Faster is the speed of the work relative to the lower end; 1 if Units is Least, or if nothing shows a gain.
	Faster float64 `json:"faster"`
	// Shown is set if work.parallel or measured runs show that more of them are faster.
	Shown bool `json:"shown,omitempty"`
}

// ends returns the range that decides the speed of the work: accelerators if it requests them, otherwise processors.
func (n *Requirements) ends() (field string, least, most int) {
	if n.Accelerator != "" {
		return "accelerator", n.gpus(), n.MaxAccelerators
	}
	return "cpus", n.CPUs, n.MaxCPUs
}

// Ranges reports whether the work may have more than its least number of processors, or of accelerators.
func (n *Requirements) Ranges() bool {
	_, least, most := n.ends()
	return least > 0 && most != least
}

// With returns the requirements with that number of processors, or of accelerators, as their lower end.
func (n *Requirements) With(units int) *Requirements {
	w := *n
	if n.Accelerator != "" {
		w.Accelerators = units
	} else {
		w.CPUs = units
	}
	return &w
}

// unitsOf returns how many processors, or accelerators, a machine of o has.
func (n *Requirements) unitsOf(o *market.Offer) int {
	if n.Accelerator != "" {
		return o.Accelerators
	}
	return o.CPUs
}

// MostUnits returns the largest number of processors, or of accelerators, that the work may have on a machine of o that
// tasks share if that many are free there. Only a stated upper end makes a portion larger than the least: with 4+ it
// would always be the whole machine. It is never below the least.
func (n *Requirements) MostUnits(o *market.Offer, free int) int {
	_, least, most := n.ends()
	if most <= least || least == 0 {
		return least
	}
	units := min(most, free)
	if units >= n.unitsOf(o) && n.exceeded(o) {
		units = n.unitsOf(o) - 1 // all of it would be the whole machine, with more memory than the job may have
	}
	return max(least, units)
}

// Units returns how many processors, or accelerators, the work has on a machine of l that it does not share yet. If
// crowded is set it has the least number of a machine that tasks may share, so that others find room.
func (n *Need) Units(way int, l *Listing, crowded bool) int {
	asks, _ := n.way(way)
	_, least, most := asks.ends()
	has := asks.unitsOf(&l.Offer)
	switch {
	case least == 0:
		return 0
	case l.shared && asks.isPart(&l.Offer) && (crowded || n.Parallel <= 0):
		return least
	case l.shared && asks.isPart(&l.Offer):
		return asks.MostUnits(&l.Offer, has)
	case most > 0:
		return max(least, min(most, has))
	}
	return max(least, has)
}

// GainOf returns the speed of the work in that variant on units processors, or accelerators, relative to its lower end.
func (n *Need) GainOf(variant string, units int) float64 {
	_, least, _ := n.RequirementsOf(variant).ends()
	return Gain(n.Parallel, least, units)
}

// speedOn returns the speed of the work on units processors, or accelerators, of a machine of l, done that way.
func (n *Need) speedOn(way int, l *Listing, units int) float64 {
	asks, faster := n.way(way)
	_, least, _ := asks.ends()
	return cmp.Or(max(l.Offer.Speed, 0), 1) * faster * Gain(n.Parallel, least, units)
}

// SpeedOn returns the speed of the work in that variant on that many processors, or accelerators, of a machine of o; 0
// units are all that it may have of a machine of its own.
func (n *Need) SpeedOn(o *market.Offer, variant string, units int) float64 {
	way := 1 + slices.IndexFunc(n.Variants, func(v Variant) bool { return v.Name == variant })
	l := &Listing{Offer: *o}
	if units == 0 {
		units = n.Units(way, l, false)
	}
	return n.speedOn(way, l, units)
}

// gets returns what the work has on an option. It is zero if its requirements leave no range, or have no upper end and
// nothing shows a gain.
func (n *Need) gets(o *Option) (g Gets) {
	asks, _ := n.way(o.way)
	field, least, most := asks.ends()
	if !asks.Ranges() || o.units == 0 || most == 0 && n.Parallel <= 0 {
		return g
	}
	return Gets{field, o.units, least, most, Gain(n.Parallel, least, o.units), n.Parallel > 0}
}
