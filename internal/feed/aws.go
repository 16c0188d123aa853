package feed

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/catalog"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// awsProduct is a machine type as it is rented: attributes of a product of a
// price list file of Amazon EC2.
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
	} `json:"attributes"`
}

// plain reports whether it is a whole Linux machine on shared hardware without
// paid software, paid by the hour.
func (p awsProduct) plain() bool {
	a := p.Attributes
	return strings.HasPrefix(p.Family, "Compute Instance") && a.Tenancy == "Shared" && a.System == "Linux" &&
		(a.Software == "NA" || a.Software == "") &&
		(a.Status == "Used" || a.Status == "") && (a.Option == "OnDemand" || a.Option == "")
}

// awsTerm is what a product costs under one offer term.
type awsTerm struct {
	Dimensions map[string]struct {
		Unit  string            `json:"unit"`
		Price map[string]string `json:"pricePerUnit"` // by currency
	} `json:"priceDimensions"`
}

// readAWSPrices reads a price list file as a stream: that of a large region has
// several hundred megabytes, and all that is kept of it are plain machines.
func readAWSPrices(p Page, r io.Reader) (catalog.Catalog, error) {
	l := awsList{d: json.NewDecoder(r), t: tally{source: p.Source}, at: p.At,
		kept: map[string]awsProduct{}, terms: map[string]map[string]awsTerm{}}
	if err := object(l.d, l.field); err != nil {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: %w", p.Source, errForm, err)
	}
	if l.code != "AmazonEC2" || !l.sawProducts || !l.sawTerms {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: it is of %q, products %v, on-demand terms %v",
			p.Source, errForm, l.code, l.sawProducts, l.sawTerms)
	}
	if len(l.kept) == 0 {
		return catalog.Catalog{}, fmt.Errorf("read price list of %s: %w: none of %d products is a Linux machine",
			p.Source, errForm, l.t.rows())
	}
	var rows []catalog.Listing
	for _, sku := range slices.Sorted(maps.Keys(l.kept)) {
		product := l.kept[sku]
		a := product.Attributes
		shape, ok := awsShape(p.Shapes, product)
		if !ok || a.Region == "" {
			l.t.skip(catalog.BadRow, a.Type, "region, processors or memory are missing")
			continue
		}
		rate, currency, why, detail := awsRate(l.terms[sku])
		if why != "" {
			l.t.skip(why, a.Type, detail)
			continue
		}
		q := market.Quote{Rate: rate, Priced: true, At: l.at, Source: p.Source}
		rows = append(rows, catalog.Sell(shape, a.Region, "", market.OnDemand, q, currency))
	}
	return catalog.New(p.Source, rows, l.t.skips), nil
}

// awsList is a price list file as it is read: plain machines, and their terms on demand.
type awsList struct {
	d                     *json.Decoder
	t                     tally
	at                    time.Time
	code                  string
	kept                  map[string]awsProduct
	terms                 map[string]map[string]awsTerm
	sawProducts, sawTerms bool
}

// field reads a field of the file itself.
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
			if kind != "OnDemand" {
				return discard(l.d)
			}
			l.sawTerms = true
			return object(l.d, l.term)
		})
	}
	return discard(l.d)
}

func (l *awsList) product(sku string) error {
	var product awsProduct
	if err := l.d.Decode(&product); err != nil {
		return err
	}
	if product.plain() {
		l.kept[sku] = product
	} else {
		l.t.skip(catalog.OtherUse, product.Attributes.Type, "another system, tenancy, software or product")
	}
	return nil
}

// term reads what a product costs, of those that are kept.
func (l *awsList) term(sku string) error {
	if _, ok := l.kept[sku]; !ok {
		return discard(l.d)
	}
	var offers map[string]awsTerm
	if err := l.d.Decode(&offers); err != nil {
		return err
	}
	l.terms[sku] = offers
	return nil
}

func (t tally) rows() int {
	n := 0
	for _, s := range t.skips {
		n += s.Rows()
	}
	return n
}

