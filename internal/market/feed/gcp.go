package feed

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// sku is the hourly price of one unit of a component in a region.
type sku struct {
	rate     money.Rate
	currency money.Currency
}

// skus collects machine components of the Google Cloud billing catalogue over all pages. A machine's price is the sum
// of its cores, memory and accelerators, which are sold separately.
type skus struct {
	t     intake.Tally
	parts map[string]sku // "spot/us-central1/A2 core"
	all   int
}

var (
	gcpCoreRAM = regexp.MustCompile(
		`^(?:Spot Preemptible )?([A-Z][0-9][A-Z]?(?:Plus|Ultra|Mega)?)` +
			`(?: Predefined)?(?: AMD| Arm)? Instance (Core|Ram) running in `)
	gcpGPU   = regexp.MustCompile(`^(?:Nvidia )?(?:Tesla )?(.+?) GPU (?:attached to Spot Preemptible VMs )?running in `)
	gcpSlice = regexp.MustCompile(`^(?:Spot Preemptible )?[A-Z][0-9]\w* Nvidia (.+?) \(1 gpu slice\) running in `)
	gcpSpot  = regexp.MustCompile(`\bSpot Preemptible\b`)
	// Commitments to machine components, and components of Vertex AI training machines.
	gcpCommitted    = regexp.MustCompile(`^Commitment v1: ([A-Z][0-9]\w*) (Cpu|Core|Ram) in .+ for [13] Years?$`)
	gcpCommittedGPU = regexp.MustCompile(`^Commitment v1: (?:Nvidia )?(?:Tesla )?(.+?) GPU running in .+ for [13] Years?$`)
	gcpVertex       = regexp.MustCompile(
		`(?i)^Vertex AI: Training/Pipelines on ([A-Z][0-9]\w*?)(?: Predefined)? Instance (Core|Ram) (?:running )?in `)
	gcpVertexGPU = regexp.MustCompile(
		`(?i)^Vertex AI: Training/Pipelines on (?:Nvidia )(?:Tesla )?(.+?)(?: GPU)? (?:running )?in `)
)

// vertex distinguishes on-demand components of Vertex AI from those of raw machines.
const vertex = "vertex"

// gcpFamilies lists the machine types whose components have names of their own. The first ones are also sold as A3 and
// H100, at another price.
var gcpFamilies = []struct {
	machine, family string
	gpus            []string
}{
	{"a3-megagpu-", "A3PLUS", []string{"H100 80GB Plus", "H100 80GB Mega"}},
	{"a3-ultragpu-", "A3ULTRA", []string{"H200 141GB"}},
}

// gcpKinds maps accelerators to their names in SKUs.
var gcpKinds = map[string]string{
	"A100-SXM-40GB": "A100", "A100-SXM-80GB": "A100 80GB", "H100-SXM-80GB": "H100 80GB", "H200-SXM": "H200 141GB",
	"B200-SXM": "B200", "L4": "L4", "T4": "T4", "V100-SXM2-16GB": "V100",
}

// gcpSKU is one component for sale.
type gcpSKU struct {
	Description string `json:"description"`
	Category    struct {
		Group string `json:"resourceGroup"`
		Usage string `json:"usageType"`
	} `json:"category"`
	Regions []string `json:"serviceRegions"`
	Pricing []struct {
		Expression struct {
			Unit  string `json:"usageUnit"`
			Tiers []struct {
				Start json.Number `json:"startUsageAmount"`
				Price struct {
					Currency string      `json:"currencyCode"`
					Units    string      `json:"units"`
					Nanos    json.Number `json:"nanos"`
				} `json:"unitPrice"`
			} `json:"tieredRates"`
		} `json:"pricingExpression"`
	} `json:"pricingInfo"`
}

