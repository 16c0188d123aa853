package feed

import (
	"encoding/json"
	"fmt"
	"strings"

	"scrimp/internal/catalog"
	"scrimp/internal/market"
	"scrimp/internal/money"
)

// readAzure reads a page of the Azure retail prices API. It returns the link of the next page too.
// The API says nothing of a machine but its name, so machines that the catalogue
// does not know are skipped.
func readAzure(p Page, page []byte) (catalog.Catalog, string, error) {
	var answer struct {
		Items *[]azureItem `json:"Items"`
		Next  string       `json:"NextPageLink"`
	}
	if err := decode(page, &answer); err != nil {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w", p.Source, err)
	}
	if answer.Items == nil {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w: no Items", p.Source, errForm)
	}
	t := tally{source: p.Source}
	var rows []catalog.Listing
	named := 0
	for _, i := range *answer.Items {
		if i.Machine != "" && i.Region != "" {
			named++
		}
		if why, name, detail := i.unfit(); why != "" {
			t.skip(why, name, detail)
			continue
		}
		shape, ok := p.Shapes.Machine("azure", i.Machine)
		if !ok {
			t.skip(catalog.NoMachine, i.Machine, "nothing else is known of it")
			continue
		}
		currency, ok := catalog.ParseCurrency(i.Currency)
		if !ok {
			t.skip(catalog.BadCurrency, i.Machine, i.Currency)
			continue
		}
		rate, why := catalog.ParsePrice(i.Retail.String())
		if why != "" {
			t.skip(why, i.Machine, i.Retail.String())
			continue
		}
		capacity := market.OnDemand
		if strings.Contains(i.label(), "Spot") {
			capacity = market.Spot
		}
		rows = append(rows, azureListing(p, shape, i.Region, capacity, rate, currency))
	}
	if len(*answer.Items) > 0 && named == 0 {
		return catalog.Catalog{}, "", fmt.Errorf("read Azure prices of %s: %w: none of %d items names a machine and a "+
			"region", p.Source, errForm, len(*answer.Items))
	}
	return catalog.New(p.Source, rows, t.skips), answer.Next, nil
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
}

func (i azureItem) label() string { return i.Meter + " " + i.SKU }

// unfit says why an item is no price of a machine's hour under Linux, and "" where it is one.
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

// otherUse reports whether it is of another service, term, system or tenancy.
func (i azureItem) otherUse() bool {
	return i.Service != "" && i.Service != "Virtual Machines" || i.Type != "" && i.Type != "Consumption" ||
		strings.HasSuffix(i.Product, "Windows") || strings.HasSuffix(i.Product, " Win") ||
		strings.Contains(i.label(), "Low Priority") || strings.Contains(i.Product, "Dedicated") ||
		strings.Contains(i.Product, "CloudServices")
}

func azureListing(p Page, shape catalog.Listing, region string, capacity market.Capacity, rate money.Rate,
	currency money.Currency) catalog.Listing {
	q := market.Quote{Rate: rate, Priced: true, At: p.At, Source: p.Source}
	return catalog.Sell(shape, region, "", capacity, q, currency)
}
