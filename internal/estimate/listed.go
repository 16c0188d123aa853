package estimate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/catalog"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// Catalogued is the accelerators of the catalogue.
func Catalogued() Chips {
	var list []Chip
	for _, a := range catalog.Accelerators() {
		rate := func(p catalog.Precision) float64 { v, _ := a.Dense(p); return v }
		list = append(list, Chip{
			Name: a.Name, Arch: a.Arch, Vendor: a.Vendor, Mem: float64(a.Memory) / float64(size.GB),
			Band: a.Bandwidth.V, Link: a.Link.V, Matmul: a.Matmul.V,
			FP32: rate(catalog.FP32), TF32: rate(catalog.TF32), Half: rate(catalog.FP16), FP8: rate(catalog.FP8),
			FP4: rate(catalog.FP4),
		})
	}
	return NewChips(list)
}

// Listed is the on-demand list prices of a catalogue, in dollars.
type Listed struct {
	kinds    map[string][]listing // by accelerator
	machines map[string]listing   // without one
	oldest   time.Time            // of the prices of accelerators; zero: none is dated
	undated  bool                 // some of them
}

// Dates says how old the prices of accelerators are at most, for who compares by them.
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

type listing struct {
	count  float64
	usd    float64
	source string
}

// NewListed indexes the prices of a catalogue. What is not sold on demand, not
// priced, or in another currency is passed over.
func NewListed(c catalog.Catalog) Listed {
	l := Listed{kinds: map[string][]listing{}, machines: map[string]listing{}}
	for _, x := range c.Listings {
		if x.Offer.Capacity != market.OnDemand || !x.Quote.Priced || x.Quote.Rate <= 0 || x.Offer.Currency != money.USD {
			continue
		}
		when := "undated"
		if !x.Quote.At.IsZero() {
			when = x.Quote.At.Format("2006-01-02")
		}
		y := listing{float64(x.Offer.Accelerators), x.Quote.Rate.Float(),
			fmt.Sprintf("%s %s in %s, %s", x.Offer.Provider, x.Offer.Machine, x.Offer.Region, when)}
		if x.Offer.Accelerator == "" || y.count == 0 {
			k := strings.ToLower(x.Offer.Machine)
			if was, ok := l.machines[k]; !ok || y.usd < was.usd {
				l.machines[k] = y
			}
			continue
		}
		switch at := x.Quote.At; {
		case at.IsZero():
			l.undated = true
		case l.oldest.IsZero() || at.Before(l.oldest):
			l.oldest = at
		}
		k := strings.ToLower(x.Offer.Accelerator)
		l.kinds[k] = append(l.kinds[k], y)
	}
	return l
}

// Hourly is the least that n accelerators cost: machines of one type, as many as
// are needed. Of two types that cost the same the first by name is named.
func (l Listed) Hourly(accelerator, machine string, n float64) (usd float64, source string, ok bool) {
	if accelerator == "" {
		m, ok := l.machines[strings.ToLower(machine)]
		return m.usd, m.source, ok
	}
	for _, x := range l.kinds[strings.ToLower(accelerator)] {
		k := math.Ceil(n / x.count)
		if v := x.usd * k; !ok || v < usd {
			usd, source, ok = v, x.source, true
			if k > 1 {
				source = fmt.Sprintf("%g × %s", k, x.source)
			}
			if idle := k*x.count - n; idle > 0 {
				source += fmt.Sprintf(" (%g of its %g accelerators are paid for and not used)", idle, k*x.count)
			}
		}
	}
	return usd, source, ok
}
