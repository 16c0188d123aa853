package show_test

import (
	"testing"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/golden"
)

func contents(t *testing.T) listing.Contents {
	c := listing.Contents{
		Folder:  "data/scrimp",
		Layers:  []listing.Layer{{Name: "built in", Rows: 181, At: ptr(now.Add(-200 * 24 * time.Hour))}, {Name: "aws.csv", Rows: 8123, At: ptr(now.Add(-5 * time.Hour))}, {Name: "prices.csv", Rows: 2, At: ptr(now.Add(-24 * time.Hour))}, {Name: "import-listings.csv", Rows: 7}},
		Skipped: []catalog.Skip{{Source: "prices.csv", Row: 4, Name: "aws p9*", Why: catalog.NoMatch}, {Source: "aws", Name: "p5.48xlarge", Why: catalog.OtherUse, Detail: "another system, tenancy, software or product", Count: 8123}},
	}
	c.Count(offers(t).Listings, now, listing.Limits{})
	return c
}

func TestContents_ShowLayersAndSkippedRows(t *testing.T) {
	fetched := []listing.Fetched{
		{Source: "aws", Offers: 812, Kept: 1600, Summary: "8123 other_use, 1 zero_price", Skipped: []catalog.Skip{}},
		{Source: "skypilot/lambda", Offers: 24, Kept: 24, Skipped: []catalog.Skip{}},
		{Source: "gcp", Error: "read the billing catalogue of https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus: the page has another form: no skus", Skipped: []catalog.Skip{}},
	}
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
		golden.Check(t, "catalog."+width+".txt", contents(t).Text(p))
		text := ""
		for _, f := range fetched {
			text += f.Text(p)
		}
		golden.Check(t, "fetched."+width+".txt", text)
	}
	golden.JSON(t, "json/catalog.json", contents(t))
	golden.JSON(t, "json/fetched.json", fetched[0])
	golden.JSON(t, "json/gpu.json", listing.KindOf(kinds("H100-NVL")[0]))
}