// add reads a page and returns the token of the next one.
func (s *skus) add(p intake.Page, page []byte) (string, error) {
	var answer struct {
		SKUs *[]gcpSKU `json:"skus"`
		Next string    `json:"nextPageToken"`
	}
	if err := intake.Decode(page, &answer); err != nil {
		return "", fmt.Errorf("read the billing catalogue of %s: %w", p.Source, err)
	}
	if answer.SKUs == nil {
		return "", fmt.Errorf("read the billing catalogue of %s: %w: no skus", p.Source, intake.ErrForm)
	}
	s.t.Source = p.Source
	if s.parts == nil {
		s.parts = map[string]sku{}
	}
	for _, k := range *answer.SKUs {
		s.all++
		part, capacity, price, why, detail := k.read()
		if why != "" {
			s.t.Skip(why, k.Description, detail)
			continue
		}
		for _, region := range k.Regions {
			name := capacity + "/" + region + "/" + part
			if _, twice := s.parts[name]; twice {
				s.t.Skip(catalog.Duplicate, k.Description, region)
				continue
			}
			s.parts[name] = price
		}
	}
	return answer.Next, nil
}

// read returns the component, capacity and price of a SKU, or why it is skipped.
func (k gcpSKU) read() (part, capacity string, price sku, why, detail string) {
	part, units := k.part()
	capacity = k.capacity()
	switch {
	case part == "" || capacity == "":
		return "", "", sku{}, catalog.OtherUse, strings.TrimSpace(k.Category.Group + " " + k.Category.Usage)
	case len(k.Regions) == 0 || len(k.Pricing) == 0 || len(k.Pricing[len(k.Pricing)-1].Expression.Tiers) == 0:
		return "", "", sku{}, catalog.NoPrice, "no region or no rate"
	}
	e := k.Pricing[len(k.Pricing)-1].Expression // the newest is last
	if !slices.Contains(units, e.Unit) {
		return "", "", sku{}, catalog.BadRow, fmt.Sprintf("unit %q", e.Unit)
	}
	first := e.Tiers[0].Price
	currency, ok := catalog.ParseCurrency(first.Currency)
	if !ok {
		return "", "", sku{}, catalog.BadCurrency, first.Currency
	}
	rate, why := gcpRate(first.Units, first.Nanos)
	if why != "" {
		return "", "", sku{}, why, first.Units + " " + first.Nanos.String()
	}
	return part, capacity, sku{rate, currency}, "", ""
}

// part returns the component's name and its allowed units, or "" if it is not part of a machine.
func (k gcpSKU) part() (part string, units []string) {
	for _, form := range []*regexp.Regexp{gcpCoreRAM, gcpCommitted, gcpVertex} {
		if m := form.FindStringSubmatch(k.Description); m != nil {
			kind := strings.Replace(strings.ToLower(m[2]), "cpu", "core", 1)
			return strings.ToUpper(m[1]) + " " + kind, map[string][]string{"core": {"h"}, "ram": {"GiBy.h", "GBy.h"}}[kind]
		}
	}
	for _, form := range []*regexp.Regexp{gcpCommittedGPU, gcpVertexGPU} {
		if m := form.FindStringSubmatch(k.Description); m != nil {
			return m[1], []string{"h"}
		}
	}
	if k.Category.Group != "GPU" {
		return "", nil
	}
	for _, form := range []*regexp.Regexp{gcpGPU, gcpSlice} {
		if m := form.FindStringSubmatch(k.Description); m != nil {
			return m[1], []string{"h"}
		}
	}
	return "", nil
}

func (k gcpSKU) capacity() string {
	switch k.Category.Usage {
	case "Commit1Yr":
		return "committed-1y"
	case "Commit3Yr":
		return "committed-3y"
	case "OnDemand":
		if strings.HasPrefix(k.Description, "Vertex AI: ") {
			return vertex
		}
		if gcpSpot.MatchString(k.Description) { // some are categorized so, at the price of spot
			return string(market.Spot)
		}
		return string(market.OnDemand)
	case "Preemptible":
		return string(market.Spot)
	}
	return ""
}

