package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
)

// term is how far ahead the user's own machine counts as paid.
const term = 10 * 365 * 24 * time.Hour

// group is a set of machines with the same properties and cost: one offer.
type group struct {
	offer    market.Offer
	rate     money.Rate // price of a used hour
	marginal money.Rate
	links    []*link.Link
}

// groups returns the machines with known facts, grouped by offer. The caller holds mu.
func (d *Driver) groups() map[market.OfferID]*group {
	groups := map[market.OfferID]*group{}
	names := map[string]string{} // cost by machine name
	for _, l := range d.links {
		facts, _, _, _ := l.State()
		if facts == nil {
			continue
		}
		o := d.offer(l.Host, facts)
		cost := fmt.Sprintf("rate %v, marginal %v, speed %v", l.Host.Rate, l.Host.Marginal, o.Speed)
		if other, known := names[o.Machine]; known && other != cost { // same properties but another cost
			o.Machine += "-" + strings.ToLower(l.Host.Name)
		}
		names[o.Machine] = cost
		o.ID = market.ID(o)
		g := groups[o.ID]
		if g == nil {
			g = &group{offer: o, rate: *l.Host.Rate, marginal: *l.Host.Marginal}
			groups[o.ID] = g
		}
		g.offer.CPUs, g.offer.Memory = min(g.offer.CPUs, o.CPUs), min(g.offer.Memory, o.Memory)
		g.links = append(g.links, l)
	}
	return groups
}

// offer returns the offer for a machine. Its name describes the machine: a100-80gb-x8, or cpu16-64g.
func (d *Driver) offer(m *setting.Machine, f *hostd.Facts) market.Offer {
	o := market.Offer{Provider: d.name, Region: d.name, Zone: "own", Capacity: market.Reserved, Currency: d.with.Currency,
		CPUs: cmp.Or(m.CPUs, f.CPUs), Memory: cmp.Or(m.Memory, f.Memory), Speed: m.Speed}
	if o.Accelerators = cmp.Or(m.Accelerators, f.Accelerators); o.Accelerators > 0 {
		o.Accelerator = accelerator.Resolve(cmp.Or(m.Accelerator, f.Accelerator), f.Accelerator, f.GPUMemory)
		o.Machine = fmt.Sprintf("%s-x%d", plainName(o.Accelerator), o.Accelerators)
		return o
	}
	o.Machine = fmt.Sprintf("cpu%d-%dg", o.CPUs, (o.Memory+512<<20)/size.GiB)
	return o
}

// plainName returns s as a part of an offer's name.
func plainName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-")
}

// Offers implements engine.Driver.
func (d *Driver) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	d.reach(ctx)
	d.look(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	groups, now := d.groups(), time.Now().UTC()
	if len(groups) == 0 {
		return nil, nil, d.unreached()
	}
	if err := d.settle(groups, now); err != nil {
		return nil, nil, err
	}
	var offers []market.Offer
	var quotes []market.Quote
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		g := groups[id]
		t := d.journal.Terms[id]
		g.offer.Reserved = market.Reservation{Count: t.Count, From: t.From, Until: t.From.Add(term), Team: d.with.Team,
			Paid: t.Rate.Times(t.Count).Until(term), Before: t.Before, Marginal: g.marginal}
		offers = append(offers, g.offer)
		ours := slices.ContainsFunc(g.links, d.ours) // also with one of our own jobs, since that may have to leave
		quotes = append(quotes, market.Quote{Offer: id, Rate: g.rate, Priced: true, Available: ours, At: now,
			Source: "set in engines.yaml"})
	}
	return offers, quotes, nil
}

// ours reports whether a machine responds and no other server uses it. The caller holds mu.
func (d *Driver) ours(l *link.Link) bool {
	v := d.seen[l.Host.Name]
	return d.quiet(l) < d.lost && !slices.ContainsFunc(v.list, func(i engine.Instance) bool {
		return i.State == engine.Running && !d.made(l, &i)
	})
}

// made reports whether an instance belongs to this engine: another one may use the same machine.
func (d *Driver) made(l *link.Link, i *engine.Instance) bool {
	return strings.HasPrefix(i.ID, d.name+"-"+l.Host.Name+"-")
}

// unreached returns the reasons why no machine is connected.
func (d *Driver) unreached() error {
	var errs []error
	for _, l := range d.links {
		if _, _, _, why := l.State(); why != nil {
			errs = append(errs, why)
		}
	}
	if len(errs) == 0 {
		return errors.New("no machine has responded yet")
	}
	return fmt.Errorf("cannot reach any machine: %w", errors.Join(errs...))
}

// settle records the cost so far if the number or rate of machines has changed, and the machines'
// facts. The caller holds mu.
func (d *Driver) settle(groups map[market.OfferID]*group, now time.Time) error {
	changed := false
	for id, g := range groups {
		t, count, idle := d.journal.Terms[id], len(g.links), g.rate-g.marginal
		switch {
		case t == nil:
			d.journal.Terms[id], changed = &contract{Count: count, Rate: idle, From: now}, true
		case t.Count != count || t.Rate != idle || now.Sub(t.From) > term/2:
			r := market.Reservation{Count: t.Count, From: t.From, Until: t.From.Add(term),
				Paid:   t.Rate.Times(t.Count).Until(term),
				Before: t.Before}
			d.journal.Terms[id], changed = &contract{Count: count, Rate: idle, From: now, Before: r.Committed(now)}, true
		}
	}
	for _, l := range d.links {
		facts, _, _, _ := l.State()
		if known := d.journal.Facts[l.Host.Name]; facts != nil && (known == nil || *stable(known) != *stable(facts)) {
			d.journal.Facts[l.Host.Name], changed = facts, true
		}
	}
	if !changed {
		return nil
	}
	return d.journal.write(d.dir)
}

// stable returns facts without the fields that change with every reading.
func stable(f *hostd.Facts) *hostd.Facts {
	v := *f
	v.Now, v.Free, v.Server = time.Time{}, 0, ""
	return &v
}
