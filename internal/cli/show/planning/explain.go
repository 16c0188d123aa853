package planning

import (
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/view/convert"
)

// Explain lists decisions with the rejected offers. Prices are in c.
func Explain(list []api.Decision, c money.Currency, p show.Place) string {
	if len(list) == 0 {
		return "No decision yet.\n"
	}
	var b strings.Builder
	for i, d := range list {
		if day := d.MarketAt.UTC().Format("2006-01-02"); i == 0 || day != list[i-1].MarketAt.UTC().Format("2006-01-02") {
			fmt.Fprintf(&b, "%s (UTC)\n", day)
		}
		decided(&b, d, c, p)
	}
	return b.String()
}

// Clock says that the times of Explain go by a simulated clock, of the given speed, or nothing for a real one.
func Clock(speed float64) string {
	if speed <= 0 || speed == 1 {
		return ""
	}
	return "Market time, " + draw.SimulatedClock(speed) + "; scrimp status has real times.\n"
}

// Began gives the reason for each attempt after the first.
func Began(r receipt.Receipt, p show.Place) string {
	var b strings.Builder
	day := ""
	row := func(at time.Time, text string) {
		if on := at.UTC().Format("2006-01-02"); on != day {
			day = on
			fmt.Fprintf(&b, "%s, attempts\n", day)
		}
		b.WriteString(draw.Wrap("  "+at.UTC().Format("15:04:05")+"  ", show.Clean(text), p.Columns()))
	}
	for i, t := range r.Tries {
		text := fmt.Sprintf("attempt %d", i+1)
		if i > 0 {
			before := r.Tries[i-1]
			why := receipt.WhyNext(fmt.Sprintf("attempt %d", i), before.End)
			if p := before.Preemption; p != nil {
				why = p.Left(fmt.Sprintf("attempt %d", i))
			}
			text += ": " + why
		}
		if t.Restored != "" {
			text += fmt.Sprintf("; attempt %d resumed from step %d", i+1, t.First)
		}
		row(t.From, text)
		if t.Preemption != nil {
			row(t.Preemption.At, t.Preemption.Left(fmt.Sprintf("attempt %d", i+1)))
		}
	}
	return b.String()
}

// aside is the indent of the text below a decision.
const aside = "            "

// decided writes one decision, its expectation, and the rejected offers.
func decided(b *strings.Builder, line api.Decision, c money.Currency, p show.Place) {
	d := convert.To[plan.Decision](line.Choice)
	slack := ""
	if d.HasSlack {
		slack = ", " + onTrack(d) + "slack " + draw.Span(d.Slack)
		if d.Margin > 0 {
			slack += " ± " + draw.Span(d.Margin)
		}
	}
	reason, cannot := d.Why, kept(d)
	if reason == plan.SlackGone && d.Slack < 0 {
		reason = soonest
	}
	b.WriteString(draw.Wrap("  "+line.MarketAt.UTC().Format("15:04:05")+"  ",
		fmt.Sprintf("%s: %s (%s%s)%s", taken(d, c), why(reason), show.Words(d.Mode), slack, ofZone(d.Expect, d.Take)),
		p.Columns()))
	if line.Refused != "" {
		b.WriteString(draw.Wrap(aside, "since it was refused: "+show.Clean(line.Refused), p.Columns()))
	}
	if cannot != "" {
		b.WriteString(draw.Wrap(aside, cannot, p.Columns()))
	}
	if d.Expect != nil {
		b.WriteString(draw.Wrap(aside, expected(*d.Expect), p.Columns()))
	}
	if w := d.Budget; w != nil {
		b.WriteString(draw.Wrap(aside, fmt.Sprintf("budget first: %s left, the remaining work needs %s on %s",
			money.Short(w.Left, c), money.Short(w.Needs, c), w.On), p.Columns()))
	}
	if d.Take != "" && d.Gets.Units > 0 {
		b.WriteString(draw.Wrap(aside, "it has "+gets(d.Gets), p.Columns()))
	}
	for _, r := range d.Rejected {
		price := "unknown price"
		if r.Priced {
			price = show.PerHour(r.Rate, c)
		}
		b.WriteString(draw.Wrap(aside, fmt.Sprintf("not %s at %s: %s%s%s", r.Offer, price, show.Words(r.Why),
			ofZone(d.Expect, r.Offer), reading(r.Reads, c)), p.Columns()))
	}
	if len(d.Counts) > 0 {
		b.WriteString(draw.Wrap(aside, "rejected in all: "+counted(d.Counts), p.Columns()))
	}
}

