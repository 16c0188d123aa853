package feed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/aws"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/market/feed/skypilot"
)

// Endpoints holds the URLs of the sources.
type Endpoints struct {
	AWS, Advisor, Azure, GCP, SkyPilot string
	SageMaker, Savings, Vertex         string
}

// Public returns the public endpoints.
func Public() Endpoints {
	return Endpoints{
		AWS:       "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current",
		SageMaker: "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonSageMaker/current",
		Savings: "https://pricing.us-east-1.amazonaws.com/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/" +
			"region_index.json",
		Vertex:   "https://cloudbilling.googleapis.com/v1/services/C7E2-9256-1C43/skus",
		Advisor:  "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json",
		Azure:    "https://prices.azure.com/api/retail/prices",
		GCP:      "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus",
		SkyPilot: "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8",
	}
}

// Updater fetches sources.
type Updater struct {
	Client    Client
	Endpoints Endpoints
	Known     catalog.Catalog // for machine shapes and spot listings
	// Regions holds regions of any provider; each source uses those in its own format. Empty means one for AWS and
	// Azure, and all of GCP.
	Regions []string
	GCPKey  string // API key of the billing catalogue
	Now     time.Time
}

// Sources lists the sources of Update besides skypilot/NAME.
var Sources = []string{"aws", "aws-risk", "azure", "gcp", "aws-savings", "sagemaker", "vertex"}

