// Package purchase formats the costs of buying ahead: commitments, and own machines against rented ones.
package purchase

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/work/commit"
)

// Figures are the costs of a period of months. null means unknown: nothing was used, or nothing committed.
type Figures struct {
	Cost        *float64 `json:"cost_percent"` // relative to on-demand
	Coverage    *float64 `json:"coverage"`     // share of the demand that commitments served
	Utilisation *float64 `json:"utilisation"`  // share of the committed hours that was used
	Best        *float64 `json:"best_percent"` // the best level of each month in hindsight
	Regret      *float64 `json:"regret"`       // cost above Best, in per cent of on-demand
	Attainable  bool     `json:"best_attainable"`
}

// Falls are means over the same months with a fall of demand in each of the last twelve.
type Falls struct {
	Cost        *float64 `json:"cost_percent"`
	LastYear    *float64 `json:"last_12_months_percent"`
	WorstRegret *float64 `json:"worst_regret"` // in the last twelve months
}

// Region is the result for one region.
type Region struct {
	Region   string  `json:"region"`
	Units    int64   `json:"units_bought"`
	All      Figures `json:"from_first_purchase"`
	LastYear Figures `json:"last_12_months"`
	Falls    Falls   `json:"falls"`
}

// Purchase is one purchase. The hour counts from the first hour of the demand file.
type Purchase struct {
	Region string `json:"region"`
	Start  int    `json:"month_start_hour"`
	Units  int64  `json:"units"`
}

// Point is one degree of insurance and its cost, as means over the regions.
type Point struct {
	Insure float64  `json:"insure"`
	Cost   *float64 `json:"cost_percent"`
	Falls  *float64 `json:"falls_cost_percent"`
}

// Replay is the output of scrimp commit simulate.
type Replay struct {
	Purchases  []Purchase `json:"purchases"`
	Discount   float64    `json:"discount"`
	Years      int        `json:"years"`
	Insure     float64    `json:"insure"`
	Fall       float64    `json:"fall"`
	FirstMonth string     `json:"first_purchase_month"`
	LastMonth  string     `json:"last_month"`
	Regions    []Region   `json:"regions"`
	Mean       Region     `json:"mean"` // over the regions, each with the same weight
	Curve      []Point    `json:"curve,omitempty"`
}

// Text formats the result for people.
func (r Replay) Text(p show.Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", fmt.Sprintf("Purchases from %s to %s, each for %s at %s below on-demand. Insured: a "+
		"chance of %s within twelve months that demand falls by %s.", r.FirstMonth, r.LastMonth, draw.Count(r.Years, "year"),
		below(r.Discount), wholePercent(r.Insure), wholePercent(r.Fall)), p.Columns()))
	regions := r.Regions
	if len(regions) > 1 {
		regions = append(regions[:len(regions):len(regions)], r.Mean)
	}
	fmt.Fprintf(&b, "\n%s to %s\n", r.FirstMonth, r.LastMonth)
	b.WriteString(grid(regions, p, func(v Region) Figures { return v.All }))
	b.WriteString("\nThe last twelve months\n")
	b.WriteString(grid(regions, p, func(v Region) Figures { return v.LastYear }))
	fmt.Fprintf(&b, "\nIf demand falls by %s on the 2nd of one of the last twelve months (mean)\n", wholePercent(r.Fall))
	var rows [][]string
	for _, v := range regions {
		rows = append(rows, []string{v.Region, percentOf(v.Falls.Cost, 1), percentOf(v.Falls.LastYear, 1),
			percentOf(v.Falls.WorstRegret, 1)})
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "REGION", Least: 8, Key: true}, {Name: "COST", Right: true},
		{Name: "LAST YEAR", Right: true}, {Name: "WORST REGRET", Right: true}}, rows, p.Columns()))
	says := "COST is a percentage of on-demand, COVERAGE the share of the demand that commitments serve, USED the share " +
		"of the committed hours that is used. HINDSIGHT is the best level of each month, REGRET what COST is above it, " +
		"WORST REGRET the largest regret of these falls."
	if len(r.Regions) > 1 {
		says += " The row mean gives each region the same weight, whatever its size; its WORST REGRET is the largest of " +
			"all regions."
	}
	b.WriteString("\n" + draw.Wrap("", says, p.Columns()))
	if len(r.Curve) > 0 {
		b.WriteString("\n" + r.curve(p))
	}
	return b.String()
}

func grid(regions []Region, p show.Place, of func(Region) Figures) string {
	var rows [][]string
	for _, v := range regions {
		f := of(v)
		rows = append(rows, []string{v.Region, percentOf(f.Cost, 1), percentOf(f.Coverage, 100),
			percentOf(f.Utilisation, 100), percentOf(f.Best, 1), percentOf(f.Regret, 1)})
	}
	return draw.Grid([]draw.Column{{Name: "REGION", Least: 8, Key: true}, {Name: "COST", Right: true},
		{Name: "COVERAGE", Right: true}, {Name: "USED", Right: true}, {Name: "HINDSIGHT", Right: true},
		{Name: "REGRET", Right: true}}, rows, p.Columns())
}

