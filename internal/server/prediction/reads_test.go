package prediction

import (
	"fmt"
	"math"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
	"scrimp/money"
)

func inRegion(region string, cents int) api.Listing {
	o := api.Offer{ID: "cloud/" + region + "/m/on-demand", Provider: "cloud", Region: region, Zone: region + "a", Machine: "m",
		Capacity: api.OnDemand, CPUs: 4, Memory: 8 << 30, Speed: 1, Currency: "USD"}
	return api.Listing{Offer: o, Quote: api.Quote{Offer: o.ID, Rate: money.Rate(cents) * 1e10, Priced: true, Available: true,
		At: now}}
}

func plannedReads(t *testing.T, text string, charges []api.Charge, sale ...api.Listing) api.Plan {
	t.Helper()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\ncheckpoint: {dir: c}\nwork: {steps: 1000, time: 10h}\n"+text),
		"", now)
	must.Do(t, err)
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: sale}
	v := api.Server{Market: m.Clock, Charges: charges, Engines: []api.Engine{{Name: "cloud", Kind: "aws",
		Timing: api.EngineTiming{Detect: 30, Boot: 60, Consistency: 10}}}}
	p, _ := Of(j, m, v, testRuns(), nil)
	return p
}

// 200 GB at $0.02 are $4 a machine: 40 cents of each of the ten hours.
func TestPlan_CountsReadsFromAnotherRegion(t *testing.T) {
	const data = "data: [{path: s3://bucket/corpus, size: 200GB, region: us-east-1}]\n"
	for _, c := range []struct {
		elsewhere, nodes int
		charges          []api.Charge
		taken            string
		reads            float64
	}{
		{70, 1, nil, "us-east-1", 0},
		{50, 1, nil, "us-west-2", 200 * 0.02},
		{50, 3, nil, "us-west-2", 3 * 200 * 0.02},
		{50, 1, []api.Charge{{Provider: "aws", What: "transfer-gb-region", Price: 3e10, Currency: "USD"}}, "us-east-1", 0},
		{70, 2, []api.Charge{{Provider: "aws", What: "transfer-gb-region", Price: 1e10, Currency: "USD"}}, "us-west-2",
			2 * 200 * 0.01},
	} {
		p := plannedReads(t, data+fmt.Sprintf("nodes: %d\n", c.nodes), c.charges,
			inRegion("us-east-1", 100), inRegion("us-west-2", c.elsewhere))
		got := 0.0
		if p.ReadsUSD != nil {
			got = p.ReadsUSD[1]
		}
		if !strings.Contains(p.Take, c.taken) || math.Abs(got-c.reads) > 1e-9 {
			t.Errorf("%+v: it takes %s and reads for $%g", c, p.Take, got)
		}
		if len(p.Rejected) != 1 || (p.Rejected[0].ReadsUSD != nil) != (c.taken == "us-east-1") {
			t.Errorf("%+v: %+v", c, p.Rejected)
		}
	}
}

func TestPlan_SaysThatAFareIsUnknown(t *testing.T) {
	for text, want := range map[string]string{
		"data: [{path: s3://b/c, region: us-east-1}]":            "give data.size",
		"data: [{path: hf://b/c, size: 1GB, region: us-east-1}]": "leave out data.region",
	} {
		p := plannedReads(t, text+"\n", nil, inRegion("us-west-2", 100))
		if p.Feasible || p.Take != "" || !strings.Contains(strings.Join(p.Reasons, "; "), want) {
			t.Errorf("%s: takes %q because %q", text, p.Take, p.Reasons)
		}
	}
}
