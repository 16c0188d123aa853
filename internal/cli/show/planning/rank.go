package planning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/rank"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Ranking holds the catalogue's offers ranked for a job.
type Ranking struct {
	Name    string      `json:"name"`
	Work    string      `json:"work"`    // the amount of work and its source
	Assumed []string    `json:"assumed"` // assumptions
	Answer  rank.Answer `json:"answer"`
	Played  *Played     `json:"played"` // the first plan; null if none
	// SpotPoor is why spot is a poor choice for the job although plans are on spot, and a fix; empty if it is not.
	SpotPoor string `json:"spot_poor,omitempty"`
	// Here lists the providers that the engines of the user's server rent from now.
	Here []string `json:"engines"`
}

// Played is a plan that was simulated many times with the code that would run it, at the middle of the estimate: it
// covers interruptions, but not the estimate's error.
type Played struct {
	Runs          int        `json:"runs"`
	Done          float64    `json:"done"` // share of runs completed within the budget
	InTime        *float64   `json:"odds"`
	Cost          [3]float64 `json:"cost_usd"` // 10 %, median, 90 %
	Hours         []float64  `json:"hours"`    // quantiles as Cost
	Interruptions float64    `json:"interruptions"`
}

// Bounds of what a ranking shows.
const (
	mostPlans   = 10
	mostRejects = 5
	barWidth    = 24
)

// sum formats an amount in the ranking's currency.
func (v Ranking) sum(usd float64) string {
	a, ok := money.Estimated(usd)
	if !ok {
		return "?"
	}
	digits := 2
	if usd > 0 && usd < 0.1 { // a small cost must not look like zero
		digits = min(9, 1-int(math.Floor(math.Log10(usd))))
	}
	return money.Format(a, v.Answer.Currency, digits)
}

func hours(h float64) string { return draw.Span(time.Duration(h * float64(time.Hour))) }

// atLeast formats a required duration, rounded up, so that the printed value suffices.
func atLeast(h float64) string {
	unit := time.Second
	switch {
	case h >= 48:
		unit = time.Hour
	case h >= 1:
		unit = time.Minute
	}
	u := unit.Hours()
	return hours(math.Ceil(h/u-1e-9) * u)
}

// least formats a required amount, rounded up to the cent.
func (v Ranking) least(usd float64) string { return v.sum(math.Ceil(usd*100-1e-6) / 100) }

func times(n int, what string) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%d× %s", n, what)
}

// percent formats a probability; only certainty shows as 100 %.
func percent(odds float64) string {
	switch {
	case odds > 0.999 && odds < 0.999999:
		return "> 99.9 %"
	case odds < 0.01 && odds > 0.000001:
		return "< 1 %"
	case odds >= 0.9 && odds < 0.999999:
		return fmt.Sprintf("%.1f %%", odds*100)
	}
	return fmt.Sprintf("%.0f %%", odds*100)
}

func (v Ranking) interval(r rank.Range) string { return span(v.sum(r.Low), v.sum(r.High)) }

// Text formats the ranking for people.
func (v Ranking) Text(p show.Place) string {
	var b strings.Builder
	a := v.Answer
	head := fmt.Sprintf("%s: %s. %s weighed, ", v.Name, v.Work, draw.Count(a.Considered, "option"))
	if a.Feasible {
		b.WriteString(draw.Wrap("", head+fmt.Sprintf("%d feasible.", a.Counts[rank.CostsMore]+1), p.Columns()))
		v.plans(&b, p)
		v.poor(&b, p)
		v.chosen(&b, a.Plans[0], p)
	} else {
		b.WriteString(draw.Wrap("", head+"NONE IS FEASIBLE.", p.Columns()))
		for _, n := range a.Nearest {
			p.Fact(&b, "nearest", "%s", v.near(n))
		}
		if n := a.Counts[rank.OtherMachine]; n > 0 && n+a.Counts[rank.NotAllowed] == a.Considered {
			p.Fact(&b, "nearest", "no machine of the catalogue matches resources: scrimp offers lists what there "+
				"is, scrimp catalog update fetches more")
		}
		v.poor(&b, p)
	}
	v.levers(&b, p)
	v.rejected(&b, p)
	v.frontier(&b, p)
	b.WriteString("\n")
	for _, s := range v.Assumed {
		p.Fact(&b, "assumed", "%s", s)
	}
	return b.String()
}

