package show_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/decide/policy"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/must"
)

const sold = `provider,region,zone,machine,capacity,accelerator,accelerators,cpus,memory_gib,price,currency,at,source,term,platform,upfront,hourly
aws,us-east-1,,p5.48xlarge,on-demand,H100-SXM-80GB,8,192,2048,51,USD,2026-02-27,list,,,,
aws,us-east-1,,p5.48xlarge,reserved,H100-SXM-80GB,8,192,2048,29,USD,2026-02-27,list,reserved-1y-partial-upfront,,122640,15
aws,us-east-1,,p5.48xlarge,reserved,H100-SXM-80GB,8,192,2048,,USD,2026-02-27,plans,savings-plan-1y-no-upfront,,,40.25
aws,us-east-1,,ml.p5.48xlarge,on-demand,H100-SXM-80GB,8,192,2048,63.24,USD,2026-02-27,list of SageMaker,,sagemaker,,
aws,eu-west-1,,ml.p5.48xlarge,on-demand,H100-SXM-80GB,8,192,2048,70,USD,2026-02-27,list of SageMaker,,sagemaker,,
gcp,us-central1,,a3-highgpu-8g,spot,H100-SXM-80GB,8,208,1872,30.1,USD,2026-02-28,billing catalogue,preemptible,,,
`

func TestOffers_CompareTermsAndPlatformsWithRawMachine(t *testing.T) {
	c, err := catalog.Read("test", sold)
	if err != nil || len(c.Skipped) > 0 {
		t.Fatal(err, c.Skipped)
	}
	list := c.Beside(c.Listings)
	text := listing.Offers(list, nil, nil, 0, listing.Limits{}, now, show.Place{Now: now})
	for _, want := range []string{
		"reserved-1y-partial-upfront, $122640.00 now, $15.0000/h", // which is $29 an hour in all
		"savings-plan-1y-no-upfront, paid by the hour",
		"sagemaker, raw $51.0000 +24.0 %", // 63.24 / 51
		"sagemaker, raw price unknown", "preemptible, at most 24h",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	plain := c.Match(catalog.Filter{Terms: []string{catalog.NoTerm}, Platforms: []string{catalog.Raw}})
	if text := listing.Offers(plain, nil, nil, 0, listing.Limits{}, now, show.Place{Now: now}); strings.Contains(text, "TERMS") {
		t.Errorf("a column of terms where nothing has one:\n%s", text)
	}
	apart := listing.Apart(c, catalog.Filter{Terms: []string{catalog.NoTerm}, Platforms: []string{catalog.Raw}}, len(plain),
		show.Place{Width: 200})
	if apart != "On other terms: 3 offers more with --term '*', 2 offers more with --platform '*'.\n" {
		t.Errorf("%q", apart)
	}
	for _, l := range list {
		b, err := json.Marshal(listing.OfferOf(l, policy.Hazard{}, now, listing.Limits{}))
		must.Do(t, err)
		var v struct {
			Price, Upfront, Hourly string
			Total                  string  `json:"term_total"`
			Hours                  int     `json:"term_hours"`
			MarkUp                 float64 `json:"mark_up"`
			Raw                    string  `json:"raw_price"`
		}
		must.Do(t, json.Unmarshal(b, &v))
		switch {
		case l.Term == "reserved-1y-partial-upfront": // 122,640 + 8,760 · 15
			if v.Price != "29" || v.Upfront != "122640" || v.Hourly != "15" || v.Total != "254040" || v.Hours != 8760 {
				t.Errorf("%s", b)
			}
		case l.Platform != "" && l.Offer.Region == "us-east-1":
			if v.Raw != "51" || v.MarkUp < 0.24-1e-12 || v.MarkUp > 0.24+1e-12 {
				t.Errorf("%s", b)
			}
		case l.Term == "savings-plan-1y-no-upfront": // 8,760 · 40.25
			if v.Upfront != "0" || v.Hourly != "40.25" || v.Total != "352590" {
				t.Errorf("%s", b)
			}
		case v.Total+v.Raw != "":
			t.Errorf("%s", b)
		}
	}
}
