// Package listing formats offers as text: the market, and the catalogue's offers and sources.
package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// Offer is a listing for --json. Unknown values are null.
type Offer struct {
	ID                string          `json:"offer"`
	Provider          string          `json:"provider"`
	Region            string          `json:"region"`
	Zone              string          `json:"zone,omitempty"`
	Machine           string          `json:"machine"`
	Capacity          market.Capacity `json:"capacity"`
	Term              catalog.Term    `json:"term,omitempty"`     // empty if paid by use
	Platform          string          `json:"platform,omitempty"` // empty for the raw machine
	Accelerator       string          `json:"accelerator,omitempty"`
	Accelerators      int             `json:"accelerators"`
	AcceleratorMemory *size.Bytes     `json:"accelerator_memory_bytes"`
	CPUs              *int            `json:"cpus"`
	Memory            *size.Bytes     `json:"memory_bytes"`
	Disk              figure.Figure   `json:"disk_gb"`
	Network           figure.Figure   `json:"network_gbps"`

	Price    *money.Rate    `json:"price"` // per machine and hour
	Currency money.Currency `json:"currency"`
	Listed   *money.Rate    `json:"listed_price,omitempty"` // before the user's discount
	At       *time.Time     `json:"price_at"`
	Age      *float64       `json:"price_age_s"`
	Stale    bool           `json:"stale"` // needs a live check before money is spent on it
	Source   string         `json:"price_source"`

	// Of a committed term; its Price above is the total per hour.
	Upfront *money.Amount `json:"upfront,omitempty"`
	Hourly  *money.Rate   `json:"hourly,omitempty"`
	Hours   *int          `json:"term_hours,omitempty"`
	Total   *money.Amount `json:"term_total,omitempty"`
	// Of a managed platform, relative to the raw machine.
	RawPrice *money.Rate `json:"raw_price,omitempty"`
	MarkUp   *float64    `json:"mark_up,omitempty"`

	Notice       *float64      `json:"notice_s"`
	Minimum      *float64      `json:"billed_at_least_s"`
	FreeWithin   *float64      `json:"free_if_interrupted_within_s"`
	MaxLifetime  *float64      `json:"max_lifetime_s"` // null if none is known
	RuleSource   string        `json:"rule_source,omitempty"`
	RiskLow      *float64      `json:"interrupted_within_month_low"`
	RiskHigh     *float64      `json:"interrupted_within_month_high"`
	Taken        *int          `json:"interruptions_seen"`     // by the data folder's server; null if none
	Served       *float64      `json:"seen_s"`                 // spot time of the observation
	PerPrice     figure.Figure `json:"tflops_16bit_per_price"` // dense, by specification, per currency unit and hour
	MemoryPer    figure.Figure `json:"accelerator_memory_gb_per_price"`
	BandwidthPer figure.Figure `json:"accelerator_gbps_per_price"`
}

// Limits sets the age from which a price is stale; 0 uses the default of its capacity.
type Limits struct{ Age time.Duration }

func (l Limits) of(x catalog.Listing) time.Duration {
	if l.Age > 0 {
		return l.Age
	}
	return x.Fresh()
}

// OfferOf returns l for --json.
func OfferOf(l catalog.Listing, seen policy.Hazard, now time.Time, limits Limits) Offer {
	o := l.Offer
	v := Offer{
		ID: string(o.ID), Provider: o.Provider, Region: o.Region, Zone: o.Zone, Machine: o.Machine, Capacity: o.Capacity,
		Accelerator: o.Accelerator, Accelerators: o.Accelerators,
		Disk: l.Disk, Network: l.Network, Currency: o.Currency, Listed: l.Listed, Stale: l.Stale(now, limits.of(l)),
		Source: l.Quote.Source, RuleSource: l.RuleSource, Term: l.Term, Platform: l.Platform, RawPrice: l.RawPrice,
	}
	v.terms(l)
	v.AcceleratorMemory, v.CPUs, v.Memory = known(l.Sold()), known(o.CPUs), known(o.Memory)
	v.quote(l, now)
	if l.RuleSource != "" {
		notice, least, free := o.Notice.Seconds(), o.Billing.Minimum.Seconds(), o.Billing.FreeIfInterruptedWithin.Seconds()
		v.Minimum, v.FreeWithin = &least, &free
		if o.Capacity == market.Spot {
			v.Notice = &notice
		}
	}
	v.MaxLifetime = known(o.MaxLifetime.Seconds())
	if l.Risk.Known {
		v.RiskLow, v.RiskHigh = &l.Risk.Low, &l.Risk.High
	}
	if v.Served = known(seen.Served.Seconds()); v.Served != nil {
		v.Taken = &seen.Lost
	}
	return v
}

// known returns a pointer to a positive number, or nil.
func known[N int | float64 | size.Bytes](n N) *N {
	if n <= 0 {
		return nil
	}
	return &n
}

