package feed

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/catalog"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// sku is what one unit of a component costs an hour in a region.
type sku struct {
	rate     money.Rate
	currency money.Currency
}

// skus holds components of machines of the Google Cloud billing catalogue over
// all pages: a machine's price is the sum of its cores, its memory and its
// accelerators, which are sold apart.
type skus struct {
	t     tally
	parts map[string]sku // "spot/us-central1/A2 core"
	all   int
}

var (
	gcpCoreRAM = regexp.MustCompile(
		`^(?:Spot Preemptible )?([A-Z][0-9][A-Z]?(?:Plus|Ultra|Mega)?)(?: Predefined)?(?: AMD|` +
			` Arm)? Instance (Core|Ram) running in `)
	gcpGPU   = regexp.MustCompile(`^(?:Nvidia )?(?:Tesla )?(.+?) GPU (?:attached to Spot Preemptible VMs )?running in `)
	gcpSlice = regexp.MustCompile(`^(?:Spot Preemptible )?[A-Z][0-9]\w* Nvidia (.+?) \(1 gpu slice\) running in `)
	gcpSpot  = regexp.MustCompile(`\bSpot Preemptible\b`)
)

// gcpFamilies are machine types whose components have names of their own: the
// first are sold as A3 and H100 too, at another price.
var gcpFamilies = []struct {
	machine, family string
	gpus            []string
}{{"a3-megagpu-", "A3PLUS", []string{"H100 80GB Plus", "H100 80GB Mega"}},
	{"a3-ultragpu-", "A3ULTRA", []string{"H200 141GB"}}}

// gcpKinds are the words by which SKUs call the accelerators of machine types.
var gcpKinds = map[string]string{
	"A100-SXM-40GB": "A100", "A100-SXM-80GB": "A100 80GB", "H100-SXM-80GB": "H100 80GB", "H200-SXM": "H200 141GB",
	"B200-SXM": "B200", "L4": "L4", "T4": "T4", "V100-SXM2-16GB": "V100",
}

// add takes a page, and returns the token of the next one.
func (s *skus) add(p Page, page []byte) (string, error) {
	var answer struct {
		SKUs *[]struct {
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
		} `json:"skus"`
		Next string `json:"nextPageToken"`
	}
	if err := decode(page, &answer); err != nil {
		return "", fmt.Errorf("read the billing catalogue of %s: %w", p.Source, err)
	}
	if answer.SKUs == nil {
		return "", fmt.Errorf("read the billing catalogue of %s: %w: no skus", p.Source, errForm)
	}
	s.t.source = p.Source
	if s.parts == nil {
		s.parts = map[string]sku{}
	}
	for _, k := range *answer.SKUs {
		s.all++
		part := ""
		var units []string
		if m := gcpCoreRAM.FindStringSubmatch(k.Description); m != nil {
			part = strings.ToUpper(m[1]) + " " + strings.ToLower(m[2])
			units = map[string][]string{"Core": {"h"}, "Ram": {"GiBy.h", "GBy.h"}}[m[2]]
		} else if m := gcpGPU.FindStringSubmatch(k.Description); m != nil && k.Category.Group == "GPU" {
			part, units = m[1], []string{"h"}
		} else if m := gcpSlice.FindStringSubmatch(k.Description); m != nil && k.Category.Group == "GPU" {
			part, units = m[1], []string{"h"}
		}
		capacity := ""
		switch k.Category.Usage {
		case "OnDemand":
			capacity = string(market.OnDemand)
			if gcpSpot.MatchString(k.Description) { // some are filed so, at the price of spot
				capacity = string(market.Spot)
			}
		case "Preemptible":
			capacity = string(market.Spot)
		}
		switch {
		case part == "" || capacity == "":
			s.t.skip(catalog.OtherUse, k.Description, strings.TrimSpace(k.Category.Group+" "+k.Category.Usage))
			continue
		case len(k.Regions) == 0 || len(k.Pricing) == 0 || len(k.Pricing[len(k.Pricing)-1].Expression.Tiers) == 0:
			s.t.skip(catalog.NoPrice, k.Description, "no region or no rate")
			continue
		}
		e := k.Pricing[len(k.Pricing)-1].Expression // the newest stands last
		if !slices.Contains(units, e.Unit) {
			s.t.skip(catalog.BadRow, k.Description, fmt.Sprintf("unit %q", e.Unit))
			continue
		}
		price := e.Tiers[0].Price
		currency, ok := catalog.ParseCurrency(price.Currency)
		if !ok {
			s.t.skip(catalog.BadCurrency, k.Description, price.Currency)
			continue
		}
		rate, why := gcpRate(price.Units, price.Nanos)
		if why != "" {
			s.t.skip(why, k.Description, price.Units+" "+price.Nanos.String())
			continue
		}
		for _, region := range k.Regions {
			name := capacity + "/" + region + "/" + part
			if _, twice := s.parts[name]; twice {
				s.t.skip(catalog.Duplicate, k.Description, region)
				continue
			}
			s.parts[name] = sku{rate, currency}
		}
	}
	return answer.Next, nil
}

// gcpRate reads whole units and billionths of one.
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

// compose adds up the machine types that are known, where every component has a
// price. Local disks that a machine type has are sold apart and not in the sum.
func (s *skus) compose(p Page) catalog.Catalog {
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
			core, ok := s.parts[place+"/"+family+" core"]
			ram, ok2 := s.parts[place+"/"+family+" ram"]
			if !ok || !ok2 || core.currency != ram.currency {
				continue
			}
			gib := int64(o.Memory / size.GiB)
			rate := core.rate.Times(o.CPUs) + ram.rate.Times(int(gib))
			if o.Accelerator != "" {
				var gpu sku
				ok := false
				for i := 0; i < len(gpus) && !ok; i++ {
					gpu, ok = s.parts[place+"/"+gpus[i]]
				}
				if !ok || gpu.currency != core.currency {
					continue
				}
				rate += gpu.rate.Times(o.Accelerators)
			}
			capacity, region, _ := strings.Cut(place, "/")
			q := market.Quote{Rate: rate, Priced: true, At: p.At, Source: p.Source}
			rows = append(rows, catalog.Sell(shape, region, "", market.Capacity(capacity), q, core.currency))
			sold = true
		}
		if !sold {
			s.t.skip(catalog.NoPrice, o.Machine, "cores, memory or accelerators have no price in any region")
		}
	}
	return catalog.New(p.Source, rows, s.t.skips)
}
