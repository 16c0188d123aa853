package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Sizes of the plot of the best value against the spend.
const (
	plotHeight = 8
	plotWidth  = 100
	plotIndent = 2
)

// Course formats how a search goes: its rungs, the importance of its parameters, and its best value against the spend.
// It is empty before the first value.
func Course(r api.GroupReceipt, p show.Place) string {
	s := r.Study
	if s == nil || r.Group.Study == nil || len(s.BestBySpend)+len(s.ProxyBySpend) == 0 {
		return ""
	}
	var b strings.Builder
	unit := "unit"
	if f := r.Group.Study.Fidelity; f != nil {
		unit = show.Clean(f.Name)
	}
	var list []string
	for _, g := range s.Rungs {
		list = append(list, fmt.Sprintf("%s by %s %s", draw.Count(g.Reached, "trial"), unit, number(g.Unit)))
	}
	if len(list) > 1 {
		p.Fact(&b, "rungs", "%s", strings.Join(list, ", "))
	}
	if x := s.Importance; x != nil {
		names := slices.SortedFunc(maps.Keys(x.Shares), func(a, b string) int {
			return cmp.Or(cmp.Compare(x.Shares[b], x.Shares[a]), strings.Compare(a, b))
		})
		list = nil
		for _, name := range names[:min(len(names), 8)] {
			list = append(list, fmt.Sprintf("%s %.0f %%", show.Clean(name), 100*x.Shares[name]))
		}
		p.Fact(&b, "importance", "%s of the spread of %s, by rank, among %d trials at %s %s", strings.Join(list, ", "),
			show.Clean(r.Group.Study.Metric), x.Trials, unit, number(x.Unit))
	}
	metric := show.Clean(r.Group.Study.Metric)
	if r.Group.Study.Proxy != nil { // its values do not compare with those of full trainings
		b.WriteString(bestBySpend(s.ProxyBySpend, "best "+metric+" on the proxy against the spend", r.Group.Currency, p))
	} else {
		b.WriteString(bestBySpend(s.BestBySpend, "best "+metric+" against the spend", r.Group.Currency, p))
	}
	return b.String()
}

// bestBySpend plots the best value of a search against its spend, under a title.
func bestBySpend(list []api.StudyMark, title string, c money.Currency, p show.Place) string {
	if len(list) < 3 || !(list[len(list)-1].SpentUSD > list[0].SpentUSD) {
		return ""
	}
	first, last := list[0].SpentUSD, list[len(list)-1].SpentUSD
	wide := min(p.Columns(), plotWidth)
	if p.Columns() <= 0 {
		wide = plotWidth
	}
	var spots []draw.Spot
	for n, at := 0, 0; n <= 2*wide; n++ {
		x := first + float64(n)/float64(2*wide)*(last-first)
		for at+1 < len(list) && list[at+1].SpentUSD <= x {
			at++
		}
		spots = append(spots, draw.Spot{X: x, Y: list[at].Best, Letter: '*'})
	}
	text := draw.Plot(spots, wide-plotIndent, plotHeight,
		func(v float64) string { return money.ShortFloat(v, c) }, number)
	var b strings.Builder
	fmt.Fprintf(&b, "  %s\n", title)
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", plotIndent) + line)
	}
	return b.String()
}
