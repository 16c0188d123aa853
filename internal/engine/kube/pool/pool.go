//go:build !local

// Package pool describes the node pools from which a Kubernetes engine rents machines: their settings, offers and
// prices.
package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// The share of a node that kubelet, daemon sets and the system keep if only its type is known: 6 % of the processors
// plus 0.2, and 8 % of the memory plus 600 MiB. Clouds reserve less on large nodes; users who know better set cpus
// and memory.
const (
	keptCPU, keptMilli     = 0.06, 200
	keptMemory, keptMemMiB = 0.08, 600
)

// instance completes a pool of a known instance type from the catalogue.
func (p *Pool) instance() error {
	if p.Instance == "" {
		return nil
	}
	found, ok := listingOf(p, market.OnDemand)
	switch {
	case !ok && p.CPUs == 0:
		return fmt.Errorf("instance %s is not in the catalogue: write cpus and memory beside it (scrimp "+
			"catalog lists what is)",
			p.Instance)
	case !ok:
		return nil
	}
	if p.CPUs == 0 {
		o := &found.Offer
		milli := int64(float64(o.CPUs)*1000*(1-keptCPU)) - keptMilli
		p.milli = max(milli, 500)
		p.CPUs = max(1, int(p.milli/1000))
		p.memory = (o.Memory*(100-8)/100 - keptMemMiB*size.MiB) / size.MiB * size.MiB
		if p.Accelerators == 0 && o.Accelerators > 0 {
			p.Accelerator, p.Accelerators = o.Accelerator, o.Accelerators
		}
		p.Machine = cmp.Or(p.Machine, machineLabel(p.Instance))
	}
	if !p.priced && p.Capacity == market.OnDemand && p.Region != "" && found.Offer.Region == p.Region &&
		found.Quote.Priced {
		p.rate, p.priced = found.Quote.Rate, true
		p.source, p.at = "catalogue", found.Quote.At
	}
	return nil
}

// listingOf returns the catalogue's listing of a pool's instance type, at its region's price if there is one.
func listingOf(p *Pool, capacity market.Capacity) (catalog.Listing, bool) {
	providers := []string{"aws", "gcp", "azure"}
	if c := clouds[p.Cloud]; c != nil && p.Cloud != "karpenter" {
		providers = []string{c.provider}
	}
	all := builtin()
	for _, provider := range providers {
		i := slices.IndexFunc(all.Listings, func(l catalog.Listing) bool {
			return l.Offer.Provider == provider && l.Offer.Machine == p.Instance && l.Offer.Region == p.Region &&
				l.Offer.Capacity == capacity && l.Plain()
		})
		if i >= 0 {
			return all.Listings[i], true
		}
		if l, ok := all.Machine(provider, p.Instance); ok {
			return l, true
		}
	}
	return catalog.Listing{}, false
}

// machineLabel converts an instance type to a machine name.
func machineLabel(instance string) string {
	b := []byte(instance)
	for n, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[n] = c + 'a' - 'A'
		}
		if c == '.' || c == '_' {
			b[n] = '-'
		}
	}
	return string(b)
}

// OwnRate is the source of prices from the engine's settings.
const OwnRate = "engines.yaml"

// Sale is an offer with its pod's requests.
type Sale struct {
	Offer  market.Offer
	Quote  market.Quote
	Of     *Pool
	Milli  int64      // requested thousandths of a processor
	Memory size.Bytes // requested, and the limit
	Part   int        // the machine is one of this many parts of a node

	Unknown string // why its price is unknown, with the fix
}

// Sales returns the offers of the cluster for the named engine.
func (w *With) Sales(name string, now time.Time) []Sale {
	var all []Sale
	for n := range w.Pools {
		p := &w.Pools[n]
		for _, part := range p.Split {
			s := Sale{Of: p, Part: part, Milli: cmp.Or(p.milli, int64(p.CPUs)*1000) / int64(part),
				Memory: p.memory / size.Bytes(part) / size.MiB * size.MiB}
			o := market.Offer{Provider: name, Region: name, Zone: p.Name, Machine: p.machineName(part), Capacity: p.Capacity,
				CPUs: max(1, int(s.Milli/1000)), Memory: s.Memory, Accelerator: p.Accelerator,
				Accelerators: p.Accelerators / part, MaxLifetime: time.Duration(p.Time), Currency: w.Currency,
				Machines: p.Machines * part, Images: true}
			if p.Accelerators == 0 {
				o.Accelerator = ""
			}
			if p.Capacity == market.Spot {
				o.Notice = time.Duration(p.Grace)
			}
			o.ID = market.OfferID(name + "/" + o.Zone + "/" + o.Machine + "/" + string(o.Capacity))
			s.Offer = o
			s.Quote = market.Quote{Offer: o.ID, Rate: PartOf(p.rate, part), Priced: p.priced, Available: true, At: now.UTC(),
				Source: cmp.Or(p.source, OwnRate)}
			all = append(all, s)
		}
	}
	return all
}

// PartOf returns the rate of one of part parts, rounded up, so that together they never cost less than the whole.
func PartOf(r money.Rate, part int) money.Rate {
	n := money.Rate(part)
	return (r + n - 1) / n
}

// AmountOf returns an amount of memory in Kubernetes' notation.
func AmountOf(b size.Bytes) string { return strconv.FormatInt(int64(b), 10) }
