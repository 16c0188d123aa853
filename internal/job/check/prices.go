package check

import (
	"fmt"
	"math"
	"strconv"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// priceCap judges the highest price that the job accepts.
func priceCap(c *Case) (Verdict, string, string) {
	f := c.wanted()
	f.MaxRate = 0
	least, ok := c.cheapest(f, 0)
	switch most := c.Job.MaxPrice; {
	case !c.onSpot():
		return Pass, "it never runs on spot", ""
	case most > 0 && !ok:
		return Unknown, fmt.Sprintf("$%s/h, and the catalogue has no machine like that with a price in dollars", most),
			"scrimp catalog update fetches more"
	case most > 0 && least.Quote.Rate > most:
		return Fail, fmt.Sprintf("$%s/h, and the cheapest that fits is %s", most, hourly(least)),
			"raise max_price: nothing is for sale at that price"
	case most > 0:
		return Pass, fmt.Sprintf("$%s/h; the cheapest that fits is %s", most, hourly(least)), ""
	}
	fix := "set max_price to the price of on-demand"
	f.Capacity = []market.Capacity{market.OnDemand}
	if l, ok := c.cheapest(f, 0); ok {
		fix = fmt.Sprintf("max_price: $%s, which is what on-demand costs (%s)", l.Quote.Rate, l.Offer.ID)
	}
	return Warn, "the price of spot has no limit", fix
}

// choice judges how many offers the job accepts.
func choice(c *Case) (Verdict, string, string) {
	n := 0
	machines, regions := map[string]bool{}, map[string]bool{}
	for _, l := range (catalog.Catalog{Listings: c.Offers}).Match(c.wanted()) {
		if l.Plain() && l.Quote.Priced {
			n++
			machines[l.Offer.Provider+"/"+l.Offer.Machine], regions[l.Offer.Provider+"/"+l.Offer.Region] = true, true
		}
	}
	text := fmt.Sprintf("%s: %s in %s", draw.Count(n, "offer"), draw.Count(len(machines), "machine type"),
		draw.Count(len(regions), "region"))
	switch {
	case n == 0:
		return Unknown, "the catalogue has no priced machine like that", "scrimp catalog update fetches more"
	case n == 1 && len(c.Job.AnyOf) == 0:
		return Warn, text, "accept other zones, counts or accelerators: any_of"
	}
	return Pass, text, ""
}

// peakPlanned computes how many machines the stated peak needs.
func peakPlanned(c *Case) (Verdict, string, string) {
	peak, err := strconv.ParseFloat(c.Facts["peak_requests"], 64)
	if err != nil || !(peak > 0) {
		return Unknown, c.live("its peak is unknown"), fact.Supply("peak_requests")
	}
	rate, err := strconv.ParseFloat(c.Facts["predictions_per_second"], 64)
	if err != nil || !(rate > 0) {
		return Unknown, fmt.Sprintf("you say %g a second at the peak, and not what a machine serves", peak),
			fact.Supply("predictions_per_second")
	}
	n := math.Ceil(peak / rate)
	text := fmt.Sprintf("%.0f machines serve the %g a second that you say", n, peak)
	if n == 1 {
		text = fmt.Sprintf("one machine serves the %g a second that you say", peak)
	}
	f := c.wanted()
	f.Capacity = []market.Capacity{market.OnDemand}
	if l, ok := c.cheapest(f, 0); ok {
		text += fmt.Sprintf(": %s/h on %s", usd(n*l.Quote.Rate.Float()), l.Offer.ID)
	}
	return Pass, text, ""
}