// poor says why spot is a poor choice for the job.
func (v Ranking) poor(b *strings.Builder, p show.Place) {
	if v.SpotPoor != "" {
		b.WriteString(draw.Wrap("", "! spot is a poor choice for this job: "+v.SpotPoor, p.Columns()))
	}
}

func (v Ranking) plans(b *strings.Builder, p show.Place) {
	var rows [][]string
	list := v.Answer.Plans
	if p.Width > 0 {
		list = list[:min(len(list), mostPlans)]
	}
	for i, x := range list {
		o := x.Offer.Offer
		odds, taken := "-", "-"
		if x.Chance != nil {
			odds = percent(*x.Chance)
		}
		if o.Capacity == market.Spot {
			taken = fmt.Sprintf("%.1f", x.Interruptions)
		}
		gpus := "-"
		if o.Accelerators > 0 {
			gpus = fmt.Sprintf("%dx%s", o.Accelerators*x.Machines, o.Accelerator)
		}
		mark := ""
		if x.Stale {
			mark = "!"
		}
		rows = append(rows, []string{
			fmt.Sprint(i + 1), times(x.Machines, o.Machine), o.Provider + " " + cmp.Or(o.Zone, o.Region), string(o.Capacity),
			gpus, cmp.Or(x.Variant, "-"),
			v.sum(x.Cost.Value) + mark, v.interval(x.Cost), hours(x.Hours.Value), odds, taken,
			v.rentedBy(o.Provider),
		})
	}
	b.WriteString(draw.Grid([]draw.Column{
		{Name: "#", Right: true}, {Name: "MACHINE", Key: true}, {Name: "WHERE", Key: true}, {Name: "KIND"},
		{Name: "GPUS", Least: 15, Leaves: 6}, {Name: "AS", Least: 6, Leaves: 3},
		{Name: "COST", Right: true}, {Name: "80 % OF RUNS", Leaves: 4}, {Name: "TAKES", Right: true},
		{Name: "IN TIME", Right: true, Leaves: 1}, {Name: "INTERRUPTIONS", Right: true, Leaves: 5},
		{Name: "RENTED BY", Leaves: 2},
	}, rows, p.Columns()))
	if n := v.Answer.Counts[rank.CostsMore] + 1; p.Width > 0 && len(v.Answer.Plans) > len(list) {
		fmt.Fprintf(b, "… and %d more: --json has them\n", n-len(list))
	}
}

