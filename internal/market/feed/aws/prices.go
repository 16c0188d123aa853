// Package aws reads the pages of AWS: price lists, savings plans, spot price history and rates of interruption.
package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// awsProduct is a rentable machine type: attributes of a product in an Amazon EC2 price list.
type awsProduct struct {
	SKU        string `json:"sku"`
	Family     string `json:"productFamily"`
	Attributes struct {
		Region    string `json:"regionCode"`
		Type      string `json:"instanceType"`
		CPUs      string `json:"vcpu"`
		Memory    string `json:"memory"` // "2,048 GiB"
		GPUs      string `json:"gpu"`
		Tenancy   string `json:"tenancy"`
		System    string `json:"operatingSystem"`
		Software  string `json:"preInstalledSw"`
		Status    string `json:"capacitystatus"`
		Option    string `json:"marketoption"`
		Network   string `json:"networkPerformance"` // "3200 Gigabit", "Up to 25 Gigabit"
		UsageType string `json:"usagetype"`
		Name      string `json:"instanceName"` // SageMaker: ml.p4d.24xlarge
		Component string `json:"component"`    // SageMaker: Training, Hosting, Notebook
	} `json:"attributes"`
}

// plain reports whether it is a whole Linux machine on shared hardware without paid software, billed by the hour.
func (p awsProduct) plain() bool {
	a := p.Attributes
	return strings.HasPrefix(p.Family, "Compute Instance") && a.Tenancy == "Shared" && a.System == "Linux" &&
		(a.Software == "NA" || a.Software == "") &&
		(a.Status == "Used" || a.Status == "") && (a.Option == "OnDemand" || a.Option == "")
}

// training reports whether it is a machine for SageMaker training jobs, billed by the hour.
func (p awsProduct) training() bool {
	a := p.Attributes
	return strings.HasPrefix(p.Family, "ML Instance") && !strings.Contains(a.UsageType, "Spot") &&
		(a.Component == "Training" || a.Component == "" && strings.Contains(a.UsageType, "-Train"))
}

// awsTerm is the price of a product under one offer term.
type awsTerm struct {
	Attributes struct {
		Lease  string `json:"LeaseContractLength"` // 1yr, 3yr
		Class  string `json:"OfferingClass"`       // standard, convertible
		Option string `json:"PurchaseOption"`      // No Upfront, Partial Upfront, All Upfront
	} `json:"termAttributes"`
	Dimensions map[string]struct {
		Unit  string            `json:"unit"`
		Price map[string]string `json:"pricePerUnit"` // by currency
	} `json:"priceDimensions"`
}

// ReadPrices reads a price list as a stream: the list of a large region has several hundred megabytes, and only
// plain machines are kept.
func ReadPrices(p intake.Page, r io.Reader) (catalog.Catalog, error) {
	l := awsList{d: json.NewDecoder(r), t: intake.Tally{Source: p.Source}, at: p.At,
		kept: map[string]awsProduct{}, terms: map[string]map[string]awsTerm{}, reserved: map[string]map[string]awsTerm{}}
	if err := object(l.d, l.field); err != nil {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: %w", p.Source, intake.ErrForm, err)
	}
	if l.code != "AmazonEC2" && l.code != "AmazonSageMaker" || !l.sawProducts || !l.sawTerms {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: it is of %q, products %v, on-demand terms %v",
			p.Source, intake.ErrForm, l.code, l.sawProducts, l.sawTerms)
	}
	if len(l.kept) == 0 {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: none of %d products is a Linux machine",
			p.Source, intake.ErrForm, l.t.Rows())
	}
	var rows []catalog.Listing
	for _, sku := range slices.Sorted(maps.Keys(l.kept)) {
		rows = append(rows, l.listings(p, sku)...)
	}
	return catalog.New(p.Source, rows, l.t.Skips), nil
}

// listings returns the listings of a product: on-demand, and for one or three years.
func (l *awsList) listings(p intake.Page, sku string) []catalog.Listing {
	product := l.kept[sku]
	a := product.Attributes
	shape, ok := awsShape(p.Shapes, product)
	if !ok || a.Region == "" {
		l.t.Skip(catalog.BadRow, a.Type, "region, processors or memory are missing")
		return nil
	}
	var platform catalog.Terms
	if l.code == "AmazonSageMaker" {
		platform.Platform, shape.Offer.Machine = "sagemaker", a.Name
	}
	var rows []catalog.Listing
	rate, currency, why, detail := awsRate(l.terms[sku])
	if why != "" {
		l.t.Skip(why, a.Type, detail)
	} else {
		q := market.Quote{Rate: rate, Priced: true, At: l.at, Source: p.Source}
		rows = append(rows, catalog.SellTerm(catalog.Sell(shape, a.Region, "", market.OnDemand, q, currency), platform, q))
	}
	offers := l.reserved[sku]
	for _, code := range slices.Sorted(maps.Keys(offers)) {
		terms, currency, why, detail := offers[code].terms()
		if why != "" {
			l.t.Skip(why, a.Type, detail)
			continue
		}
		rows = append(rows, intake.SellFor(shape, a.Region, terms, currency, market.Quote{At: l.at, Source: p.Source}))
	}
	return rows
}

