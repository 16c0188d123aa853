package catalog_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/must"
)

const termHead = "provider,region,machine,capacity,cpus,price,currency,term,platform,upfront,hourly\n"

func TestEffective_SumsAllPaymentsOverHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		years := rapid.SampledFrom([]int64{1, 3}).Draw(t, "years")
		upfront := money.Picos(rapid.Int64Min(0).Draw(t, "upfront"))
		hourly := money.Rate(rapid.Int64Range(1, 1e18).Draw(t, "hourly"))
		term := map[int64]catalog.Term{1: "reserved-1y-partial-upfront", 3: "savings-plan-3y-partial-upfront"}[years]
		got, ok := term.Effective(upfront, hourly)
		hours := big.NewInt(years * 365 * 24)
		all := new(big.Int).Add(upfront.Big(), new(big.Int).Mul(hours, big.NewInt(int64(hourly))))
		paid := new(big.Int).Mul(hours, big.NewInt(int64(got)))
		over := new(big.Int).Sub(paid, all) // less than one step of a rate per hour, and never negative
		if !ok || over.Sign() < 0 || over.Cmp(hours) >= 0 {
			t.Fatalf("%v up front and %v an hour for %d years: %v %v", upfront, hourly, years, got, ok)
		}
	})
}

func TestRead_KeepsTermExactly(t *testing.T) {
	c, err := catalog.Read("t", termHead+
		"aws,us-east-1,m,reserved,4,,USD,reserved-1y-partial-upfront,,876,0.05\n"+
		"aws,us-east-1,m,reserved,4,0.15,USD,reserved-1y-all-upfront,,1314,\n"+
		"gcp,us-central1,m,spot,4,1,USD,preemptible,,,\n"+
		"aws,us-east-1,ml.m,on-demand,4,0.5,USD,,sagemaker,,\n"+
		"aws,us-east-1,m,on-demand,4,0.4,USD,,,,\n")
	if err != nil || len(c.Skipped) > 0 {
		t.Fatal(err, c.Skipped)
	}
	var ids []string
	for _, l := range c.Listings {
		ids = append(ids, string(l.Offer.ID)+" "+l.Quote.Rate.String())
	}
	want := "aws/us-east-1/m/on-demand 0.4, aws/us-east-1/m/reserved/reserved-1y-all-upfront 0.15, " +
		"aws/us-east-1/m/reserved/reserved-1y-partial-upfront 0.15, aws/us-east-1/ml.m/on-demand@sagemaker 0.5, " +
		"gcp/us-central1/m/spot/preemptible 1"
	if got := strings.Join(ids, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	total, ok := c.Listings[2].Total() // 876 + 8760 · 0.05
	if again, _ := money.Parse("1314"); !ok || total != again {
		t.Errorf("in all %v %v", total, ok)
	}
	again, err := catalog.Read("again", catalog.Write(c.Listings))
	if err != nil || catalog.Write(again.Listings) != catalog.Write(c.Listings) {
		t.Errorf("kept as\n%s\n%v", catalog.Write(again.Listings), err)
	}
	for row, why := range map[string]string{
		"aws,r,m,reserved,4,1,USD,reserved-2y-no-upfront,,,1":   catalog.BadRow,
		"aws,r,m,on-demand,4,1,USD,reserved-1y-no-upfront,,,1":  catalog.BadRow,
		"aws,r,m,on-demand,4,1,USD,preemptible,,,":              catalog.BadRow,
		"aws,r,m,on-demand,4,1,USD,,,5,":                        catalog.BadRow,
		"aws,r,m,on-demand,4,1,USD,,databricks,,":               catalog.BadRow,
		"aws,r,m,reserved,4,1,USD,reserved-1y-no-upfront,,,":    catalog.BadRow,
		"aws,r,m,reserved,4,1,USD,reserved-1y-no-upfront,,,2":   catalog.BadPrice,
		"aws,r,m,reserved,4,,USD,reserved-1y-no-upfront,,,0":    catalog.BadPrice,
		"aws,r,m,reserved,4,,USD,reserved-1y-no-upfront,,many,": catalog.BadPrice,
	} {
		c, err := catalog.Read("t", termHead+row+"\n")
		if err != nil || len(c.Listings) != 0 || len(c.Skipped) != 1 || c.Skipped[0].Why != why {
			t.Errorf("%s: %+v, %v, want %s", row, c.Skipped, err, why)
		}
	}
}

func TestFilter_TermZoneAndPlatform(t *testing.T) {
	c, err := catalog.Read("t", strings.Replace(termHead, "region,", "region,zone,", 1)+
		"aws,r,r-a,m,spot,4,1,USD,,,,\naws,r,,m,spot,4,1,USD,,,,\naws,r,,m,reserved,4,,USD,reserved-1y-no-upfront,,,1\n"+
		"aws,r,,ml.m,on-demand,4,2,USD,,sagemaker,,\n")
	if err != nil || len(c.Listings) != 4 {
		t.Fatal(err, c.Skipped)
	}
	for _, x := range []struct {
		f    catalog.Filter
		want int
	}{
		{catalog.Filter{}, 4}, {catalog.Filter{Zones: []string{"r-*"}}, 1}, {catalog.Filter{Terms: []string{"none"}}, 3},
		{catalog.Filter{Terms: []string{"reserved-*", "committed-*"}}, 1},
		{catalog.Filter{Platforms: []string{"raw"}, Terms: []string{"none"}}, 2},
		{catalog.Filter{Platforms: []string{"*"}}, 4},
	} {
		if got := len(c.Match(x.f)); got != x.want {
			t.Errorf("%+v: %d, want %d", x.f, got, x.want)
		}
	}
}

func TestManaged_AzureHasNoSurcharge(t *testing.T) {
	raw := catalog.Builtin()
	c := raw.Managed()
	n := 0
	for _, l := range c.Beside(c.Listings) {
		if l.Platform != "azureml" {
			continue
		}
		n++
		if over, ok := l.MarkUp(); !ok || over != 0 || !strings.Contains(l.Quote.Source, "azureml") || l.RuleSource != "" {
			t.Errorf("%s: %v %v, %s", l.Offer.ID, over, ok, l.Quote.Source)
		}
	}
	want := 0
	for _, l := range raw.Listings {
		if l.Offer.Provider == "azure" && l.Offer.Capacity == market.OnDemand {
			want++
		}
	}
	if n != want || n == 0 || len(c.Listings) != len(raw.Listings)+n {
		t.Errorf("%d of %d, %d listings", n, want, len(c.Listings))
	}
	if len(c.Managed().Listings) != len(c.Listings) {
		t.Error("a second time adds others")
	}
}

func TestOverlay_DiscountsBothPaymentsOfTerm(t *testing.T) {
	c, err := catalog.Read("t", termHead+
		"aws,us-east-1,m,reserved,4,,USD,reserved-1y-partial-upfront,,876,0.05\naws,us-east-1,m,on-demand,4,0.4,USD,,,,\n")
	must.Do(t, err)
	over, err := c.Overlay("mine", "provider,machine,discount,price,term\naws,*,25%,,reserved-*\n", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || len(over.Skipped) > 0 {
		t.Fatal(err, over.Skipped)
	}
	for _, l := range over.Listings {
		got := l.Quote.Rate.String() + " " + l.Upfront.String() + " " + l.Hourly.String()
		if want := map[bool]string{true: "0.1125 657 0.0375", false: "0.4 0 0"}[l.Term != ""]; got != want {
			t.Errorf("%s: %s, want %s", l.Offer.ID, got, want)
		}
	}
	over, err = c.Overlay("mine", "provider,machine,discount,price\naws,*,25%,\n", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || over.Listings[1].Listed != nil || over.Listings[0].Listed == nil {
		t.Errorf("a row without a term touches one: %v, %v", over.Listings, err)
	}
}
