//go:build !local

// Package price determines the prices of pools without a rate, from the catalogue and the labels of nodes.
package price

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/market"
)

// priceEvery is the interval between reads of nodes and catalogue for prices, which change by the hour at most.
const priceEvery = 5 * time.Minute

// Prices holds the prices of the machines of an engine whose pools have no rate.
type Prices struct {
	engine string // its name
	with   *pool.With
	Dir    string // data folder, whose catalogue provides what engines.yaml does not; empty: the built-in catalogue
	Log    *slog.Logger

	mu    sync.Mutex
	known map[market.OfferID]pool.Price
	asked time.Time // when nodes and catalogue were last read
}

// New returns the prices of an engine, none of which is known.
func New(engine string, w *pool.With) *Prices {
	return &Prices{engine: engine, with: w, Log: slog.New(slog.DiscardHandler), known: map[market.OfferID]pool.Price{}}
}

// Expire makes the next refresh read nodes and catalogue again.
func (b *Prices) Expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = time.Time{}
}

// Sales returns what is sold, at the prices of engines.yaml, or otherwise of the catalogue and the nodes.
func (b *Prices) Sales() []pool.Sale {
	all := b.with.Sales(b.engine, time.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range all {
		s := &all[n]
		p, ok := b.known[s.Offer.ID]
		switch {
		case s.Of.Rate != "" || !ok:
		case p.Known:
			s.Quote.Rate, s.Quote.Priced, s.Quote.Source = p.Rate, true, p.Source
			if time.Since(p.At) > 2*priceEvery {
				s.Quote.Source += ", read " + p.At.UTC().Format("2006-01-02 15:04")
			}
		case !s.Quote.Priced:
			s.Unknown = p.Why
		}
	}
	return all
}

// Refresh updates the prices of pools without a rate from the catalogue and the nodes, if that is due. A known price
// stays if it cannot be determined, because nodes are not visible or the pool has none now.
func (b *Prices) Refresh(ctx context.Context, a *client.Client) {
	b.mu.Lock()
	due := b.with.Unsaid() && time.Since(b.asked) >= priceEvery
	if due {
		b.asked = time.Now() // callers meanwhile use the known prices
	}
	b.mu.Unlock()
	if !due {
		return
	}
	l, err := pool.ListOf(b.Dir, b.engine)
	if err != nil {
		b.Log.Warn("cannot read the data folder's catalogue: using the built-in prices", "error", err)
	}
	found := map[market.OfferID]pool.Price{}
	all := b.with.Sales(b.engine, time.Now())
	for n := range b.with.Pools {
		if p := &b.with.Pools[n]; p.Rate == "" {
			maps.Copy(found, b.pricesOf(ctx, a, p, all, l))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		b.asked = time.Time{} // the next caller retries
	}
	for id, p := range found {
		if was := b.known[id]; p.Known || !was.Known || !p.Silent {
			b.known[id] = p
		}
	}
}

// pricesOf returns the prices of a pool's machines: by instance type and region, unless the user has set a price
// label, or by its nodes.
func (b *Prices) pricesOf(ctx context.Context, a *client.Client, p *pool.Pool, all []pool.Sale,
	l *pool.List) map[market.OfferID]pool.Price {
	prices := map[market.OfferID]pool.Price{}
	all = slices.DeleteFunc(slices.Clone(all), func(s pool.Sale) bool { return s.Of != p })
	stated := pool.Price{}
	if p.Instance != "" && p.Region != "" {
		at := pool.Place{Machine: p.Instance, Region: p.Region, Capacity: p.Capacity}
		stated = b.with.Listed(l, p.Providers(""), at, "").Price
	}
	var nodes []corev1.Node
	var err error
	if !stated.Known || b.with.PriceLabel != "" {
		nodes, err = NodesOf(ctx, a, p)
	}
	for n := range all {
		s := &all[n]
		of := b.with.ByNodes(s, nodes, l)
		switch {
		case of.Known:
		case stated.Known:
			of = stated
			of.Rate = pool.PartOf(of.Rate, s.Part)
		case apierrors.IsForbidden(err):
			of = pool.Price{Silent: true, Why: "this user may not list nodes, whose labels say it: set rate, or instance and " +
				"region, or kubectl create clusterrole scrimp-nodes --verb=list --resource=nodes, and bind it to this user"}
		case err != nil:
			of = pool.Price{Silent: true, Why: fmt.Sprintf("list nodes: %s: set rate", reason.Said(err))}
		case stated.Why != "" && len(nodes) == 0:
			of = stated
			of.Silent = true
		}
		of.At = time.Now()
		prices[s.Offer.ID] = of
	}
	return prices
}

// nodesAtOnce is the page size for lists of nodes.
const nodesAtOnce = 500

// NodesOf returns the nodes that a pool's machines may run on.
func NodesOf(ctx context.Context, a *client.Client, p *pool.Pool) (all []corev1.Node, err error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	opts := metav1.ListOptions{Limit: nodesAtOnce, LabelSelector: labels.SelectorFromSet(p.Selectors()).String()}
	for {
		var page corev1.NodeList
		err := a.Core.Get().Resource("nodes").VersionedParams(&opts, client.Queries).Do(ctx).Into(&page)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if opts.Continue = page.Continue; opts.Continue == "" {
			return all, nil
		}
	}
}
