// Package feed converts published prices to catalogue values: AWS price lists, spot price history and interruption
// rates, Azure retail prices, the Google Cloud billing catalogue, and SkyPilot's tables. It stores copies in the data
// folder, so that a machine without a network can plan with dated prices.
//
// A reader skips rows that it does not understand, and counts them with the reason. A page in another format is an
// error.
package feed

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/aws"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/market/feed/skypilot"
)

// Form is a page format.
type Form string

// The supported formats.
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
	Listings   Form = "listings"    // scrimp's own listings file
)

// Forms returns all formats, for help texts.
func Forms() []Form {
	return []Form{AWSPrices, AWSSavings, AWSSpot, AWSAdvisor, Azure, GCP, SkyPilot, Kubernetes, Slurm, Listings}
}

// signs holds what a page of each format contains near its beginning: all of some words and, if any is set, one of
// those. The first match counts.
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

// Sniff returns the format of a page.
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

// Import reads the pages of one source, all in one format.
func Import(form Form, p intake.Page, pages ...[]byte) (catalog.Catalog, error) {
	if form == GCP { // a machine's parts may be spread over several pages
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

func importPage(form Form, p intake.Page, page []byte) (catalog.Catalog, error) {
	switch form {
	case AWSPrices:
		return aws.ReadPrices(p, bytes.NewReader(page))
	case AWSSavings:
		return aws.ReadSavings(p, bytes.NewReader(page))
	case AWSSpot:
		c, _, err := aws.ReadSpot(p, page)
		return c, err
	case AWSAdvisor:
		return aws.ReadAdvisor(p, page)
	case Azure:
		c, _, err := readAzure(p, page)
		return c, err
	case SkyPilot:
		return skypilot.Read(p, string(page))
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
