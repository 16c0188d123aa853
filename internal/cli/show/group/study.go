package group

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/search"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// number formats a statistic with few digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// pausedIn returns the number of members that their search has paused.
func pausedIn(g api.Group) int {
	if g.Study == nil {
		return 0
	}
	return g.Study.Paused
}

// studyProgress summarizes a search in a few words.
func studyProgress(g api.Group) []string {
	s, best := g.Study, search.NoValue(g, "no value")
	switch {
	case s.Best != nil && s.Best.Best != nil:
		best = fmt.Sprintf("best %s %s", show.Clean(s.Metric), number(*s.Best.Best))
	case s.Proxy != nil && s.Proxy.Best != nil && s.Proxy.Best.Best != nil:
		best = fmt.Sprintf("best %s on the proxy %s", show.Clean(s.Metric), number(*s.Proxy.Best.Best))
	}
	return []string{best, draw.Count(g.Began, "trial"), fmt.Sprintf("%d in full", s.Full)}
}

// studyFacts adds the state of a search to the page of its group.
func studyFacts(b *strings.Builder, g api.Group, p show.Place) {
	s, goal := g.Study, "minimize"
	if s.Maximize {
		goal = "maximize"
	}
	p.Fact(b, "search", "%s %s, by %s; at most %d trials train at once", goal, show.Clean(s.Metric),
		show.Clean(s.Searcher), g.AtOnce)
	unit := "unit"
	if f := s.Fidelity; f != nil {
		unit = show.Clean(f.Name)
		p.Fact(b, "fidelity", "%s %s to %s", show.Clean(f.Name), number(f.Min), number(f.Max))
	}
	if s.Past > 0 {
		p.Fact(b, "warm start", "%s of earlier searches", draw.Count(s.Past, "configuration"))
	}
	proxy(b, s, p)
	if s.Best != nil {
		search.BestTrial(b, *s.Best, s, p)
	}
	limits(b, g, g.Study.GroupLimits, p)
	plateau(b, g.Study, p)
	if s.Ignored > 0 {
		p.Fact(b, "ignored", "%s: of no whole %s, or that came twice, late or beyond what is kept",
			draw.Count(s.Ignored, "value"), unit)
	}
	warnings(b, s, p)
}

// warnings adds what is probably wrong with the values of a search.
func warnings(b *strings.Builder, s *api.StudyState, p show.Place) {
	for _, text := range s.Warnings {
		p.Fact(b, "check", "%s", show.Clean(text))
	}
}

// limits adds the limits of a group that are no money.
func limits(b *strings.Builder, g api.Group, s api.GroupLimits, p show.Place) {
	if s.GPULimit != nil {
		p.Fact(b, "GPU-hours", "%s of %s", number(s.GPUHours), number(*s.GPULimit))
	}
	if s.WallClock != nil {
		text := draw.Span(*s.WallClock)
		if used, ok := wallUsed(g, p); ok {
			text = draw.Span(min(used, *s.WallClock)) + " of " + text
		}
		p.Fact(b, "wall clock", "%s", text)
	}
}

// plateau adds when a search ends by itself.
func plateau(b *strings.Builder, s *api.StudyState, p show.Place) {
	if s.Plateau == nil {
		return
	}
	p.Fact(b, "plateau", "%s", search.PlateauText(s.Plateau, s.Metric))
	if s.StoppedGain != nil {
		p.Fact(b, "stopped at", "%s %s for another dollar", number(*s.StoppedGain), show.Clean(s.Metric))
	}
}

// wallUsed returns how much time has passed on the market's clock since a search began; false: nobody knows.
func wallUsed(g api.Group, p show.Place) (time.Duration, bool) {
	until := p.Now
	if g.Finished != nil {
		until = *g.Finished
	}
	if until.IsZero() || until.Before(g.Submitted) {
		return 0, false
	}
	used := float64(until.Sub(g.Submitted)) * max(1, g.Speed)
	return time.Duration(min(used, 1e18)).Round(time.Second), true
}

// proxy adds the cheaper training on which a search trains, the best trial there, and how its ranks agree with those
// of full trainings.
func proxy(b *strings.Builder, s *api.StudyState, p show.Place) {
	x := s.Proxy
	if x == nil {
		return
	}
	p.Fact(b, "proxy", "%s", show.Clean(search.ProxyText(&x.StudyProxy, s.Fidelity)))
	if s.Best == nil && x.Best != nil {
		search.BestTrial(b, *x.Best, s, p)
	}
	if x.RankCorrelation != nil {
		p.Fact(b, "", "rank correlation %.2g between the proxy and the full training of %s", *x.RankCorrelation,
			draw.Count(x.Compared, "configuration"))
	}
}

// NoValues is why a search ends in which no trial reports its metric.
const NoValues = "no_values"

// studyReceipt adds the results of a search to the receipt of its group.
func studyReceipt(b *strings.Builder, r api.GroupReceipt, p show.Place) {
	s, c := r.Study, r.Group.Currency
	if s.Best != nil {
		search.BestTrial(b, *s.Best, r.Group.Study, p)
	}
	proxy(b, r.Group.Study, p)
	limits(b, r.Group, r.Group.Study.GroupLimits, p)
	plateau(b, r.Group.Study, p)
	if g := r.Group; g.Study.StoppedGain != nil || g.Why == NoValues {
		p.Fact(b, "why", "%s", strings.TrimSuffix(show.Words(g.Why)+": "+show.Clean(g.Detail), ": "))
	}
	text := draw.Count(s.Trials, "trial") + fmt.Sprintf(", %d trained in full", s.Full)
	if s.PerTrial != nil {
		text += ", " + show.USD(*s.PerTrial) + " a trial"
	}
	if s.PerFull != nil {
		text += ", " + show.USD(*s.PerFull) + " for each in full"
	}
	p.Fact(b, "trials", "%s", text)
	p.Fact(b, "of the cost", "%s for trials that were left early, %s for failed ones; %s for those that were interrupted",
		money.Format(s.Pruned, c, 4), money.Format(s.Failed, c, 4), money.Format(s.Interrupted, c, 4))
	if s.OnProxy != nil {
		p.Fact(b, "", "%s on the proxy, %s in full", money.Format(*s.OnProxy, c, 4),
			money.Format(r.Cost.Sub(*s.OnProxy), c, 4))
	}
	switch {
	case s.AllFull == nil:
	case s.OnProxy != nil:
		p.Fact(b, "in full", "%s had each configuration been trained in full, at the mean cost of those that were",
			show.USD(*s.AllFull))
		saved(b, r, p)
	default:
		p.Fact(b, "in full", "%s had each trial trained in full that was left early, at the cost of its epochs so far",
			show.USD(*s.AllFull))
		if s.Pruned.Sign() > 0 { // otherwise nothing could be saved
			saved(b, r, p)
		}
	}
	b.WriteString(search.Course(r, p))
	warnings(b, r.Group.Study, p)
}

// saved adds by how much a search that is over was cheaper than training all configurations in full, or dearer.
func saved(b *strings.Builder, r api.GroupReceipt, p show.Place) {
	saved := *r.Study.AllFull - r.Cost.Float()
	switch {
	case r.Group.State != "over":
	case saved >= 0:
		p.Fact(b, "saved", "%s against that", show.USD(saved))
	default:
		p.Fact(b, "saved", "nothing: the search cost %s more than that", show.USD(-saved))
	}
}