// awsRate returns the hourly price of a product's terms, or why there is none.
// Dollars come first, then the first other currency that is known.
func awsRate(offers map[string]awsTerm) (money.Rate, money.Currency, string, string) {
	why, detail := catalog.NoPrice, "no on-demand term"
	for _, term := range slices.Sorted(maps.Keys(offers)) {
		for _, code := range slices.Sorted(maps.Keys(offers[term].Dimensions)) {
			dim := offers[term].Dimensions[code]
			if dim.Unit != "Hrs" {
				why, detail = catalog.BadRow, "unit "+dim.Unit
				continue
			}
			names := slices.SortedFunc(maps.Keys(dim.Price), func(a, b string) int {
				if (a == "USD") != (b == "USD") {
					return map[bool]int{true: -1, false: 1}[a == "USD"]
				}
				return strings.Compare(a, b)
			})
			for _, name := range names {
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

// awsShape is the machine as it is known, or as the price list describes it. The
// list counts accelerators and does not say of which kind.
func awsShape(known catalog.Catalog, p awsProduct) (catalog.Listing, bool) {
	if l, ok := known.Machine("aws", p.Attributes.Type); ok {
		return l, true
	}
	a := p.Attributes
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
	if gbit, ok := strings.CutSuffix(strings.TrimPrefix(a.Network, "Up to "), " Gigabit"); ok &&
		!strings.HasPrefix(a.Network, "Up to") {
		if v, err := strconv.ParseFloat(gbit, 64); err == nil && v > 0 {
			l.Network = catalog.Known(v)
		}
	}
	return l, true
}

// object calls each with every key of the object that d is at; each reads its value.
func object(d *json.Decoder, each func(key string) error) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("%v where an object should begin", open)
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

// readAWSSpot reads an answer of DescribeSpotPriceHistory, as the AWS command line
// prints it. Of each machine type and zone the newest price counts. It returns the
// token of the next page too.
func readAWSSpot(p Page, page []byte) (catalog.Catalog, string, error) {
	var answer struct {
		History *[]struct {
			Zone    string    `json:"AvailabilityZone"`
			Type    string    `json:"InstanceType"`
			Product string    `json:"ProductDescription"`
			Price   string    `json:"SpotPrice"`
			At      time.Time `json:"Timestamp"`
		} `json:"SpotPriceHistory"`
		Next string `json:"NextToken"`
	}
	if err := decode(page, &answer); err != nil {
		return catalog.Catalog{}, "", fmt.Errorf("read spot prices of %s: %w", p.Source, err)
	}
	if answer.History == nil {
		return catalog.Catalog{}, "", fmt.Errorf("read spot prices of %s: %w: no SpotPriceHistory", p.Source, errForm)
	}
	t := tally{source: p.Source}
	newest := map[market.OfferID]catalog.Listing{}
	for _, h := range *answer.History {
		name := h.Type + " " + h.Zone
		if h.Product != "" && h.Product != "Linux/UNIX" && h.Product != "Linux/UNIX (Amazon VPC)" {
			t.skip(catalog.OtherUse, name, h.Product)
			continue
		}
		region := strings.TrimRight(h.Zone, "abcdefghijklmnopqrstuvwxyz")
		if h.Type == "" || region == "" || region == h.Zone {
			t.skip(catalog.BadRow, name, "machine or zone is missing")
			continue
		}
		rate, why := catalog.ParsePrice(h.Price)
		if why != "" {
			t.skip(why, name, h.Price)
			continue
		}
		shape, ok := p.Shapes.Machine("aws", h.Type)
		if !ok {
			t.skip(catalog.NoMachine, name, "import a price list first: it says what the machine is")
			continue
		}
		q := market.Quote{Rate: rate, Priced: true, At: h.At.UTC(), Source: p.Source} // in dollars, always
		l := catalog.Sell(shape, region, h.Zone, market.Spot, q, money.USD)
		if old, ok := newest[l.Offer.ID]; !ok || old.Quote.At.Before(h.At) {
			newest[l.Offer.ID] = l
		}
	}
	var rows []catalog.Listing
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		rows = append(rows, newest[id])
	}
	return catalog.New(p.Source, rows, t.skips), answer.Next, nil
}

// readAdvisor gives the spot listings of p.Spot the published share of machines
// that were interrupted within the last month. It returns those that it names.
func readAdvisor(p Page, page []byte) (catalog.Catalog, error) {
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
		return catalog.Catalog{}, fmt.Errorf("read interruption rates of %s: %w: %w", p.Source, errForm, err)
	}
	if len(file.Ranges) == 0 || len(file.Regions) == 0 {
		return catalog.Catalog{}, fmt.Errorf("read interruption rates of %s: %w: no ranges or no regions", p.Source, errForm)
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
				errForm, r.Index, r.Max)
		}
		risk[r.Index] = catalog.Risk{Low: low / 100, High: r.Max / 100, Known: true}
		low = r.Max
	}
	t := tally{source: p.Source}
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
			t.skip(catalog.BadRow, l.Offer.Machine, fmt.Sprintf("range %d is not described", *entry.Range))
			continue
		}
		l.Risk = known
		rows = append(rows, l)
	}
	return catalog.New(p.Source, rows, t.skips), nil
}
