package feed

import (
	"encoding/json"
	"fmt"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// readAzure reads a page of the Azure retail prices API, and also returns the link of the next page. The API describes
// machines only by name, so machines that the catalogue does not know are skipped.
func readAzure(p intake.Page, page []byte) (catalog.Catalog, string, error) {
	var answer struct {
		Items *[]azureItem `json:"Items"`
		Next  string       `json:"NextPageLink"`
	}
	if err := intake.Decode(page, &answer); err != nil {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w", p.Source, err)
	}
	if answer.Items == nil {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w: no Items", p.Source, intake.ErrForm)
	}
	t := intake.Tally{Source: p.Source}
	var rows []catalog.Listing
	named := 0
	for _, i := range *answer.Items {
		if i.Machine != "" && i.Region != "" {
			named++
		}
		sold, no := i.listings(p)
		if no.Why != "" {
			t.Skip(no.Why, no.Name, no.Detail)
			continue
		}
		rows = append(rows, sold...)
	}
	if len(*answer.Items) > 0 && named == 0 {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w: none of %d items names a machine and a "+
			"region", p.Source, intake.ErrForm, len(*answer.Items))
	}
	return catalog.New(p.Source, rows, t.Skips), answer.Next, nil
}

// azureItem is one price of the retail prices API.
type azureItem struct {
	Currency string      `json:"currencyCode"`
	Retail   json.Number `json:"retailPrice"`
	Region   string      `json:"armRegionName"`
	Machine  string      `json:"armSkuName"`
	Meter    string      `json:"meterName"`
	Product  string      `json:"productName"`
	SKU      string      `json:"skuName"`
	Service  string      `json:"serviceName"`
	Unit     string      `json:"unitOfMeasure"`
	Type     string      `json:"type"`
	Minimum  json.Number `json:"tierMinimumUnits"`
	Term     string      `json:"reservationTerm"` // 1 Year, 3 Years
	Savings  []struct {
		Term   string      `json:"term"`
		Retail json.Number `json:"retailPrice"` // per hour
	} `json:"savingsPlan"`
}

// listings returns what an item sells: a machine on demand or on spot and what it costs under savings plans, or a
// reservation. If the item sells nothing that is known, the Skip says why.
func (i azureItem) listings(p intake.Page) ([]catalog.Listing, catalog.Skip) {
	if why, name, detail := i.unfit(); why != "" {
		return nil, catalog.Skip{Why: why, Name: name, Detail: detail}
	}
	skip := func(why, detail string) ([]catalog.Listing, catalog.Skip) {
		return nil, catalog.Skip{Why: why, Name: i.Machine, Detail: detail}
	}
	shape, ok := p.Shapes.Machine("azure", i.Machine)
	if !ok {
		return skip(catalog.NoMachine, "nothing else is known of it")
	}
	currency, ok := catalog.ParseCurrency(i.Currency)
	if !ok {
		return skip(catalog.BadCurrency, i.Currency)
	}
	rate, why := catalog.ParsePrice(i.Retail.String())
	if why != "" {
		return skip(why, i.Retail.String())
	}
	q := market.Quote{At: p.At, Source: p.Source}
	if i.Type == "Reservation" {
		terms, ok := i.reservation()
		if !ok {
			return skip(catalog.BadRow, fmt.Sprintf("reservationTerm %q", i.Term))
		}
		return []catalog.Listing{intake.SellFor(shape, i.Region, terms, currency, q)}, catalog.Skip{}
	}
	var rows []catalog.Listing
	for _, terms := range i.savings() {
		rows = append(rows, intake.SellFor(shape, i.Region, terms, currency, q))
	}
	capacity := market.OnDemand
	if strings.Contains(i.label(), "Spot") {
		capacity = market.Spot
	}
	return append(rows, azureListing(p, shape, i.Region, capacity, rate, currency)), catalog.Skip{}
}

// years maps Azure's term lengths to ours.
var years = map[string]string{"1 Year": "1y", "3 Years": "3y"}

// reservation returns the price of a reservation. Its retail price is the sum for the whole term, whatever its unit
// says. It may also be paid monthly, with the same sum.
func (i azureItem) reservation() (catalog.Terms, bool) {
	t := catalog.Terms{Term: catalog.Term("reserved-" + years[i.Term] + "-all-upfront")}
	sum, ok := catalog.Plain(i.Retail.String())
	if years[i.Term] == "" || !ok {
		return t, false
	}
	var err error
	t.Upfront, err = money.Parse(sum)
	_, ok = t.Term.Effective(t.Upfront, 0)
	return t, ok && err == nil
}

// savings returns the hourly rates under savings plans, which are paid by the hour.
func (i azureItem) savings() []catalog.Terms {
	var list []catalog.Terms
	for _, s := range i.Savings {
		rate, why := catalog.ParsePrice(s.Retail.String())
		if years[s.Term] != "" && why == "" && !strings.Contains(i.label(), "Spot") {
			list = append(list, catalog.Terms{Term: catalog.Term("savings-plan-" + years[s.Term] + "-no-upfront"),
				Hourly: rate})
		}
	}
	return list
}

func (i azureItem) label() string { return i.Meter + " " + i.SKU }

// unfit returns why an item is not the hourly price of a Linux machine, or "" if it is.
func (i azureItem) unfit() (why, name, detail string) {
	switch {
	case i.otherUse():
		return catalog.OtherUse, i.Machine, strings.TrimSpace(i.Product + " " + i.Type)
	case i.Machine == "" || i.Region == "":
		return catalog.BadRow, i.Meter, "armSkuName or armRegionName is missing"
	case i.Unit != "1 Hour":
		return catalog.BadRow, i.Machine, fmt.Sprintf("unit %q is not 1 Hour", i.Unit)
	case i.Minimum != "" && strings.Trim(i.Minimum.String(), "0.") != "":
		return catalog.OtherUse, i.Machine, "a tier above the first"
	}
	return "", "", ""
}

// otherUse reports whether the item is for another service, term, system or tenancy.
func (i azureItem) otherUse() bool {
	return i.Service != "" && i.Service != "Virtual Machines" || i.Type != "" && i.Type != "Consumption" &&
		i.Type != "Reservation" ||
		strings.HasSuffix(i.Product, "Windows") || strings.HasSuffix(i.Product, " Win") ||
		strings.Contains(i.label(), "Low Priority") || strings.Contains(i.Product, "Dedicated") ||
		strings.Contains(i.Product, "CloudServices")
}

func azureListing(p intake.Page, shape catalog.Listing, region string, capacity market.Capacity, rate money.Rate,
	currency money.Currency) catalog.Listing {
	q := market.Quote{Rate: rate, Priced: true, At: p.At, Source: p.Source}
	return catalog.Sell(shape, region, "", capacity, q, currency)
}
