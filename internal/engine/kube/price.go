//go:build !local

package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed"
)

// price is what a machine costs an hour as the cluster's nodes or the catalogue say it, where the pool's rate does
// not. A price that nobody says is unknown: why says what is missing, and rate means nothing.
type price struct {
	rate   money.Rate
	known  bool
	source string // in words for people
	why    string
	silent bool // nobody was there to say it: what was known holds
	at     time.Time
}

// builtin is the catalogue that the program carries, read once: that takes a tenth of a second.
var builtin = sync.OnceValue(catalog.Builtin)

// list is a catalogue in which what is asked for again is found at once: many nodes are alike.
type list struct {
	name  string                       // of the engine, which prices.csv has as a region
	rows  map[string][]catalog.Listing // by provider and machine, in small letters
	found map[place]catalog.Listing
}

// place is what a price depends on.
type place struct {
	provider, machine, region, zone string
	capacity                        market.Capacity
}

// listOf is the catalogue of a data folder for the engine of that name: what the program carries, what was fetched, and
// the user's prices.csv over both; "": what the program carries.
func listOf(dir, name string) (*list, error) {
	all, err := builtin(), error(nil)
	if dir != "" {
		all, _, err = feed.Load(dir)
	}
	l := &list{name: name, rows: map[string][]catalog.Listing{}, found: map[place]catalog.Listing{}}
	for n := range all.Listings {
		if x := &all.Listings[n]; x.Plain() && x.Quote.Priced {
			key := rowKey(x.Offer.Provider, x.Offer.Machine)
			l.rows[key] = append(l.rows[key], *x)
		}
	}
	return l, err
}

func rowKey(provider, machine string) string { return provider + " " + strings.ToLower(machine) }

// at is what the catalogue asks for a machine type in a place: the price of its zone, or of its whole region.
func (l *list) at(p place) (catalog.Listing, bool) {
	if x, ok := l.found[p]; ok {
		return x, x.Quote.Priced
	}
	var best catalog.Listing
	for _, x := range l.rows[rowKey(p.provider, p.machine)] {
		o := &x.Offer
		own := p.provider == Kind // the user's own row: of what is reserved unless it says otherwise, and of one cluster
		if o.Region != p.region && (!own || o.Region != l.name) || o.Zone != "" && o.Zone != p.zone {
			continue
		}
		if o.Capacity != p.capacity && (!own || o.Capacity != market.Reserved) {
			continue
		}
		if !best.Quote.Priced || o.Zone != "" && best.Offer.Zone == "" {
			best = x
		}
	}
	l.found[p] = best
	return best, best.Quote.Priced
}

// Labels by which nodes say what they are, with the names that older clusters have for them.
const (
	labelType, labelTypeOld     = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
	labelRegion, labelRegionOld = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
	labelZone, labelZoneOld     = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
)

// providers are whose catalogue a node is looked up in: the cloud that its kubelet or the pool names, or any.
func (p *Pool) providers(providerID string) []string {
	scheme, _, _ := strings.Cut(providerID, "://")
	if known := map[string]string{"aws": "aws", "gce": "gcp", "azure": "azure"}[scheme]; known != "" {
		return []string{known, Kind}
	}
	if c := clouds[p.Cloud]; c != nil && p.Cloud != "karpenter" {
		return []string{c.provider, Kind}
	}
	return []string{"aws", "gcp", "azure", Kind}
}

// node is what a whole node costs an hour: what the user's label says, or the catalogue for its type, region, zone and
// capacity, all of them from its labels.
func (w *With) node(p *Pool, n *corev1.Node, l *list) price {
	if text := n.Labels[w.PriceLabel]; w.PriceLabel != "" && text != "" {
		r, err := money.ParseRate(text)
		if err != nil || r < 0 {
			return price{why: fmt.Sprintf("label %s of node %s is %q: write %s an hour, such as 2.40", w.PriceLabel, n.Name,
				text, w.Currency)}
		}
		return price{rate: r, known: true, source: "label " + w.PriceLabel + " of nodes"}
	}
	at := place{machine: cmp.Or(n.Labels[labelType], n.Labels[labelTypeOld], p.Instance),
		region: cmp.Or(n.Labels[labelRegion], n.Labels[labelRegionOld], p.Region),
		zone:   cmp.Or(n.Labels[labelZone], n.Labels[labelZoneOld]), capacity: feed.NodeCapacity(n.Labels)}
	if at.capacity == market.Reserved { // they say none
		at.capacity = p.Capacity
	}
	if at.machine == "" {
		return price{why: fmt.Sprintf("node %s has no label %s: set rate", n.Name, labelType)}
	}
	found := w.listed(l, p.providers(n.Spec.ProviderID), at, " by labels of nodes")
	gpus := n.Status.Allocatable[corev1.ResourceName(p.Resource)]
	if found.known && gpus.Value() > 0 && found.of.Offer.Accelerators == 0 { // attached, and priced by themselves
		return price{why: fmt.Sprintf("node %s has accelerators that the catalogue's price of %s does not count: set rate",
			n.Name, at.machine)}
	}
	return found.price
}