// awsList is the state of reading a price list: plain machines and their terms.
type awsList struct {
	d                     *json.Decoder
	t                     intake.Tally
	at                    time.Time
	code                  string
	kept                  map[string]awsProduct
	terms, reserved       map[string]map[string]awsTerm // by SKU, then by offer term
	sawProducts, sawTerms bool
}

// field reads a top-level field of the file.
func (l *awsList) field(key string) error {
	switch key {
	case "offerCode":
		return l.d.Decode(&l.code)
	case "publicationDate":
		var s string
		if err := l.d.Decode(&s); err != nil {
			return err
		}
		at, err := catalog.ParseTime(s)
		if err != nil {
			return fmt.Errorf("publication date: %w", err)
		}
		l.at = at
		return nil
	case "products":
		l.sawProducts = true
		return object(l.d, l.product)
	case "terms":
		return object(l.d, func(kind string) error {
			switch kind {
			case "OnDemand":
				l.sawTerms = true
				return object(l.d, func(sku string) error { return l.term(l.terms, sku) })
			case "Reserved":
				return object(l.d, func(sku string) error { return l.term(l.reserved, sku) })
			}
			return discard(l.d)
		})
	}
	return discard(l.d)
}

func (l *awsList) product(sku string) error {
	var product awsProduct
	if err := l.d.Decode(&product); err != nil {
		return err
	}
	if product.plain() || product.training() {
		l.kept[sku] = product
	} else {
		l.t.Skip(catalog.OtherUse, product.Attributes.Type, "another system, tenancy, software or product")
	}
	return nil
}

// term reads the prices of a product that is kept.
func (l *awsList) term(into map[string]map[string]awsTerm, sku string) error {
	if _, ok := l.kept[sku]; !ok {
		return discard(l.d)
	}
	var offers map[string]awsTerm
	if err := l.d.Decode(&offers); err != nil {
		return err
	}
	into[sku] = offers
	return nil
}

// awsRate returns the hourly price of a product's terms, or why there is none. It prefers dollars, then the first other
// known currency.
func awsRate(offers map[string]awsTerm) (money.Rate, money.Currency, string, string) {
	why, detail := catalog.NoPrice, "no on-demand term"
	for _, term := range slices.Sorted(maps.Keys(offers)) {
		for _, code := range slices.Sorted(maps.Keys(offers[term].Dimensions)) {
			dim := offers[term].Dimensions[code]
			if dim.Unit != "Hrs" {
				why, detail = catalog.BadRow, "unit "+dim.Unit
				continue
			}
			for _, name := range dollarsFirst(dim.Price) {
				currency, ok := catalog.ParseCurrency(name)
				if !ok {
					why, detail = catalog.BadCurrency, name
					continue
				}
				rate, bad := catalog.ParsePrice(dim.Price[name])
				if bad == "" {
					return rate, currency, "", ""
				}
				why, detail = bad, dim.Price[name]
			}
		}
	}
	return 0, "", why, detail
}

// awsShape returns the known machine, or the machine as the price list describes it. The list has the count of
// accelerators, but not their kind.
func awsShape(known catalog.Catalog, p awsProduct) (catalog.Listing, bool) {
	a := p.Attributes
	if a.Name != "" { // SageMaker's instanceType has its use after the name: ml.p4d.24xlarge-Training
		a.Type = strings.TrimPrefix(a.Name, "ml.")
	}
	if l, ok := known.Machine("aws", a.Type); ok {
		return l, true
	}
	cpus, err := strconv.Atoi(a.CPUs)
	number, isGiB := strings.CutSuffix(strings.ReplaceAll(a.Memory, ",", ""), " GiB")
	memory, err2 := strconv.ParseFloat(number, 64)
	if a.Type == "" || err != nil || err2 != nil || !isGiB || !(memory > 0) || memory > 1e6 || cpus < 1 {
		return catalog.Listing{}, false
	}
	l := catalog.Listing{Offer: market.Offer{Provider: "aws", Machine: a.Type, CPUs: cpus,
		Memory: size.Bytes(memory * float64(size.GiB))}}
	if n, err := strconv.Atoi(a.GPUs); err == nil && n > 0 {
		l.Offer.Accelerator, l.Offer.Accelerators = "unknown", n
	}
	if v, ok := awsNetwork(a.Network); ok {
		l.Network = figure.Known(v)
	}
	return l, true
}

// awsNetwork reads a bandwidth such as "3200 Gigabit". One that a machine has for a while only, such as "Up to 25
// Gigabit", counts as unknown.
func awsNetwork(text string) (gbit float64, ok bool) {
	number, ok := strings.CutSuffix(text, " Gigabit")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(number, 64)
	return v, err == nil && v > 0
}

// object calls each with every key of the object at d; each reads the value.
func object(d *json.Decoder, each func(key string) error) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("%v where an object should start", open)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := each(name); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func discard(d *json.Decoder) error {
	var v json.RawMessage
	return d.Decode(&v)
}