// taken is what a decision takes, and its price.
func taken(d plan.Decision, c money.Currency) string {
	if d.Take == "" {
		return "nothing"
	}
	take := string(d.Take)
	if d.Nodes > 1 {
		take = show.MachinesOf(d.Nodes, take)
	}
	if d.Rate > 0 {
		take += " at " + show.PerHour(d.Rate, c)
		if d.Nodes > 1 {
			take += " each"
		}
	}
	return take + reading(d.Reads, c)
}

// reading says what a machine pays for reading the job's data from another region, or nothing.
func reading(cost money.Amount, c money.Currency) string {
	if cost.IsZero() {
		return ""
	}
	return ", with " + money.Short(cost, c) + " a machine for reading the data from another region"
}

// counted formats the number of rejected offers for each reason.
func counted(list []plan.ReasonCount) string {
	parts := make([]string, 0, len(list))
	for _, n := range list {
		parts = append(parts, fmt.Sprintf("%d %s", n.Count, show.Words(n.Why)))
	}
	return strings.Join(parts, ", ")
}

// soonest replaces plan.SlackGone when nothing can meet the deadline any more.
const soonest plan.Reason = "slack gone: on-demand finishes soonest"

// kept says that a deadline cannot be met, or not with the promised probability.
func kept(d plan.Decision) string {
	switch {
	case !d.HasSlack:
	case d.Slack < 0:
		return "the deadline will be missed by " + draw.Span(-d.Slack) + " or more"
	case d.Slack < d.Margin:
		return "at risk: the job meets its deadline only if the work takes no longer than expected"
	}
	return ""
}

// onTrack says that the deadline holds with its margin.
func onTrack(d plan.Decision) string {
	if d.Slack < 0 || d.Slack < d.Margin {
		return ""
	}
	return "on track, "
}

// expected formats the expected cost of each choice and the probability of spot.
func expected(e plan.Expect) string {
	var parts []string
	for _, c := range []struct {
		name string
		usd  *float64
	}{{"waiting", e.Wait}, {"spot", e.Spot}, {"on-demand", e.OnDemand}} {
		if c.usd != nil {
			parts = append(parts, c.name+" "+show.USD(*c.usd))
		}
	}
	if len(e.Zones) > 0 { // each zone's probability is shown with the zone
		return fmt.Sprintf("expected cost to completion: %s", strings.Join(parts, ", "))
	}
	spot := "is back within"
	if e.Up {
		spot = "survives"
	}
	return fmt.Sprintf("expected cost to completion: %s; %.0f %% chance that spot %s %s", strings.Join(parts, ", "),
		100*e.Chance, spot, draw.Span(e.NextPoll))
}

// ofZone formats the expectation of a zone's spot, if several zones were compared.
func ofZone(e *plan.Expect, offer market.OfferID) string {
	if e == nil {
		return ""
	}
	for _, z := range e.Zones {
		if z.Offer != offer {
			continue
		}
		text, what := "; ", ""
		if z.USD != nil {
			text += "expected " + show.USD(*z.USD) + " to completion, "
		}
		switch {
		case z.Up:
			what = "it survives the next hour"
		case z.Tried:
			what = "it is back within an hour"
		default:
			what = "it is available (not probed)"
		}
		return text + fmt.Sprintf("%.0f %% chance that %s", 100*z.Chance, what)
	}
	return ""
}

// why returns the explanation of a reason.
func why(r plan.Reason) string {
	if text := r.Text(); text != "" {
		return text
	}
	return show.Words(r)
}
