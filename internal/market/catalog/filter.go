package catalog

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
)

// Filter selects listings. Zero fields select all.
type Filter struct {
	Accelerator string // H100, A100-80GB; "none" for machines without accelerators
	Least       int    // accelerators in a machine
	Most        int    // 0 for no limit
	Trains      bool   // excludes accelerators that only serve models
	// Memory is the minimum memory of one accelerator. Machines without accelerators, or with unknown memory, do not
	// match.
	Memory    size.Bytes
	CPUs      int        // at least
	MostCPUs  int        // 0 for no limit
	RAM       size.Bytes // of the machine, at least
	MostRAM   size.Bytes // 0 for no limit
	Providers []string   // patterns: *, ? and [a-z], of the whole name
	Regions   []string   // patterns, of a region or a zone
	Machines  []string   // patterns
	Capacity  []market.Capacity
	MaxRate   money.Rate // per hour, in any currency; 0 for no limit
	Zones     []string   // patterns, of the zone of offers sold by zone
	Terms     []string   // patterns, of the term; NoTerm for none
	Platforms []string   // patterns, of the managed platform; Raw for none
}

// ParseAccelerator parses a kind with an optional count into f: H100, H100:8, H100:2+ or H100:1..8.
func (f *Filter) ParseAccelerator(s string) error {
	kind, count, counted := strings.Cut(s, ":")
	if f.Accelerator = strings.TrimSpace(kind); f.Accelerator == "" {
		return fmt.Errorf("%q is not an accelerator such as H100, H100:8, H100:2+ or H100:1..8", s)
	}
	if !counted {
		return nil
	}
	low, high, isRange := strings.Cut(count, "..")
	low, isOpen := strings.CutSuffix(low, "+")
	least, err := strconv.Atoi(strings.TrimSpace(low))
	f.Least, f.Most = least, least
	if err == nil && isRange {
		f.Most, err = strconv.Atoi(strings.TrimSpace(high))
	}
	if isOpen {
		f.Most = 0
	}
	if err != nil || f.Least < 1 || !isOpen && f.Most < f.Least || isOpen && isRange {
		return fmt.Errorf("%q is not a count of accelerators such as 8, 2+ or 1..8", count)
	}
	return nil
}

// Check returns an error for an invalid pattern.
func (f Filter) Check() error {
	for _, p := range slices.Concat(f.Providers, f.Regions, f.Machines, f.Zones, f.Terms, f.Platforms) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

// Match returns the listings that f selects, in catalogue order.
func (c Catalog) Match(f Filter) []Listing {
	var out []Listing
	for _, l := range c.Listings {
		if f.Takes(l) {
			out = append(out, l)
		}
	}
	return out
}

// Cheapest returns the cheapest plain offer that f takes, of those with a price in a currency.
func (c Catalog) Cheapest(f Filter, in money.Currency) (best Listing, ok bool) {
	for _, l := range c.Match(f) {
		if l.Plain() && l.Quote.Priced && l.Offer.Currency == in && (!ok || l.Quote.Rate < best.Quote.Rate) {
			best, ok = l, true
		}
	}
	return best, ok
}

// Wish is one condition of a filter, with the number of matching listings without it.
type Wish struct {
	Name     string // the name of its flag
	Listings int
}

// Nearly returns, if nothing matches f, each condition without which something would.
func (c Catalog) Nearly(f Filter) []Wish {
	var list []Wish
	for _, w := range []struct {
		name string
		on   bool
		drop func(*Filter)
	}{
		{"gpu", f.Accelerator != "", func(f *Filter) { f.Accelerator, f.Least, f.Most = "", 0, 0 }},
		{"min-memory", f.Memory > 0, func(f *Filter) { f.Memory = 0 }},
		{"cpus", f.CPUs > 0 || f.MostCPUs > 0, func(f *Filter) { f.CPUs, f.MostCPUs = 0, 0 }},
		{"ram", f.RAM > 0 || f.MostRAM > 0, func(f *Filter) { f.RAM, f.MostRAM = 0, 0 }},
		{"region", len(f.Regions) > 0, func(f *Filter) { f.Regions = nil }},
		{"provider", len(f.Providers) > 0, func(f *Filter) { f.Providers = nil }},
		{"machine", len(f.Machines) > 0, func(f *Filter) { f.Machines = nil }},
		{"capacity", len(f.Capacity) > 0, func(f *Filter) { f.Capacity = nil }},
		{"zone", len(f.Zones) > 0, func(f *Filter) { f.Zones = nil }},
		{"term", len(f.Terms) > 0, func(f *Filter) { f.Terms = nil }},
		{"platform", len(f.Platforms) > 0, func(f *Filter) { f.Platforms = nil }},
		{"max-price", f.MaxRate > 0, func(f *Filter) { f.MaxRate = 0 }},
	} {
		if !w.on {
			continue
		}
		g := f
		w.drop(&g)
		if n := len(c.Match(g)); n > 0 {
			list = append(list, Wish{w.name, n})
		}
	}
	return list
}

// Takes reports whether f selects l.
func (f Filter) Takes(l Listing) bool {
	o := &l.Offer
	return f.takesAccelerator(l) && f.takesSize(o) && f.takesPlace(o) &&
		(len(f.Capacity) == 0 || slices.Contains(f.Capacity, o.Capacity)) &&
		(f.MaxRate == 0 || l.Quote.Priced && l.Quote.Rate <= f.MaxRate) &&
		matchAny(f.Terms, cmp.Or(string(l.Term), NoTerm)) && matchAny(f.Platforms, cmp.Or(l.Platform, Raw)) &&
		matchAny(f.Machines, o.Machine)
}

// takesSize reports whether the machine has as many processors and as much memory as f asks for.
func (f *Filter) takesSize(o *market.Offer) bool {
	return o.CPUs >= f.CPUs && (f.MostCPUs == 0 || o.CPUs <= f.MostCPUs) &&
		o.Memory >= f.RAM && (f.MostRAM == 0 || o.Memory <= f.MostRAM)
}

// takesPlace reports whether f asks for the offer's provider, zone and region. A pattern of a region may match a zone.
func (f *Filter) takesPlace(o *market.Offer) bool {
	return matchAny(f.Providers, o.Provider) && (len(f.Zones) == 0 || o.Zone != "" && matchAny(f.Zones, o.Zone)) &&
		(matchAny(f.Regions, o.Region) || o.Zone != "" && matchAny(f.Regions, o.Zone))
}

// takesAccelerator reports whether f selects the accelerators of l.
func (f Filter) takesAccelerator(l Listing) bool {
	o := l.Offer
	switch {
	case f.Trains && accelerator.InferenceOnly(o.Accelerator):
		return false
	case f.Accelerator == "none":
		if o.Accelerator != "" {
			return false
		}
	case f.Accelerator != "" && !accelerator.Matches(f.Accelerator, o.Accelerator):
		return false
	}
	return o.Accelerators >= f.Least && (f.Most == 0 || o.Accelerators <= f.Most) &&
		(f.Memory == 0 || o.Accelerator != "" && l.AcceleratorMemory >= f.Memory)
}

func matchAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(strings.ToLower(p), strings.ToLower(name))
		return ok && err == nil
	})
}