// curve draws the cost of insurance if demand continues, and its saving if demand falls.
func (r Replay) curve(p show.Place) string {
	var rows [][]string
	var points []draw.Spot
	for i, c := range r.Curve {
		letter := rune('a' + i%26)
		rows = append(rows, []string{string(letter), wholePercent(c.Insure), percentOf(c.Cost, 1), percentOf(c.Falls, 1)})
		if c.Cost != nil && c.Falls != nil {
			points = append(points, draw.Spot{X: *c.Cost, Y: *c.Falls, Letter: letter})
		}
	}
	grid := draw.Grid([]draw.Column{{Name: "", Key: true}, {Name: "--insure", Right: true, Key: true},
		{Name: "COST", Right: true}, {Name: "IF IT FALLS", Right: true}}, rows, p.Columns())
	label := func(v float64) string { return fmt.Sprintf("%.1f %%", v) }
	width := 72
	if p.Width > 0 {
		width = min(width, p.Columns())
	}
	return "What insurance costs and saves (across: COST, upwards: IF IT FALLS)\n" + grid + "\n" +
		draw.Plot(points, width, 12, label, label)
}

// percentOf formats a share times scale, or a dash if it is unknown.
func percentOf(v *float64, scale float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", *v*scale)
}

// wholePercent formats a fraction as a percentage without trailing zeros.
func wholePercent(v float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", 100*v), "0"), ".") + " %"
}

// ReplayOf summarizes the results of a policy.
func ReplayOf(p commit.Policy, results []commit.Result, cal commit.Calendar, first, end int) Replay {
	r := Replay{Purchases: []Purchase{}, Discount: discount(p), Years: p.Months / 12,
		Insure: p.Insure, Fall: fraction(p.Fall), FirstMonth: cal.Name(first), LastMonth: cal.Name(end - 1)}
	for _, one := range results {
		region := Region{Region: one.Region, All: figures(one.All, one.AllBest),
			LastYear: figures(one.Year, one.YearBest)}
		for _, b := range one.Purchases {
			region.Units += b.Units
			r.Purchases = append(r.Purchases, Purchase{one.Region, b.Start, b.Units})
		}
		var cost, year []*float64
		for _, f := range one.Falls {
			cost = append(cost, orNull(f.All.Percent()))
			year = append(year, orNull(f.Year.Percent()))
			regret := orNull(commit.Regret(f.Year, f.YearBest))
			if w := region.Falls.WorstRegret; regret != nil && (w == nil || *regret > *w) {
				region.Falls.WorstRegret = regret
			}
		}
		region.Falls.Cost, region.Falls.LastYear = meanOrNull(cost), meanOrNull(year)
		r.Regions = append(r.Regions, region)
	}
	r.Mean = mean(r.Regions)
	return r
}

func fraction(n int64) float64 { return float64(n) / commit.One }

// orNull returns a pointer to v, or nil if it is unknown.
func orNull(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

func figures(t commit.Tally, h commit.Hindsight) Figures {
	return Figures{orNull(t.Percent()), orNull(t.Coverage()), orNull(t.Utilisation()), orNull(h.Tally.Percent()),
		orNull(commit.Regret(t, h)), h.Attainable}
}

// meanOrNull returns the mean, or nil if the list is empty or a value is unknown.
func meanOrNull(list []*float64) *float64 {
	sum := 0.0
	for _, v := range list {
		if v == nil {
			return nil
		}
		sum += *v
	}
	if len(list) == 0 {
		return nil
	}
	sum /= float64(len(list))
	return &sum
}

func mean(regions []Region) Region {
	of := func(f func(Region) *float64) *float64 {
		var list []*float64
		for _, r := range regions {
			list = append(list, f(r))
		}
		return meanOrNull(list)
	}
	span := func(f func(Region) Figures) Figures {
		m := Figures{
			Cost:        of(func(r Region) *float64 { return f(r).Cost }),
			Coverage:    of(func(r Region) *float64 { return f(r).Coverage }),
			Utilisation: of(func(r Region) *float64 { return f(r).Utilisation }),
			Best:        of(func(r Region) *float64 { return f(r).Best }),
			Regret:      of(func(r Region) *float64 { return f(r).Regret }), Attainable: true}
		for _, r := range regions {
			m.Attainable = m.Attainable && f(r).Attainable
		}
		return m
	}
	m := Region{Region: "mean", All: span(func(r Region) Figures { return r.All }),
		LastYear: span(func(r Region) Figures { return r.LastYear }),
		Falls: Falls{Cost: of(func(r Region) *float64 { return r.Falls.Cost }),
			LastYear: of(func(r Region) *float64 { return r.Falls.LastYear })}}
	for _, r := range regions {
		m.Units += r.Units
		if w := r.Falls.WorstRegret; w != nil && (m.Falls.WorstRegret == nil || *w > *m.Falls.WorstRegret) {
			m.Falls.WorstRegret = w
		}
	}
	return m
}