// quote sets the price, its age, and the performance per currency unit.
func (v *Offer) quote(l catalog.Listing, now time.Time) {
	if l.Quote.Priced {
		v.Price = &l.Quote.Rate
		if !l.Quote.At.IsZero() {
			v.At = &l.Quote.At
		}
	}
	if age, ok := l.Age(now); ok {
		s := age.Seconds()
		v.Age = &s
	}
	v.PerPrice = efficiency(l)
	price := l.Quote.Rate.Float()
	if !l.Quote.Priced || price <= 0 {
		return
	}
	count := float64(l.Offer.Accelerators)
	if m := l.Sold(); m > 0 {
		v.MemoryPer = figure.Known(float64(m) / float64(size.GB) * count / price)
	}
	if spec, ok := l.Spec(); ok && spec.Bandwidth.OK {
		v.BandwidthPer = figure.Known(spec.Bandwidth.V * count / price)
	}
}

// efficiency returns dense 16-bit teraflops per currency unit and hour.
func efficiency(l catalog.Listing) figure.Figure {
	v, ok := l.PerDollar(accelerator.FP16)
	if !ok {
		v, ok = l.PerDollar(accelerator.BF16)
	}
	if !ok {
		return figure.Figure{}
	}
	return figure.Known(v)
}

// Orders lists the sort orders of offers.
var Orders = []string{"price", "value", "gpu-price", "age", "name"}

// SortOffers sorts listings by the hourly price, by teraflops for the price (most first), by the hourly price of an
// accelerator, by the price's age, or by name. Unknown values come last; currencies stay apart, dollars first.
func SortOffers(list []catalog.Listing, by string) error {
	if !slices.Contains(Orders, by) {
		return fmt.Errorf("--sort %q is none of %s", by, strings.Join(Orders, ", "))
	}
	slices.SortStableFunc(list, func(a, b catalog.Listing) int {
		name := cmp.Compare(a.Offer.ID, b.Offer.ID)
		if by == "name" {
			return name
		}
		return cmp.Or(last(!a.Quote.Priced, !b.Quote.Priced),
			last(a.Offer.Currency != money.USD, b.Offer.Currency != money.USD), cmp.Compare(a.Offer.Currency, b.Offer.Currency),
			compareBy(by, a, b), cmp.Compare(a.Quote.Rate, b.Quote.Rate), name)
	})
	return nil
}

func compareBy(by string, a, b catalog.Listing) int {
	switch by {
	case "value":
		x, y := efficiency(a), efficiency(b)
		return cmp.Or(last(!x.OK, !y.OK), cmp.Compare(y.V, x.V))
	case "gpu-price":
		none := cmp.Or(last(a.Offer.Accelerators == 0, b.Offer.Accelerators == 0))
		if none != 0 || a.Offer.Accelerators == 0 {
			return none
		}
		return cmp.Compare(a.Quote.Rate.Float()/float64(a.Offer.Accelerators),
			b.Quote.Rate.Float()/float64(b.Offer.Accelerators))
	case "age":
		return cmp.Or(last(a.Quote.At.IsZero(), b.Quote.At.IsZero()), b.Quote.At.Compare(a.Quote.At))
	default:
		return 0
	}
}

