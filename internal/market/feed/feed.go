// Package feed reads what others publish of prices, and turns it into catalogue
// values: AWS price lists, spot price history and interruption rates, Azure retail
// prices, the Google Cloud billing catalogue, SkyPilot's tables. It keeps copies in
// the data folder, so that a machine without a network plans with dated prices.
//
// A reader takes what it understands. A row that it does not is skipped and
// counted with the reason; a page of another form is an error.
package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/market/catalog"
)

// Form is a kind of page.
type Form string

// The forms that are read.
const (
	AWSPrices  Form = "aws-prices"  // a price list file of Amazon EC2, or of SageMaker
	AWSSavings Form = "aws-savings" // a price list file of AWS's savings plans
	AWSSpot    Form = "aws-spot"    // the answer of DescribeSpotPriceHistory
	AWSAdvisor Form = "aws-advisor" // rates of interruption, spot-advisor-data.json
	Azure      Form = "azure"       // a page of the retail prices API
	GCP        Form = "gcp"         // a page of the billing catalogue
	SkyPilot   Form = "skypilot"    // a table of the SkyPilot catalogue
	Kubernetes Form = "kubernetes"  // kubectl get nodes -o json
	Slurm      Form = "slurm"       // scontrol show node
	Listings   Form = "listings"    // a listings file of our own
)

// Forms returns all forms, for help texts.
func Forms() []Form {
	return []Form{AWSPrices, AWSSavings, AWSSpot, AWSAdvisor, Azure, GCP, SkyPilot, Kubernetes, Slurm, Listings}
}

// errForm says that a page is not of the form that it should have.
var errForm = errors.New("the page has another form")

// signs are what a page of each form begins with and has near its beginning: all of some
// words, and where any is set one of those. The first that fits counts.
var signs = []struct {
	form   Form
	prefix string
	all    []string
	any    []string
}{
	{form: AWSPrices, prefix: "{", all: []string{`"offerCode"`}},
	{form: AWSSavings, prefix: "{", all: []string{`avingsPlan`, `"products"`}},
	{form: AWSSpot, prefix: "{", all: []string{`"SpotPriceHistory"`}},
	{form: AWSAdvisor, prefix: "{", any: []string{`"spot_advisor"`, `"ranges"`}},
	{form: Azure, prefix: "{", all: []string{`"Items"`}},
	{form: GCP, prefix: "{", all: []string{`"skus"`}},
	{form: Kubernetes, prefix: "{", all: []string{`"items"`}, any: []string{`"Node"`, `"NodeList"`, `"allocatable"`}},
	{form: Slurm, prefix: "NodeName="},
	{form: SkyPilot, all: []string{"InstanceType", "AcceleratorName"}},
	{form: Listings, all: []string{"provider", "capacity"}},
}

// Sniff says which form a page has.
func Sniff(page []byte) (Form, error) {
	start := string(bytes.TrimSpace(bytes.TrimPrefix(page[:min(len(page), 1<<16)], []byte("\ufeff"))))
	if start == "" {
		return "", errors.New("the page is empty")
	}
	has := func(s string) bool { return strings.Contains(start, s) }
	for _, s := range signs {
		if strings.HasPrefix(start, s.prefix) && !slices.ContainsFunc(s.all, func(w string) bool { return !has(w) }) &&
			(len(s.any) == 0 || slices.ContainsFunc(s.any, has)) {
			return s.form, nil
		}
	}
	return "", fmt.Errorf("the page has none of the forms %v", Forms())
}

// Page is what was read of a source.
type Page struct {
	Source   string
	Provider string           // for tables that do not say; of a cluster its name, which stands as its region
	Shapes   catalog.Catalog  // machine types that are known already
	At       time.Time        // when the page was read, for prices that carry no time of their own
	Spot     *catalog.Catalog // spot listings that the advisor's rates are for
}

// Import reads the pages of one source, all of one form.
func Import(form Form, p Page, pages ...[]byte) (catalog.Catalog, error) {
	if form == GCP { // a machine's parts may stand on several pages
		t := skus{}
		for _, page := range pages {
			if _, err := t.add(p, page); err != nil {
				return catalog.Catalog{}, err
			}
		}
		return t.compose(p), nil
	}
	var all catalog.Catalog
	for _, page := range pages {
		c, err := importPage(form, p, page)
		if err != nil {
			return catalog.Catalog{}, err
		}
		all = all.With(c)
	}
	return all, nil
}

func importPage(form Form, p Page, page []byte) (catalog.Catalog, error) {
	switch form {
	case AWSPrices:
		return readAWSPrices(p, bytes.NewReader(page))
	case AWSSavings:
		return readSavings(p, bytes.NewReader(page))
	case AWSSpot:
		c, _, err := readAWSSpot(p, page)
		return c, err
	case AWSAdvisor:
		return readAdvisor(p, page)
	case Azure:
		c, _, err := readAzure(p, page)
		return c, err
	case SkyPilot:
		return readSkyPilot(p, string(page))
	case Kubernetes:
		return readNodes(p, page)
	case Slurm:
		return readScontrol(p, string(page))
	case Listings:
		return catalog.Read(p.Source, string(page))
	default:
		return catalog.Catalog{}, fmt.Errorf("form %q is none of %v", form, Forms())
	}
}

// tally counts rows that were skipped, and keeps an example of each reason.
type tally struct {
	source string
	skips  []catalog.Skip
}

func (t *tally) skip(why, name, detail string) {
	i := slices.IndexFunc(t.skips, func(s catalog.Skip) bool { return s.Why == why })
	if i < 0 {
		t.skips = append(t.skips, catalog.Skip{Source: t.source, Name: name, Why: why, Detail: detail, Count: 1})
		return
	}
	t.skips[i].Count++
}

// decode reads JSON and keeps numbers as they stand.
func decode(page []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(page, []byte("\ufeff"))))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	return nil
}

// Summary writes what was skipped in one line: "12 other_use, 1 zero_price".
func Summary(skipped []catalog.Skip) string {
	count := map[string]int{}
	var order []string
	for _, s := range skipped {
		if count[s.Why] == 0 {
			order = append(order, s.Why)
		}
		count[s.Why] += s.Rows()
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, why := range order {
		parts[i] = fmt.Sprintf("%d %s", count[why], why)
	}
	return strings.Join(parts, ", ")
}
