package listing

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market/catalog"
)

// Nearly lists the filters without which something would match. For the region filter it lists the regions that exist.
func Nearly(c catalog.Catalog, want catalog.Filter, p show.Place) string {
	var b strings.Builder
	for _, w := range c.Nearly(want) {
		name := "--" + w.Name
		if w.Name == "capacity" {
			var kinds []string
			for _, k := range want.Capacity {
				kinds = append(kinds, "--"+string(k))
			}
			name = strings.Join(kinds, " ")
		}
		if w.Name == "term" || w.Name == "platform" {
			name = "--" + w.Name + " '*' instead"
			b.WriteString(draw.Wrap("", fmt.Sprintf("With %s: %s.", name, draw.Count(w.Listings, "offer")), p.Columns()))
			continue
		}
		verb := "are"
		if w.Listings == 1 {
			verb = "is"
		}
		b.WriteString(draw.Wrap("", fmt.Sprintf("Without %s there %s %s.", name, verb, draw.Count(w.Listings, "offer")),
			p.Columns()))
		if w.Name != "region" {
			continue
		}
		want.Regions = nil
		var regions []string
		for _, l := range c.Match(want) {
			if r := l.Offer.Provider + " " + l.Offer.Region; !slices.Contains(regions, r) {
				regions = append(regions, r)
			}
		}
		slices.Sort(regions)
		more := ""
		if n := len(regions) - 6; n > 0 {
			regions, more = regions[:6], fmt.Sprintf(" and %d more", n)
		}
		b.WriteString(draw.Wrap("  ",
			fmt.Sprintf("They are in %s%s; scrimp catalog update aws --region eu-west-1 fetches another.",
				strings.Join(regions, ", "), more), p.Columns()))
	}
	return b.String()
}
