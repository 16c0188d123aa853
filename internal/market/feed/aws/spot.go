package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// ReadSpot reads an answer of DescribeSpotPriceHistory, as the AWS command line prints it. It keeps the newest price
// of each machine type and zone, and also returns the token of the next page.
func ReadSpot(p intake.Page, page []byte) (catalog.Catalog, string, error) {
	var answer struct {
		History *[]struct {
			Zone    string `json:"AvailabilityZone"`
			Type    string `json:"InstanceType"`
			Product string `json:"ProductDescription"`
			Price   string `json:"SpotPrice"`
			At      string `json:"Timestamp"`
		} `json:"SpotPriceHistory"`
		Next string `json:"NextToken"`
	}
	if err := intake.Decode(page, &answer); err != nil {
		return catalog.Catalog{}, "", fmt.Errorf("read spot prices of %s: %w", p.Source, err)
	}
	if answer.History == nil {
		return catalog.Catalog{}, "", fmt.Errorf("read spot prices of %s: %w: no SpotPriceHistory", p.Source, intake.ErrForm)
	}
	t := intake.Tally{Source: p.Source}
	newest := map[market.OfferID]catalog.Listing{}
	for _, h := range *answer.History {
		name := h.Type + " " + h.Zone
		if h.Product != "" && h.Product != "Linux/UNIX" && h.Product != "Linux/UNIX (Amazon VPC)" {
			t.Skip(catalog.OtherUse, name, h.Product)
			continue
		}
		region := strings.TrimRight(h.Zone, "abcdefghijklmnopqrstuvwxyz")
		if h.Type == "" || region == "" || region == h.Zone {
			t.Skip(catalog.BadRow, name, "machine or zone is missing")
			continue
		}
		rate, why := catalog.ParsePrice(h.Price)
		if why != "" {
			t.Skip(why, name, h.Price)
			continue
		}
		at, err := time.Parse(time.RFC3339, h.At)
		if err != nil && h.At != "" {
			t.Skip(catalog.BadRow, name, fmt.Sprintf("Timestamp %q is not a time", h.At))
			continue
		}
		shape, ok := p.Shapes.Machine("aws", h.Type)
		if !ok {
			t.Skip(catalog.NoMachine, name, "import a price list first: it says what the machine is")
			continue
		}
		q := market.Quote{Rate: rate, Priced: true, At: at.UTC(), Source: p.Source} // always in dollars
		l := catalog.Sell(shape, region, h.Zone, market.Spot, q, money.USD)
		if old, ok := newest[l.Offer.ID]; !ok || old.Quote.At.Before(at) {
			newest[l.Offer.ID] = l
		}
	}
	var rows []catalog.Listing
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		rows = append(rows, newest[id])
	}
	return catalog.New(p.Source, rows, t.Skips), answer.Next, nil
}

// ReadAdvisor adds the published interruption rates of the last month to the spot listings of p.Spot. It returns the
// listings with a rate.
func ReadAdvisor(p intake.Page, page []byte) (catalog.Catalog, error) {
	var file struct {
		Ranges []struct {
			Index int     `json:"index"`
			Max   float64 `json:"max"` // percent
		} `json:"ranges"`
		Regions map[string]map[string]map[string]struct {
			Range *int `json:"r"`
		} `json:"spot_advisor"` // region, system, machine
	}
	if err := json.Unmarshal(page, &file); err != nil {
		return catalog.Catalog{}, fmt.Errorf("read interruption rates of %s: %w: %w", p.Source, intake.ErrForm, err)
	}
	if len(file.Ranges) == 0 || len(file.Regions) == 0 {
		return catalog.Catalog{}, fmt.Errorf("read interruption rates of %s: %w: no ranges or no regions", p.Source,
			intake.ErrForm)
	}
	slices.SortFunc(file.Ranges, func(a, b struct {
		Index int     `json:"index"`
		Max   float64 `json:"max"`
	}) int {
		return a.Index - b.Index
	})
	risk := map[int]catalog.Risk{}
	low := 0.0
	for _, r := range file.Ranges {
		if r.Max <= low || r.Max > 100 {
			return catalog.Catalog{}, fmt.Errorf("read interruption rates of %s: %w: range %d ends at %v %%", p.Source,
				intake.ErrForm, r.Index, r.Max)
		}
		risk[r.Index] = catalog.Risk{Low: low / 100, High: r.Max / 100, Known: true}
		low = r.Max
	}
	t := intake.Tally{Source: p.Source}
	var rows []catalog.Listing
	if p.Spot == nil {
		return catalog.New(p.Source, nil, nil), nil
	}
	for _, l := range p.Spot.Listings {
		if l.Offer.Provider != "aws" || l.Offer.Capacity != market.Spot {
			continue
		}
		entry, ok := file.Regions[l.Offer.Region]["Linux"][l.Offer.Machine]
		if !ok || entry.Range == nil {
			continue
		}
		known, ok := risk[*entry.Range]
		if !ok {
			t.Skip(catalog.BadRow, l.Offer.Machine, fmt.Sprintf("range %d is not described", *entry.Range))
			continue
		}
		l.Risk = known
		rows = append(rows, l)
	}
	return catalog.New(p.Source, rows, t.Skips), nil
}