var (
	awsRegion   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d+$`)
	azureRegion = regexp.MustCompile(`^[a-z]+\d?$`)
	gcpRegion   = regexp.MustCompile(`^[a-z]+-[a-z]+\d+$`)
	skyName     = regexp.MustCompile(`^[a-z0-9_]+$`)
)

func (u Updater) regions(form *regexp.Regexp, otherwise ...string) []string {
	if len(u.Regions) == 0 {
		return otherwise
	}
	return slices.DeleteFunc(slices.Clone(u.Regions), func(r string) bool { return !form.MatchString(r) })
}

// mostPages ends a source that never ends.
const mostPages = 5000

// Update fetches one source.
func (u Updater) Update(ctx context.Context, source string) (catalog.Catalog, error) {
	switch source {
	case "aws":
		return u.aws(ctx, u.Endpoints.AWS)
	case "sagemaker":
		return u.aws(ctx, u.Endpoints.SageMaker)
	case "aws-savings":
		return u.savings(ctx)
	case "aws-risk":
		page, err := u.Client.page(ctx, u.Endpoints.Advisor)
		if err != nil {
			return catalog.Catalog{}, err
		}
		return aws.ReadAdvisor(intake.Page{Source: redact(u.Endpoints.Advisor), Spot: &u.Known}, page)
	case "azure":
		return u.azure(ctx)
	case "gcp":
		return u.gcp(ctx, u.Endpoints.GCP)
	case "vertex":
		return u.gcp(ctx, u.Endpoints.Vertex)
	}
	if name, ok := strings.CutPrefix(source, "skypilot/"); ok && skyName.MatchString(name) {
		link := u.Endpoints.SkyPilot + "/" + name + "/vms.csv"
		page, err := u.Client.page(ctx, link)
		if err != nil {
			return catalog.Catalog{}, err
		}
		return skypilot.Read(intake.Page{Source: redact(link), Provider: name, Shapes: u.Known, At: u.Now}, string(page))
	}
	return catalog.Catalog{}, fmt.Errorf("%q is not a source: use one of %s or skypilot/NAME", source,
		strings.Join(Sources, ", "))
}

func (u Updater) aws(ctx context.Context, at string) (catalog.Catalog, error) {
	var all catalog.Catalog
	regions := u.regions(awsRegion, "us-east-1")
	if len(regions) == 0 {
		return all, fmt.Errorf("none of the regions %v is of AWS, such as us-east-1", u.Regions)
	}
	for _, r := range regions {
		link := at + "/" + r + "/index.json"
		body, err := u.Client.get(ctx, link)
		if err != nil {
			return all, err
		}
		c, err := aws.ReadPrices(intake.Page{Source: redact(link), Shapes: u.Known, At: u.Now}, body)
		_ = body.Close()
		if err != nil {
			return all, err
		}
		all = all.With(c)
	}
	return all, nil
}

// savings reads the savings plans of each region, from the files that the index names.
func (u Updater) savings(ctx context.Context) (catalog.Catalog, error) {
	var all catalog.Catalog
	regions := u.regions(awsRegion, "us-east-1")
	if len(regions) == 0 {
		return all, fmt.Errorf("none of the regions %v is of AWS, such as us-east-1", u.Regions)
	}
	page, err := u.Client.page(ctx, u.Endpoints.Savings)
	if err != nil {
		return all, err
	}
	var index struct {
		Regions []struct {
			Code string `json:"regionCode"`
			URL  string `json:"versionUrl"`
		} `json:"regions"`
	}
	if err := intake.Decode(page, &index); err != nil {
		return all, fmt.Errorf("read the index of %s: %w", redact(u.Endpoints.Savings), err)
	}
	base, err := url.Parse(u.Endpoints.Savings)
	if err != nil {
		return all, errors.New("the address of the savings plans is not a URL")
	}
	found := 0
	for _, r := range index.Regions {
		link, err := base.Parse(r.URL)
		if !slices.Contains(regions, r.Code) || err != nil || !sameHost(link.String(), base.String()) {
			continue
		}
		body, err := u.Client.get(ctx, link.String())
		if err != nil {
			return all, err
		}
		c, err := aws.ReadSavings(intake.Page{Source: redact(link.String()), Shapes: u.Known, At: u.Now}, body)
		_ = body.Close()
		if err != nil {
			return all, err
		}
		all, found = all.With(c), found+1
	}
	if found == 0 {
		return all, fmt.Errorf("fetch %s: %w: it names no file of %v at its own host", redact(u.Endpoints.Savings),
			intake.ErrForm, regions)
	}
	return all, nil
}

func (u Updater) azure(ctx context.Context) (catalog.Catalog, error) {
	var all catalog.Catalog
	regions := u.regions(azureRegion, "eastus")
	if len(regions) == 0 {
		return all, fmt.Errorf("none of the regions %v is of Azure, such as eastus", u.Regions)
	}
	for _, r := range regions {
		filter := "serviceName eq 'Virtual Machines' and armRegionName eq '" + r +
			"' and (priceType eq 'Consumption' or priceType eq 'Reservation')"
		link := u.Endpoints.Azure + "?api-version=2023-01-01-preview&$filter=" + url.QueryEscape(filter)
		seen := map[string]bool{}
		for link != "" {
			if seen[link] || len(seen) >= mostPages {
				return all, fmt.Errorf("fetch %s: %w: its pages do not end", redact(link), intake.ErrForm)
			}
			seen[link] = true
			if !sameHost(link, u.Endpoints.Azure) {
				return all, fmt.Errorf("fetch %s: %w: the next page is at %s", redact(u.Endpoints.Azure), intake.ErrForm,
					redact(link))
			}
			page, err := u.Client.page(ctx, link)
			if err != nil {
				return all, err
			}
			c, next, err := readAzure(intake.Page{Source: redact(u.Endpoints.Azure), Shapes: u.Known, At: u.Now}, page)
			if err != nil {
				return all, err
			}
			all, link = all.With(c), next
		}
	}
	return all, nil
}

func sameHost(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	return err == nil && err2 == nil && x.Scheme == y.Scheme && x.Hostname() == y.Hostname() && port(x) == port(y)
}

// port returns the port of a URL; Azure's links name the default port.
func port(u *url.URL) string {
	if p := u.Port(); p != "" || u.Scheme != "https" {
		return p
	}
	return "443"
}

func (u Updater) gcp(ctx context.Context, at string) (catalog.Catalog, error) {
	if u.GCPKey == "" {
		return catalog.Catalog{},
			fmt.Errorf("the billing catalogue of Google Cloud wants an API key: put one into GOOGLE_API_KEY")
	}
	var parts skus
	p := intake.Page{Source: redact(at), Shapes: u.Known, At: u.Now}
	seen := map[string]bool{}
	for token := ""; ; {
		if seen[token] || len(seen) >= mostPages {
			return catalog.Catalog{}, fmt.Errorf("fetch %s: %w: its pages do not end", p.Source, intake.ErrForm)
		}
		seen[token] = true
		query := url.Values{"key": {u.GCPKey}, "pageSize": {"5000"}}
		if token != "" {
			query.Set("pageToken", token)
		}
		page, err := u.Client.page(ctx, at+"?"+query.Encode())
		if err != nil {
			return catalog.Catalog{}, err
		}
		if token, err = parts.add(p, page); err != nil {
			return catalog.Catalog{}, err
		}
		if token == "" {
			break
		}
	}
	all := parts.compose(p)
	if wanted := u.regions(gcpRegion); len(wanted) > 0 {
		all.Listings = slices.DeleteFunc(all.Listings, func(l catalog.Listing) bool {
			return !slices.Contains(wanted, l.Offer.Region)
		})
	}
	if len(all.Listings) == 0 {
		return all, fmt.Errorf("read the billing catalogue of %s: %w: no machine type has all its components: %s",
			p.Source, intake.ErrForm, intake.Summary(all.Skipped))
	}
	return all, nil
}
