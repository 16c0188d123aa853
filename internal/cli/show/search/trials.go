package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// BestTrial adds a trial with its parameters. Of a search on a proxy it says which training its value is of.
func BestTrial(b *strings.Builder, t api.Trial, s *api.StudyState, p show.Place) {
	value, at, name := "-", "", "best"
	if t.Proxy {
		name = "on proxy"
	}
	if t.Best != nil {
		value = number(*t.Best)
	}
	if s.Fidelity != nil {
		at = fmt.Sprintf(" at %s %s", show.Clean(s.Fidelity.Name), number(t.BestAt))
	}
	if t.PromotedFrom != nil {
		at += ", trained in full"
	}
	p.Fact(b, name, "%s %s%s, by %s", show.Clean(s.Metric), value, at, show.Clean(t.ID))
	p.Fact(b, "parameters", "%s", params(t))
}

func params(t api.Trial) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(t.Params)) {
		list = append(list, show.Clean(name)+"="+show.Clean(t.Params[name]))
	}
	return strings.Join(list, " ")
}

// NoValue returns what says that no trial has reported a value: one may still come while the search is open.
func NoValue(g api.Group, text string) string {
	if g.State == "over" {
		return text
	}
	return text + " yet"
}

// Best formats the best trial of a search; of the proxy if there is none in full, and empty without a value.
func Best(g api.Group, p show.Place) string {
	if s := g.Study; s != nil && s.Best == nil && s.Proxy != nil && s.Proxy.Best != nil {
		var b strings.Builder
		BestTrial(&b, *s.Proxy.Best, s, p)
		return b.String()
	}
	if g.Study == nil || g.Study.Best == nil {
		return ""
	}
	var b strings.Builder
	BestTrial(&b, *g.Study.Best, g.Study, p)
	fmt.Fprintf(&b, "  scrimp get %s  its outputs\n", show.Clean(g.Study.Best.ID))
	return b.String()
}

// NoBest says why a search has no best trial, and what shows more.
func NoBest(g api.Group) error {
	why := "no trial has reported a value"
	if p := g.Study.Proxy; p != nil && p.Best != nil {
		why = "no trial that trains in full has reported a value"
	}
	if why = NoValue(g, why); g.Why != "" {
		why += ", and the search is over: " + strings.ReplaceAll(show.Clean(g.Why), "_", " ")
	}
	why += "."
	for _, w := range g.Study.Warnings {
		if why += " " + show.Clean(w); !strings.HasSuffix(w, "?") {
			why += "."
		}
	}
	id := show.Clean(g.ID)
	return fmt.Errorf("%s: %s scrimp tune trials %s lists the trials, scrimp receipt %s what they cost", id, why, id, id)
}

// Trials formats the table of a search's trials, best first. Those on a proxy follow those
// trained in full.
func Trials(list []api.Trial, g api.Group, p show.Place) string {
	if len(list) == 0 {
		return show.Clean(g.ID) + ": no trial has begun yet\n"
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b api.Trial) int { return order(a, b, g.Study.Maximize) })
	unit := "UNIT"
	if f := g.Study.Fidelity; f != nil {
		unit = strings.ToUpper(show.Clean(f.Name))
	}
	var rows [][]string
	for _, t := range list {
		best, last := "-", "-"
		if t.Best != nil {
			best, last = number(*t.Best), number(*t.Last)
		}
		id := show.Clean(t.ID)
		if t.Proxy {
			id += " (proxy)"
		}
		rows = append(rows, []string{id, show.Words(t.State), number(t.Unit), best, last,
			money.Format(t.Cost, g.Currency, 4), show.Words(t.Why), params(t)})
	}
	return draw.Grid([]draw.Column{
		{Name: "TRIAL", Key: true}, {Name: "STATE"}, {Name: unit, Right: true}, {Name: "BEST", Right: true},
		{Name: "LAST", Right: true, Leaves: 2}, {Name: "COST", Right: true}, {Name: "WHY", Least: 6, Leaves: 1},
		{Name: "PARAMETERS", Least: 10},
	}, rows, p.Columns())
}

// order compares trials by their best values; trials without one come last.
func order(a, b api.Trial, maximize bool) int {
	switch {
	case a.Proxy != b.Proxy:
		return map[bool]int{true: 1, false: -1}[a.Proxy]
	case a.Best == nil && b.Best == nil, a.Best != nil && b.Best != nil && *a.Best == *b.Best:
		return 0
	case a.Best == nil || b.Best != nil && (*b.Best < *a.Best) != maximize:
		return 1
	}
	return -1
}
