package hardware

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// Catalogued returns the accelerators of the catalogue.
func Catalogued() Chips {
	var list []Chip
	for _, a := range accelerator.Accelerators() {
		rate := func(p accelerator.Precision) float64 { v, _ := a.Dense(p); return v }
		half, _ := a.Half()
		list = append(list, Chip{
			Name: a.Name, Arch: a.Arch, Vendor: a.Vendor, Mem: float64(a.Memory) / float64(size.GB),
			Band: a.Bandwidth.V, Link: a.Link.V, Matmul: a.Matmul.V,
			FP32: rate(accelerator.FP32), TF32: rate(accelerator.TF32), Half: half, FP8: rate(accelerator.FP8),
			FP4: rate(accelerator.FP4),
		})
	}
	return NewChips(list)
}

// Listed holds the on-demand list prices of a catalogue, in dollars.
type Listed struct {
	kinds    map[string][]Machine // by accelerator
	machines map[string]Machine   // without accelerators
	oldest   time.Time            // oldest price of accelerators; zero if none is dated
	undated  bool                 // some prices of accelerators have no date
}

// Dates describes the age of the accelerators' prices for a reader who compares by them.
func (l Listed) Dates() string {
	var parts []string
	if !l.oldest.IsZero() {
		parts = append(parts, "the oldest of "+l.oldest.Format(time.DateOnly))
	}
	if l.undated {
		parts = append(parts, "some of unknown age")
	}
	return strings.Join(parts, ", ")
}

// NewListed indexes the on-demand prices of a catalogue, for each machine type where it is cheapest, with its lowest
// spot price beside them. It ignores listings that are not priced, or in another currency.
func NewListed(c catalog.Catalog) Listed {
	l := Listed{kinds: map[string][]Machine{}, machines: map[string]Machine{}}
	at := map[string]int{} // index in kinds, by machine type
	spot := map[string]float64{}
	for _, x := range c.Listings {
		o := x.Offer
		if k := machineKey(x); o.Capacity == market.Spot && x.Quote.Priced && x.Quote.Rate > 0 && o.Currency == money.USD {
			if usd := x.Quote.Rate.Float(); spot[k] == 0 || usd < spot[k] {
				spot[k] = usd
			}
		}
	}
	for _, x := range c.Listings {
		o := x.Offer
		if o.Capacity != market.OnDemand || !x.Plain() || !x.Quote.Priced || x.Quote.Rate <= 0 || o.Currency != money.USD {
			continue
		}
		y := machineOf(x)
		y.Spot = spot[machineKey(x)]
		if o.Accelerator == "" || o.Accelerators == 0 {
			k := strings.ToLower(o.Machine)
			if was, ok := l.machines[k]; !ok || y.Hourly < was.Hourly {
				l.machines[k] = y
			}
			continue
		}
		l.dated(x.Quote.At)
		kind := strings.ToLower(o.Accelerator)
		k := kind + "|" + strings.ToLower(y.Name)
		i, seen := at[k]
		switch {
		case !seen:
			at[k] = len(l.kinds[kind])
			l.kinds[kind] = append(l.kinds[kind], y)
		case y.Hourly < l.kinds[kind][i].Hourly:
			l.kinds[kind][i] = y
		}
	}
	return l
}

// machineKey names a provider's machine type with its accelerators.
func machineKey(x catalog.Listing) string {
	return strings.ToLower(x.Offer.Provider + "|" + x.Offer.Machine + "|" + x.Offer.Accelerator)
}

// dated notes the time of a price: the oldest, and that one has no time.
func (l *Listed) dated(at time.Time) {
	switch {
	case at.IsZero():
		l.undated = true
	case l.oldest.IsZero() || at.Before(l.oldest):
		l.oldest = at
	}
}

// machineOf returns one machine of a listing.
func machineOf(x catalog.Listing) Machine {
	when := "undated"
	if !x.Quote.At.IsZero() {
		when = x.Quote.At.Format("2006-01-02")
	}
	m := MachineOf(x, 1)
	m.Hourly, m.Source = x.Quote.Rate.Float(), fmt.Sprintf("%s in %s, %s", m.Name, x.Offer.Region, when)
	return m
}

// MachineOf returns the given number of a listing's machines, without their price.
func MachineOf(x catalog.Listing, count int) Machine {
	o := x.Offer
	return Machine{Name: o.Provider + " " + o.Machine, Count: float64(count), Each: float64(o.Accelerators),
		CPUs: float64(o.CPUs), Network: x.Network.V, Link: x.Link.V}
}

// Machines returns the ways to rent n accelerators: single machines that carry them all if they exist, or else several
// machines of one type.
func (l Listed) Machines(accelerator, machine string, n float64) (list []Machine) {
	if accelerator == "" {
		if m, ok := l.machines[strings.ToLower(machine)]; ok {
			list = append(list, m)
		}
		return list
	}
	all := l.kinds[strings.ToLower(accelerator)]
	alone := slices.ContainsFunc(all, func(m Machine) bool { return m.Each >= n })
	for _, m := range all {
		if alone && m.Each < n {
			continue
		}
		list = append(list, m.times(math.Ceil(n/m.Each), n))
	}
	return list
}

// times returns k of the machines, for n accelerators.
func (h Machine) times(k, n float64) Machine {
	h.Count, h.Hourly, h.Spot = k, h.Hourly*k, h.Spot*k
	if k > 1 {
		h.Source = fmt.Sprintf("%g × %s", k, h.Source)
	}
	if idle := k*h.Each - n; idle > 0 {
		h.Source += fmt.Sprintf(" (%g of its %g accelerators are paid for and not used)", idle, k*h.Each)
	}
	return h
}
