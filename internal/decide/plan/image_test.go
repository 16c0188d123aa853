package plan

import (
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A job with an image fits only machines that run images. If a variant has none, that variant runs elsewhere. Too
// few processors are reported first.
func TestFits_ImageNeedsMachineThatRunsImages(t *testing.T) {
	sells := func(images bool, cpus int) *Listing {
		return &Listing{Offer: market.Offer{ID: "o", CPUs: cpus, Speed: 1, Images: images, Currency: money.USD, Capacity: market.OnDemand},
			Quote: market.Quote{Offer: "o", Priced: true, Available: true, Rate: 1}}
	}
	own := Need{Requirements: Requirements{CPUs: 2}}
	named := own
	named.Image = "a/b"
	either := own
	either.Variants = []Variant{{Name: "boxed", Throughput: 2, Requirements: Requirements{CPUs: 2, Image: "a/b"}}}
	for _, c := range []struct {
		name string
		need Need
		on   *Listing
		way  int
		why  Reason
	}{
		{"none, on a container", own, sells(true, 2), 0, ""},
		{"none, elsewhere", own, sells(false, 2), 0, ""},
		{"one, on a container", named, sells(true, 2), 0, ""},
		{"one, elsewhere", named, sells(false, 2), -1, NoImages},
		{"one, on what is too small too", named, sells(false, 1), -1, TooSmall},
		{"an alternative's, on a container", either, sells(true, 2), 1, ""},
		{"an alternative's, elsewhere", either, sells(false, 2), 0, ""},
	} {
		if way, why, _ := c.need.fit(nil, c.on); way != c.way || way < 0 && why != c.why {
			t.Errorf("%s: way %d, %q", c.name, way, why)
		}
	}
	if own.Key() == named.Key() || !classWide(NoImages) {
		t.Error("jobs with an image and without are of one class")
	}
	if named.Imaged(&sells(false, 2).Offer) || !named.Imaged(&sells(true, 2).Offer) || !either.Imaged(&sells(false, 2).Offer) {
		t.Error("an image is run where none is, or not where it is")
	}
}