// last orders true after false.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// Offers formats the table of listings with the sources of their prices, and the known facts about the requested
// accelerators. Beyond most listings (0 for no limit) it gives the number of omitted ones.
func Offers(list []catalog.Listing, seen map[market.OfferID]policy.Hazard, kinds []accelerator.Accelerator, most int,
	limits Limits, now time.Time, p show.Place) string {
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString(draw.Wrap("", "No matching offers. scrimp offers lists all of them, scrimp catalog update "+
			"fetches more.", p.Columns()))
		b.WriteString(facts(kinds, p))
		return b.String()
	}
	left := 0
	if most > 0 && len(list) > most {
		left, list = len(list)-most, list[:most]
	}
	var sources []string
	var rows [][]string
	stale, discounted := false, false
	for _, l := range list {
		old := l.Quote.Priced && l.Stale(now, limits.of(l))
		stale = stale || old
		discounted = discounted || l.Listed != nil
		rows = append(rows, row(l, seen[l.Offer.ID], old, &sources, now, p))
	}
	columns := []draw.Column{
		{Name: "MACHINE", Key: true}, {Name: "WHERE", Key: true}, {Name: "KIND", Least: 6}, {Name: "GPUS", Least: 7},
		{Name: "GPU MEM", Right: true, Leaves: 5}, {Name: "CPUS", Right: true, Leaves: 7},
		{Name: "MEMORY", Right: true, Leaves: 8},
		{Name: "PRICE/H", Right: true}, {Name: "TF/$", Right: true, Leaves: 3}, {Name: "AGE", Right: true, Leaves: 1},
		{Name: "NOTICE", Right: true, Leaves: 6}, {Name: "RISK", Right: true, Leaves: 4},
		{Name: "INTERRUPTIONS", Right: true, Leaves: 4}, {Name: "FROM", Right: true},
	}
	columns, rows = withTerms(columns, rows, list)
	table := draw.Grid(columns, rows, p.Columns())
	b.WriteString(table)
	if left > 0 {
		b.WriteString(draw.Wrap("", fmt.Sprintf("… and %d more: --limit 0 lists them, --gpu, --region and --max-price "+
			"narrow them.", left), p.Columns()))
	}
	b.WriteString("\n")
	for i, s := range sources {
		b.WriteString(draw.Wrap(fmt.Sprintf("  [%d] ", i+1), s, p.Columns()))
	}
	if strings.Contains(table, "TF/$") {
		b.WriteString(draw.Wrap("  TF/$ ", "dense 16 bit teraflops, as specified, for one unit of currency an hour.",
			p.Columns()))
	}
	if discounted {
		b.WriteString(draw.Wrap("  *    ", "with your discount.", p.Columns()))
	}
	if stale {
		text := fmt.Sprintf("older than %s (spot: %s)", long(catalog.Fresh(market.OnDemand)),
			long(catalog.Fresh(market.Spot)))
		if limits.Age > 0 {
			text = "older than " + long(limits.Age)
		}
		b.WriteString(draw.Wrap("  !    ", text+", or of unknown age: for comparison only, scrimp spends after a live "+
			"check. scrimp catalog update fetches newer prices.", p.Columns()))
	}
	b.WriteString(facts(kinds, p))
	return b.String()
}

func row(l catalog.Listing, seen policy.Hazard, old bool, sources *[]string, now time.Time, p show.Place) []string {
	o := l.Offer
	where := o.Provider + " " + cmp.Or(o.Zone, o.Region)
	gpus, memory, cpus, ram := "-", "-", "-", "-"
	if o.Accelerator != "" {
		gpus = fmt.Sprintf("%dx%s", o.Accelerators, o.Accelerator)
		if m := l.Sold(); m > 0 {
			memory = fmt.Sprintf("%.0f GB", float64(m)/float64(size.GB))
		}
	}
	if o.CPUs > 0 {
		cpus = fmt.Sprint(o.CPUs)
	}
	if o.Memory > 0 {
		ram = fmt.Sprintf("%.0f GiB", float64(o.Memory)/float64(size.GiB))
	}
	price, age, from := priceCells(l, old, sources, now, p)
	value := "-"
	if f := efficiency(l); f.OK {
		value = fmt.Sprintf("%.0f", f.V)
	}
	risk := "-"
	if l.Risk.Known {
		risk = fmt.Sprintf("%.0f-%.0f %%", l.Risk.Low*100, l.Risk.High*100)
	}
	interruptions := "-"
	if seen.Served > 0 {
		interruptions = fmt.Sprintf("%d in %s", seen.Lost, draw.Span(seen.Served))
	}
	return []string{o.Machine, where, string(o.Capacity), gpus, memory, cpus, ram, price, value, age, noticeCell(l), risk,
		interruptions, from}
}

// priceCells returns the price, its age, and the number of its source below the table.
func priceCells(l catalog.Listing, old bool, sources *[]string, now time.Time, p show.Place) (price, age, from string) {
	if !l.Quote.Priced {
		return "unknown", "-", "-"
	}
	price = money.Format(money.Picos(int64(l.Quote.Rate)), l.Offer.Currency, 4)
	if l.Listed != nil {
		price += "*"
	}
	age = "?"
	if span, ok := l.Age(now); ok {
		age = shortAge(span)
		if p.Now.IsZero() {
			age = l.Quote.At.UTC().Format(time.DateOnly)
		}
	}
	if old {
		age += "!"
	}
	i := slices.Index(*sources, l.Quote.Source)
	if i < 0 {
		i = len(*sources)
		*sources = append(*sources, l.Quote.Source)
	}
	return price, age, fmt.Sprintf("[%d]", i+1)
}

// noticeCell returns the notice before an interruption.
func noticeCell(l catalog.Listing) string {
	switch {
	case l.Offer.Capacity != market.Spot:
		return "-"
	case l.RuleSource == "":
		return "unknown"
	case l.Offer.Notice == 0:
		return "none"
	}
	return fmt.Sprintf("%.0f s", l.Offer.Notice.Seconds())
}

// shortAge formats an age in its largest unit.
func shortAge(d time.Duration) string {
	switch {
	case d < -24*time.Hour:
		return "future"
	case d < time.Hour:
		return fmt.Sprintf("%dmin", max(0, d)/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// long formats whole days and hours in words.
func long(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "a day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d == time.Hour:
		return "an hour"
	default:
		return draw.Span(d)
	}
}