func (v Ranking) chosen(b *strings.Builder, x rank.Plan, p show.Place) {
	fmt.Fprintf(b, "\nThe first\n")
	p.Fact(b, "offer", "%s at %s", times(x.Machines, string(x.ID)), show.PerHour(x.Offer.Quote.Rate,
		x.Offer.Offer.Currency))
	cost := v.interval(x.Cost)
	if len(x.Missing) > 0 {
		cost += ", without " + strings.Join(x.Missing, " and ") + " (unknown)"
	}
	p.Fact(b, "cost", "%s", cost)
	besides := x.Data + x.Stored
	if besides > 0 {
		parts := []string{"machines " + v.sum(x.Cost.Value-besides)}
		if x.Data > 0 {
			parts = append(parts, "bringing the data "+v.sum(x.Data))
		}
		if x.Stored > 0 {
			parts = append(parts, "keeping checkpoints "+v.sum(x.Stored))
		}
		p.Fact(b, "of it", "%s", strings.Join(parts, ", "))
	}
	p.Fact(b, "finish", "in %s, in four of five runs", span(hours(x.Hours.Low), hours(x.Hours.High)))
	if x.Offer.Offer.Capacity == market.Spot {
		text := fmt.Sprintf("%.1f interruptions and %s of lost time expected", x.Interruptions, hours(x.LostHours))
		if x.IntervalS > 0 {
			text += fmt.Sprintf(", best saved every %s", show.Seconds(x.IntervalS))
		}
		p.Fact(b, "spot", "%s", text)
	}
	if x.Fallback != "" {
		p.Fact(b, "falls back", "to %s when the slack is gone", x.Fallback)
	}
	if v.Played != nil {
		p.Fact(b, "simulated", "%s", v.played(besides > 0))
	}
	if x.Source != "" {
		p.Fact(b, "from", "%s", x.Source)
	}
	by := v.rentedBy(x.Offer.Offer.Provider)
	if x.Stale {
		then := map[string]string{byScrimp: "its engine asks for the live price before it rents",
			byEngine: "an engine asks for the live price before it rents", byYou: "ask for today's"}[by]
		p.Fact(b, "price", "! stale or of unknown age (%s): %s", x.Offer.Quote.Source, then)
	}
	switch by {
	case byEngine:
		p.Fact(b, "rented", "by an engine for %s, which this server does not have yet: scrimp engine add NAME --kind %s "+
			"adds one", x.Offer.Offer.Provider, x.Offer.Offer.Provider)
	case byYou:
		p.Fact(b, "rented", "by you: no engine of scrimp rents from %s; scrimp engine add --ssh takes a machine that you "+
			"have rented", x.Offer.Offer.Provider)
	}
}

// played describes the cost and the time of the first plan's simulated runs. Besides says that the plan costs more than
// its machines.
func (v Ranking) played(besides bool) string {
	l := v.Played
	text := fmt.Sprintf("%d runs with the code that would run it, at the middle of the estimate: %s", l.Runs,
		span(v.sum(l.Cost[0]), v.sum(l.Cost[2])))
	if besides {
		text += " for machines"
	}
	if len(l.Hours) == len(l.Cost) {
		text += ", done in " + span(hours(l.Hours[0]), hours(l.Hours[2]))
	}
	if l.InTime != nil {
		text += ", in time in " + percent(*l.InTime)
	}
	return text
}

// engineKinds lists the providers that engines support. The catalogue has more.
var engineKinds = []string{"aws", "kubernetes", "local", "slurm", "ssh"}

// Who rents a machine: scrimp, with an engine that the user's server has; scrimp, once an engine is added; or the user.
const (
	byScrimp = "scrimp"
	byEngine = "engine"
	byYou    = "you"
)

// rentedBy returns who can rent a machine of the provider for the user.
func (v Ranking) rentedBy(provider string) string {
	switch {
	case slices.Contains(v.Here, provider):
		return byScrimp
	case slices.Contains(engineKinds, provider):
		return byEngine
	}
	return byYou
}

func (v Ranking) near(n rank.Nearest) string {
	what := fmt.Sprintf("%s, %s", times(n.Plan.Machines, string(n.Plan.ID)), v.sum(n.Cost))
	switch n.Wish {
	case "budget":
		return fmt.Sprintf("a budget of %s: %s", v.least(n.Cost), what)
	case "deadline":
		return fmt.Sprintf("a deadline in %s: %s", atLeast(n.Hours), what)
	}
	return fmt.Sprintf("a budget of %s and a deadline in %s: %s", v.least(n.Cost), atLeast(n.Hours),
		times(n.Plan.Machines, string(n.Plan.ID)))
}

