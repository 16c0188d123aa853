//go:build !local

// Package pool is the kinds of nodes from which an engine of Kubernetes rents machines: its settings, what is sold of
// each pool, and what that costs.
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

// What kubelet, daemon sets and the system keep of a node whose type alone is known: of the processors 6 % and 0.2,
// of the memory 8 % and 600 MiB. The clouds reserve less on large nodes; who knows better states cpus and memory.
const (
	keptCPU, keptMilli     = 0.06, 200
	keptMemory, keptMemMiB = 0.08, 600
)

// instance takes from the catalogue what is not said of a pool whose nodes are of one type.
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

// listingOf is what the catalogue says of a pool's type of nodes, at the price of its region where it has one.
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

// machineLabel is the name of an instance type as that of a machine.
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

// OwnRate is the source of prices that the engine's settings say.
const OwnRate = "engines.yaml"

// Sale is an offer with what a pod asks for.
type Sale struct {
	Offer  market.Offer
	Quote  market.Quote
	Of     *Pool
	Milli  int64      // thousandths of a processor that are asked for
	Memory size.Bytes // that is asked for, and the limit
	Part   int        // the machine is one part of so many

	Unknown string // why its price is not known, with the fix
}

// Sales are what is sold of the cluster, for the engine of that name.
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

// PartOf is the rate of one of so many parts, rounded up: together they never cost less than the whole.
func PartOf(r money.Rate, part int) money.Rate {
	n := money.Rate(part)
	return (r + n - 1) / n
}

// AmountOf is an amount of memory as Kubernetes writes it.
func AmountOf(b size.Bytes) string { return strconv.FormatInt(int64(b), 10) }
