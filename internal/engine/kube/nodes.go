//go:build !local

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/market"
)

// priceEvery is the interval between reads of nodes and catalogue for prices, which change by the hour at most.
const priceEvery = 5 * time.Minute

// sales returns what is sold, at the prices of engines.yaml, or otherwise of the catalogue and the nodes.
func (d *Driver) sales() []pool.Sale {
	all := d.with.Sales(d.name, time.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range all {
		s := &all[n]
		p, ok := d.prices[s.Offer.ID]
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

// reprice updates the prices of pools without a rate from the catalogue and the nodes, if that is due. A known price
// stays if it cannot be determined, because nodes are not visible or the pool has none now.
func (d *Driver) reprice(ctx context.Context, a *client.Client) {
	d.mu.Lock()
	due := d.with.Unsaid() && time.Since(d.asked) >= priceEvery
	if due {
		d.asked = time.Now() // callers meanwhile use the known prices
	}
	d.mu.Unlock()
	if !due {
		return
	}
	l, err := pool.ListOf(d.dir, d.name)
	if err != nil {
		d.log.Warn("prices are those that the program carries", "error", err)
	}
	found := map[market.OfferID]pool.Price{}
	all := d.with.Sales(d.name, time.Now())
	for n := range d.with.Pools {
		if p := &d.with.Pools[n]; p.Rate == "" {
			maps.Copy(found, d.pricesOf(ctx, a, p, all, l))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil {
		d.asked = time.Time{} // the next caller retries
	}
	for id, p := range found {
		if was := d.prices[id]; p.Known || !was.Known || !p.Silent {
			d.prices[id] = p
		}
	}
}

// pricesOf returns the prices of a pool's machines: by instance type and region, unless the user has set a price
// label, or by its nodes.
func (d *Driver) pricesOf(ctx context.Context, a *client.Client, p *pool.Pool, all []pool.Sale,
	l *pool.List) map[market.OfferID]pool.Price {
	prices := map[market.OfferID]pool.Price{}
	all = slices.DeleteFunc(slices.Clone(all), func(s pool.Sale) bool { return s.Of != p })
	stated := pool.Price{}
	if p.Instance != "" && p.Region != "" {
		at := pool.Place{Machine: p.Instance, Region: p.Region, Capacity: p.Capacity}
		stated = d.with.Listed(l, p.Providers(""), at, "").Price
	}
	var nodes []corev1.Node
	var err error
	if !stated.Known || d.with.PriceLabel != "" {
		nodes, err = nodesOf(ctx, a, p)
	}
	for n := range all {
		s := &all[n]
		of := d.with.ByNodes(s, nodes, l)
		switch {
		case of.Known:
		case stated.Known:
			of = stated
			of.Rate = pool.PartOf(of.Rate, s.Part)
		case apierrors.IsForbidden(err):
			of = pool.Price{Silent: true, Why: "this user may not list nodes, whose labels say it: set rate, or instance and " +
				"region, or kubectl create clusterrole scrimp-nodes --verb=list --resource=nodes, and bind it to this user"}
		case err != nil:
			of = pool.Price{Silent: true, Why: fmt.Sprintf("list nodes: %s: set rate", said(err))}
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

// nodesOf returns the nodes that a pool's machines may run on.
func nodesOf(ctx context.Context, a *client.Client, p *pool.Pool) (all []corev1.Node, err error) {
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