func (v Ranking) levers(b *strings.Builder, p show.Place) {
	if len(v.Answer.Recommendations) == 0 {
		return
	}
	fmt.Fprintf(b, "\nWhat would make it %s\n", map[bool]string{true: "cheaper", false: "feasible"}[v.Answer.Feasible])
	for _, l := range v.Answer.Recommendations {
		text := map[string]string{rank.Elsewhere: "another region", rank.OtherCapacity: "another kind of capacity",
			rank.LaterDeadline: "a deadline in " + atLeast(l.Hours)}[l.Name]
		where := fmt.Sprintf("%s for %s", times(l.Plan.Machines, string(l.Plan.ID)), v.sum(l.Plan.Cost.Value))
		name := "would do"
		if l.Saves != nil {
			name = "saves " + v.sum(l.Saves.Value)
		}
		p.Fact(b, name, "%s: %s", cmp.Or(text, l.Name), where)
	}
}

func (v Ranking) rejected(b *strings.Builder, p show.Place) {
	var parts []string
	for _, why := range rank.Reasons {
		if n := v.Answer.Counts[why]; n > 0 {
			text := fmt.Sprintf("%d %s", n, show.Words(why))
			if why == rank.TooSlow && v.Answer.Promise > 0 {
				text += fmt.Sprintf(" (in time in under %.4g %%)", v.Answer.Promise*100)
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return
	}
	fmt.Fprintf(b, "\nNot taken\n")
	p.Fact(b, "options", "%s", strings.Join(parts, ", "))
	n := 0
	for _, r := range v.Answer.Rejected {
		if r.Why == rank.OtherMachine || n >= mostRejects {
			continue
		}
		n++
		text := show.Words(r.Why)
		switch {
		case r.Why == rank.TooSlow && r.Chance != nil:
			text += fmt.Sprintf(": %s, in time in %s", hours(r.Hours.Value), percent(*r.Chance))
		case r.Why == rank.OverBudget:
			text += ": " + v.sum(r.Cost.Value)
		}
		p.Fact(b, "not", "%s: %s", times(r.Machines, string(r.ID)), text)
	}
}

// frontier draws the frontier: the plans that no other plan beats in both cost and time.
func (v Ranking) frontier(b *strings.Builder, p show.Place) {
	list := v.Answer.Frontier
	if len(list) < 2 {
		return
	}
	fmt.Fprintf(b, "\nCost against time\n")
	most := slices.MaxFunc(list, func(a, b rank.Point) int { return cmp.Compare(a.Cost, b.Cost) }).Cost
	var rows [][]string
	for _, f := range list {
		note := times(f.Machines, string(f.Offer))
		if !f.Feasible {
			note += " (not feasible)"
		}
		rows = append(rows, []string{hours(f.Hours), v.sum(f.Cost),
			strings.TrimRight(strings.ReplaceAll(draw.Bar(f.Cost/most, barWidth), "░", " "), " "), note})
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "TAKES", Right: true}, {Name: "COST", Right: true}, {Name: " "},
		{Name: "OFFER", Key: true}}, rows, p.Columns()))
}

// SVG draws the frontier and the other feasible plans.
func (v Ranking) SVG() string {
	var dots []draw.Dot
	dot := func(hs, usd float64, id string, n int) draw.Dot {
		return draw.Dot{X: hs * 3600, Y: usd, Title: fmt.Sprintf("%s: %s in %s", times(n, id), v.sum(usd), hours(hs))}
	}
	on := map[string]bool{}
	for _, f := range v.Answer.Frontier {
		d := dot(f.Hours, f.Cost, string(f.Offer), f.Machines)
		if d.Name = times(f.Machines, string(f.Offer)); !f.Feasible {
			d.Name, d.Hollow = d.Name+" (not feasible)", true
		}
		on[d.Title] = true
		dots = append(dots, d)
	}
	for _, x := range v.Answer.Plans {
		d := dot(x.Hours.Value, x.Cost.Value, string(x.ID), x.Machines)
		if d.Hollow = true; !on[d.Title] {
			dots = append(dots, d)
		}
	}
	return draw.Standalone(draw.Dots(v.Name+": cost against time", dots, v.sum))
}