// listing is a price with its row of the catalogue.
type listing struct {
	price
	of catalog.Listing
}

// listed is what the catalogue of the first of the providers that knows it asks for a machine type, and whence.
func (w *With) listed(l *list, providers []string, at place, whence string) listing {
	for _, provider := range providers {
		at.provider = provider
		x, ok := l.at(at)
		switch {
		case !ok:
			continue
		case x.Offer.Currency != w.Currency:
			return listing{of: x, price: price{why: fmt.Sprintf("the catalogue's price of %s is in %s: set rate in %s",
				at.machine, x.Offer.Currency, w.Currency)}}
		}
		of := ""
		if !x.Quote.At.IsZero() {
			of = " of " + x.Quote.At.UTC().Format(time.DateOnly)
		}
		return listing{of: x, price: price{rate: x.Quote.Rate, known: true,
			source: fmt.Sprintf("catalogue%s: %s %s in %s%s", of, at.machine, x.Offer.Capacity,
				cmp.Or(x.Offer.Zone, x.Offer.Region), whence)}}
	}
	return listing{price: price{why: fmt.Sprintf("the catalogue has no %s price of %s in %s: set rate, or fetch prices "+
		"(scrimp catalog update, import)", at.capacity, at.machine, cmp.Or(at.region, "a region that nodes do not name"))}}
}

// fits is how many machines of a sale a node holds when it is empty.
func (s *sale) fits(n *corev1.Node) int64 {
	free := n.Status.Allocatable
	most := min(free.Cpu().MilliValue()/max(s.milli, 1), free.Memory().Value()/max(int64(s.memory), 1))
	if want := int64(s.offer.Accelerators); want > 0 {
		gpus := free[corev1.ResourceName(s.of.Resource)]
		most = min(most, gpus.Value()/want)
	}
	if most > 0 && s.of.Instance != "" { // a whole one, or one of so many parts of it
		return int64(s.part)
	}
	return most
}

// byNodes is what a machine costs on the dearest of the pool's nodes that hold it: one of so many that fit costs that
// part of its node. Where the price of one of them is unknown so is the machine's, which may begin there.
func (w *With) byNodes(s *sale, nodes []corev1.Node, l *list) price {
	var dearest price
	sources, count := map[string]bool{}, 0
	for n := range nodes {
		fits := s.fits(&nodes[n])
		if fits == 0 || nodes[n].Spec.Unschedulable {
			continue
		}
		whole := w.node(s.of, &nodes[n], l)
		if !whole.known {
			return whole
		}
		whole.rate = partOf(whole.rate, int(fits))
		if sources[whole.source] = true; count == 0 || whole.rate > dearest.rate {
			dearest = whole
		}
		count++
	}
	switch {
	case count == 0 && len(nodes) == 0:
		return price{silent: true, why: "the pool has no node now whose labels say it: set rate, or instance and region"}
	case count == 0:
		return price{silent: true, why: fmt.Sprintf("none of the pool's %d nodes can hold one, so none says a price: "+
			"set rate", len(nodes))}
	case len(sources) > 1:
		dearest.source += fmt.Sprintf(", the dearest of %d nodes", count)
	}
	return dearest
}

// unsaid reports whether the rate of any pool is left to the catalogue or to nodes.
func (w *With) unsaid() bool {
	return slices.ContainsFunc(w.Pools, func(p Pool) bool { return p.Rate == "" })
}
