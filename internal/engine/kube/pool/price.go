//go:build !local

package pool

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

// Price is a machine's hourly price from the cluster's nodes or the catalogue, for a pool without a rate. If it is
// unknown, Why says what is missing, and Rate means nothing.
type Price struct {
	Rate   money.Rate
	Known  bool
	Source string // for people
	Why    string
	Silent bool // no source could be read: the known price stays
	At     time.Time
}

// builtin is the built-in catalogue, read once, because that takes a tenth of a second.
var builtin = sync.OnceValue(catalog.Builtin)

// List is a catalogue with a cache, because many nodes are alike.
type List struct {
	name  string                       // of the engine, which prices.csv uses as a region
	rows  map[string][]catalog.Listing // by provider and machine, in lower case
	found map[Place]catalog.Listing
}

// Place is what a price depends on.
type Place struct {
	provider, Machine, Region, zone string
	Capacity                        market.Capacity
}

// ListOf returns the catalogue of a data folder for the named engine: the built-in and the fetched prices, overlaid
// by the user's prices.csv. For dir "" it is the built-in catalogue.
func ListOf(dir, name string) (*List, error) {
	all, err := builtin(), error(nil)
	if dir != "" {
		all, _, err = feed.Load(dir)
	}
	l := &List{name: name, rows: map[string][]catalog.Listing{}, found: map[Place]catalog.Listing{}}
	for n := range all.Listings {
		if x := &all.Listings[n]; x.Plain() && x.Quote.Priced {
			key := rowKey(x.Offer.Provider, x.Offer.Machine)
			l.rows[key] = append(l.rows[key], *x)
		}
	}
	return l, err
}

func rowKey(provider, machine string) string { return provider + " " + strings.ToLower(machine) }

// at returns the catalogue's listing of a machine type in a place: that of its zone, or of its whole region.
func (l *List) at(p Place) (catalog.Listing, bool) {
	if x, ok := l.found[p]; ok {
		return x, x.Quote.Priced
	}
	var best catalog.Listing
	for _, x := range l.rows[rowKey(p.provider, p.Machine)] {
		o := &x.Offer
		own := p.provider == Kind // a user's row: for one cluster, and reserved unless it says otherwise
		if o.Region != p.Region && (!own || o.Region != l.name) || o.Zone != "" && o.Zone != p.zone {
			continue
		}
		if o.Capacity != p.Capacity && (!own || o.Capacity != market.Reserved) {
			continue
		}
		if !best.Quote.Priced || o.Zone != "" && best.Offer.Zone == "" {
			best = x
		}
	}
	l.found[p] = best
	return best, best.Quote.Priced
}

// Labels with a node's properties, with their names in older clusters.
const (
	LabelType, labelTypeOld     = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
	LabelRegion, labelRegionOld = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
	labelZone, labelZoneOld     = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
)

// Providers returns the providers in whose catalogue a node is looked up: the cloud named by its kubelet or by the
// pool, or any.
func (p *Pool) Providers(providerID string) []string {
	scheme, _, _ := strings.Cut(providerID, "://")
	if known := map[string]string{"aws": "aws", "gce": "gcp", "azure": "azure"}[scheme]; known != "" {
		return []string{known, Kind}
	}
	if c := clouds[p.Cloud]; c != nil && p.Cloud != "karpenter" {
		return []string{c.provider, Kind}
	}
	return []string{"aws", "gcp", "azure", Kind}
}

// node returns a whole node's hourly price: from the user's label, or from the catalogue by the type, region, zone
// and capacity in its labels.
func (w *With) node(p *Pool, n *corev1.Node, l *List) Price {
	if text := n.Labels[w.PriceLabel]; w.PriceLabel != "" && text != "" {
		r, err := money.ParseRate(text)
		if err != nil || r < 0 {
			return Price{Why: fmt.Sprintf("label %s of node %s is %q: write %s an hour, such as 2.40", w.PriceLabel, n.Name,
				text, w.Currency)}
		}
		return Price{Rate: r, Known: true, Source: "label " + w.PriceLabel + " of nodes"}
	}
	at := Place{Machine: cmp.Or(n.Labels[LabelType], n.Labels[labelTypeOld], p.Instance),
		Region: cmp.Or(n.Labels[LabelRegion], n.Labels[labelRegionOld], p.Region),
		zone:   cmp.Or(n.Labels[labelZone], n.Labels[labelZoneOld]), Capacity: feed.NodeCapacity(n.Labels)}
	if at.Capacity == market.Reserved { // it has no price label
		at.Capacity = p.Capacity
	}
	if at.Machine == "" {
		return Price{Why: fmt.Sprintf("node %s has no label %s: set rate", n.Name, LabelType)}
	}
	found := w.Listed(l, p.Providers(n.Spec.ProviderID), at, " by labels of nodes")
	gpus := n.Status.Allocatable[corev1.ResourceName(p.Resource)]
	if found.Known && gpus.Value() > 0 && found.of.Offer.Accelerators == 0 { // attached, and priced separately
		return Price{Why: fmt.Sprintf("node %s has accelerators that the catalogue's price of %s does not count: set rate",
			n.Name, at.Machine)}
	}
	return found.Price
}

