//go:build !local

package kube

import (
	"errors"
	"fmt"
	"strings"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/market"
	"scrimp/internal/test/kubetest"
)

// nodePrices prices a pool without a rate by its nodes, first for a user who may not list them and then for one who
// may.
func nodePrices(s *site) {
	w := s.with()
	w.Pools, w.PriceLabel = w.Pools[:1], "example.org/hourly-rate"
	w.Pools[0].Rate = ""
	d := s.driverOf(w, "http://127.0.0.1:9")
	add := func(instance, rate string) {
		labels := s.pool("std")
		labels[pool.LabelType], labels[pool.LabelRegion], labels["karpenter.sh/capacity-type"] = instance, "us-east-1", "on-demand"
		if rate != "" {
			labels[w.PriceLabel] = rate
		}
		s.Nodes(s, kubetest.Node{Name: fmt.Sprintf("%s-%d", s.namespace, sites.Add(1)), CPU: "4", Memory: "64Gi",
			Labels: labels})
	}
	holds := func(when, rate, source string) {
		s.Helper()
		d.prices.Expire()
		q := s.quoted(d)
		got := ""
		if q.Priced {
			got = q.Rate.String()
		}
		if got != rate || !strings.Contains(q.Source, source) {
			s.Errorf("%s: it costs %+v, want %q by %q", when, q, rate, source)
		}
	}
	finds := func(when, want string) {
		s.Helper()
		said := ""
		for _, f := range d.Examine(s.Context()) {
			said += f.Name + ": " + f.Text + "\n"
		}
		if !strings.Contains(said, want) {
			s.Errorf("%s the examination finds\n%s\nwant %q", when, said, want)
		}
	}
	add("g5.xlarge", "")
	holds("without the right", "", pool.OwnRate)
	finds("without the right", "at an unknown price: this user may not list nodes, whose labels say it: set rate, ")
	_, err := d.Launch(s.Context(), engine.Request{Key: "a.0", Offer: std, Nodes: 1, MaxRate: 1 << 40})
	if !errors.Is(err, engine.ErrPrice) || !strings.Contains(err.Error(), "may not list nodes") {
		s.Errorf("at an unknown price: %v", err)
	}
	s.Do(s, "create", "clusterrole", s.namespace, "--verb=list", "--resource=nodes")
	s.Do(s, "create", "clusterrolebinding", s.namespace, "--clusterrole="+s.namespace,
		"--serviceaccount="+s.namespace+":scrimp")
	s.until("the right is in force", func() bool { d.prices.Expire(); return s.quoted(d).Priced })
	holds("a node of four machines", "0.2515", "g5.xlarge on-demand in us-east-1 by labels of nodes")
	finds("with the right", "0.2515 USD an hour (catalogue of ")
	s.launched(d, "a.1", 1)
	add("own.large", "4")
	holds("with a dearer one that has the label", "1", "label example.org/hourly-rate of nodes, the most expensive of 2 nodes")
	if i := s.now(d, "a.1"); i.Rate.String() != "0.2515" {
		s.Errorf("a machine is at %v, and was rented at 0.2515", i.Rate)
	}
	add("own.large", "")
	holds("with one that has no price", "", pool.OwnRate)
	finds("with one that has no price", "the catalogue has no on-demand price of own.large in us-east-1: set rate")
	s.Do(s, "delete", "nodes", "-l", "pool="+s.namespace+"-std,"+pool.LabelType+"=own.large,!"+w.PriceLabel)
	holds("without it", "1", "the most expensive of 2 nodes")
	s.Do(s, "delete", "nodes", "-l", "pool="+s.namespace+"-std")
	holds("when all are gone what was known holds", "1", "the most expensive of 2 nodes")
}

// quoted returns the only quote of an engine.
func (s *site) quoted(d *Driver) market.Quote {
	s.Helper()
	_, quotes, err := d.Offers(s.Context())
	if err != nil || len(quotes) != 1 {
		s.Fatalf("%v: %v", quotes, err)
	}
	return quotes[0]
}