// gcpRate converts whole units and billionths to a rate.
func gcpRate(units string, nanos json.Number) (money.Rate, string) {
	if units == "" {
		units = "0"
	}
	var n int64
	if nanos != "" {
		var err error
		if n, err = nanos.Int64(); err != nil {
			return 0, catalog.BadPrice
		}
	}
	if n < 0 {
		return 0, catalog.Negative
	}
	if n >= 1e9 {
		return 0, catalog.BadPrice
	}
	return catalog.ParsePrice(fmt.Sprintf("%s.%09d", units, n))
}

// compose adds up the prices of the known machine types whose components all have prices. Local disks of a machine type
// are sold separately and are not included.
func (s *skus) compose(p intake.Page) catalog.Catalog {
	places := map[string]bool{}
	for name := range s.parts {
		capacity, rest, _ := strings.Cut(name, "/")
		region, _, _ := strings.Cut(rest, "/")
		places[capacity+"/"+region] = true
	}
	var rows []catalog.Listing
	for _, shape := range p.Shapes.Machines("gcp") {
		o := shape.Offer
		family, _, isType := strings.Cut(strings.ToUpper(o.Machine), "-")
		if !isType || o.CPUs == 0 || o.Memory == 0 || strings.Contains(o.Machine, "(") {
			continue // a TPU, which this service does not sell
		}
		gpus := []string{gcpKinds[o.Accelerator]}
		for _, f := range gcpFamilies {
			if strings.HasPrefix(o.Machine, f.machine) {
				family, gpus = f.family, f.gpus
			}
		}
		sold := false
		for _, place := range slices.Sorted(maps.Keys(places)) {
			sum, ok := s.sum(o, place, family, gpus)
			if !ok {
				continue
			}
			capacity, region, _ := strings.Cut(place, "/")
			rows = append(rows, gcpListings(p, shape, region, capacity, sum)...)
			sold = true
		}
		if !sold {
			s.t.Skip(catalog.NoPrice, o.Machine, "cores, memory or accelerators have no price in any region")
		}
	}
	return catalog.New(p.Source, rows, s.t.Skips)
}

// gcpListings returns a machine's listings in a region. Each spot machine is also sold as preemptible, at the same
// price.
func gcpListings(p intake.Page, shape catalog.Listing, region, capacity string, sum sku) []catalog.Listing {
	q := market.Quote{Rate: sum.rate, Priced: true, At: p.At, Source: p.Source}
	switch capacity {
	case vertex:
		l := catalog.Sell(shape, region, "", market.OnDemand, q, sum.currency)
		return []catalog.Listing{catalog.SellTerm(l, catalog.Terms{Platform: vertex}, q)}
	case string(market.OnDemand):
		return []catalog.Listing{catalog.Sell(shape, region, "", market.OnDemand, q, sum.currency)}
	case string(market.Spot):
		l := catalog.Sell(shape, region, "", market.Spot, q, sum.currency)
		return []catalog.Listing{l, catalog.SellTerm(l, catalog.Terms{Term: catalog.Preemptible}, q)}
	}
	terms := catalog.Terms{Term: catalog.Term(capacity), Hourly: sum.rate}
	return []catalog.Listing{intake.SellFor(shape, region, terms, sum.currency, q)}
}

// sum returns the price of all components of a machine in a place, if each has a price in the same currency.
func (s *skus) sum(o market.Offer, place, family string, gpus []string) (sku, bool) {
	core, ok := s.parts[place+"/"+family+" core"]
	ram, ok2 := s.parts[place+"/"+family+" ram"]
	if !ok || !ok2 || core.currency != ram.currency {
		return sku{}, false
	}
	rate := core.rate.Times(o.CPUs) + ram.rate.Times(int(o.Memory/size.GiB))
	if o.Accelerator == "" {
		return sku{rate, core.currency}, true
	}
	for _, name := range gpus {
		if gpu, ok := s.parts[place+"/"+name]; ok {
			return sku{rate + gpu.rate.Times(o.Accelerators), core.currency}, gpu.currency == core.currency
		}
	}
	return sku{}, false
}