// listing is a price with its row of the catalogue.
type listing struct {
	Price
	of catalog.Listing
}

// Listed returns the price of a machine type from the first provider whose catalogue has it. suffix is added to
// the source that users see.
func (w *With) Listed(l *List, providers []string, at Place, suffix string) listing {
	for _, provider := range providers {
		at.provider = provider
		x, ok := l.at(at)
		switch {
		case !ok:
			continue
		case x.Offer.Currency != w.Currency:
			return listing{of: x, Price: Price{Why: fmt.Sprintf("the catalogue's price of %s is in %s: set rate in %s",
				at.Machine, x.Offer.Currency, w.Currency)}}
		}
		of := ""
		if !x.Quote.At.IsZero() {
			of = " of " + x.Quote.At.UTC().Format(time.DateOnly)
		}
		return listing{of: x, Price: Price{Rate: x.Quote.Rate, Known: true,
			Source: fmt.Sprintf("catalogue%s: %s %s in %s%s", of, at.Machine, x.Offer.Capacity,
				cmp.Or(x.Offer.Zone, x.Offer.Region), suffix)}}
	}
	return listing{Price: Price{Why: fmt.Sprintf("the catalogue has no %s price of %s in %s: set rate, or fetch prices "+
		"(scrimp catalog update, import)", at.Capacity, at.Machine, cmp.Or(at.Region, "a region that nodes do not name"))}}
}

// Fits returns how many machines of a sale an empty node holds.
func (s *Sale) Fits(n *corev1.Node) int64 {
	free := n.Status.Allocatable
	most := min(free.Cpu().MilliValue()/max(s.Milli, 1), free.Memory().Value()/max(int64(s.Memory), 1))
	if want := int64(s.Offer.Accelerators); want > 0 {
		gpus := free[corev1.ResourceName(s.Of.Resource)]
		most = min(most, gpus.Value()/want)
	}
	if most > 0 && s.Of.Instance != "" { // a whole node, or one of its parts
		return int64(s.Part)
	}
	return most
}

// ByNodes returns a machine's price on the most expensive of the pool's nodes that hold it: a machine costs its
// fraction of the node. If the price of one of these nodes is unknown, the machine's is, too, because it may start
// there.
func (w *With) ByNodes(s *Sale, nodes []corev1.Node, l *List) Price {
	var dearest Price
	sources, count := map[string]bool{}, 0
	for n := range nodes {
		fits := s.Fits(&nodes[n])
		if fits == 0 || nodes[n].Spec.Unschedulable {
			continue
		}
		whole := w.node(s.Of, &nodes[n], l)
		if !whole.Known {
			return whole
		}
		whole.Rate = PartOf(whole.Rate, int(fits))
		if sources[whole.Source] = true; count == 0 || whole.Rate > dearest.Rate {
			dearest = whole
		}
		count++
	}
	switch {
	case count == 0 && len(nodes) == 0:
		return Price{Silent: true, Why: "the pool has no node now whose labels say it: set rate, or instance and region"}
	case count == 0:
		return Price{Silent: true, Why: fmt.Sprintf("none of the pool's %d nodes can hold one, so none says a price: "+
			"set rate", len(nodes))}
	case len(sources) > 1:
		dearest.Source += fmt.Sprintf(", the most expensive of %d nodes", count)
	}
	return dearest
}

// Unsaid reports whether any pool's rate is left to the catalogue or to nodes.
func (w *With) Unsaid() bool {
	return slices.ContainsFunc(w.Pools, func(p Pool) bool { return p.Rate == "" })
}
