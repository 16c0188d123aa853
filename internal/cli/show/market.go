package show

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/api/convert"
	"scrimp/internal/draw"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/size"
)

// Sale is what is for sale, with what the catalogue's sources publish of it.
type Sale struct {
	api.Market
	// Published is the share of machines interrupted within a month, by spot offer; what no
	// source publishes is left out.
	Published map[market.OfferID]Share `json:"published,omitempty"`
}

// Share is a published range, 0 to 1.
type Share struct {
	Low  float64 `json:"interrupted_within_month_low"`
	High float64 `json:"interrupted_within_month_high"`
}

// Text is the table of what is for sale; INTERRUPTIONS is how many machines the
// provider was seen to interrupt, in how much time of all of them, and how many an hour.
func (m Sale) Text(p Place) string {
	var rows [][]string
	for _, l := range m.Offers {
		price, there, notice, gpus, seen := "unknown", "no", "-", "-", "-"
		if l.Quote.Priced {
			price = money.Format(money.Picos(int64(l.Quote.Rate)), l.Offer.Currency, 4)
		}
		if l.Quote.Available {
			there = "yes"
		}
		if l.Offer.Capacity == api.Spot {
			notice = "none"
		}
		if l.Offer.Notice > 0 {
			notice = draw.Span(l.Offer.Notice)
		}
		if l.Offer.Accelerators > 0 {
			gpus = fmt.Sprintf("%dx%s", l.Offer.Accelerators, l.Offer.Accelerator)
		}
		if l.Hazard.Served > 0 {
			seen = fmt.Sprintf("%d in %s", l.Hazard.Lost, draw.Span(l.Hazard.Served))
			if l.Hazard.Lost > 0 {
				seen += fmt.Sprintf(", %.2g/h", float64(l.Hazard.Lost)/l.Hazard.Served.Hours())
			}
		}
		published := "-"
		if r, ok := m.Published[market.OfferID(l.Offer.ID)]; ok {
			published = fmt.Sprintf("%.0f-%.0f %%/mo", r.Low*100, r.High*100)
		}
		rows = append(rows, []string{l.Offer.ID, fmt.Sprint(l.Offer.CPUs), size.Bytes(l.Offer.Memory).String(), gpus, price,
			there, notice, seen, published})
	}
	var paid strings.Builder
	for _, l := range m.Offers {
		if r := l.Offer.Reserved; r.Count > 0 {
			b := fmt.Sprintf("%s: %s, %s paid from %s until %s; hours that nobody uses are booked as such", l.Offer.ID,
				draw.Count(r.Count, "machine"), money.Format(r.Paid, l.Offer.Currency, 2), moment(r.From), moment(r.Until))
			paid.WriteString(draw.Wrap("", b, p.width()))
		}
	}
	head := draw.Wrap("", fmt.Sprintf("Market %s at speed %g, market time %s", m.Clock.Name, m.Clock.Speed,
		moment(m.Clock.Now)), p.width())
	if len(rows) == 0 {
		return head + "Nothing is for sale.\n"
	}
	return head + draw.Grid([]draw.Column{
		{Name: "OFFER"}, {Name: "CPUS", Right: true, Leaves: 2}, {Name: "MEMORY", Right: true, Leaves: 3},
		{Name: "GPUS", Leaves: 1}, {Name: "PRICE/H", Right: true},
		{Name: "AVAILABLE"}, {Name: "NOTICE", Right: true, Leaves: 4}, {Name: "INTERRUPTIONS", Leaves: 1},
		{Name: "PUBLISHED", Right: true, Leaves: 2},
	}, rows, p.width()) + paid.String()
}

// Explain lists decisions, each with what was not taken. Prices are in c.
func Explain(list []api.Decision, c money.Currency, p Place) string {
	if len(list) == 0 {
		return "Nothing was decided yet.\n"
	}
	var b strings.Builder
	for i, d := range list {
		if day := d.MarketAt.UTC().Format("2006-01-02"); i == 0 || day != list[i-1].MarketAt.UTC().Format("2006-01-02") {
			fmt.Fprintf(&b, "%s, market time (UTC)\n", day)
		}
		decided(&b, d, c, p)
	}
	return b.String()
}

// aside is the indent of what is said of a decision.
const aside = "            "

// decided writes one decision, what it expects, and what was not taken.
func decided(b *strings.Builder, line api.Decision, c money.Currency, p Place) {
	d := convert.To[plan.Decision](line.Choice)
	take := "nothing"
	if d.Take != "" {
		take = string(d.Take)
		if d.Rate > 0 {
			take += " at " + rate(d.Rate, c)
		}
	}
	slack := ""
	if d.HasSlack {
		slack = ", slack " + draw.Span(d.Slack)
		if d.Margin > 0 {
			slack += ", margin for the work " + draw.Span(d.Margin)
		}
	}
	reason, cannot := d.Why, kept(d)
	if reason == plan.SlackGone && d.Slack < 0 {
		reason = soonest
	}
	b.WriteString(draw.Wrap("  "+line.MarketAt.UTC().Format("15:04:05")+"  ",
		fmt.Sprintf("%s: %s (%s%s)%s", take, why(reason), words(d.Mode), slack, ofZone(d.Expect, d.Take)), p.width()))
	if cannot != "" {
		b.WriteString(draw.Wrap(aside, cannot, p.width()))
	}
	if d.Expect != nil {
		b.WriteString(draw.Wrap(aside, expected(*d.Expect), p.width()))
	}
	if w := d.Budget; w != nil {
		b.WriteString(draw.Wrap(aside, fmt.Sprintf("budget first: %s are left, the rest of the work needs %s on %s",
			money.Format(w.Left, c, 4), money.Format(w.Needs, c, 4), w.On), p.width()))
	}
	for _, r := range d.Rejected {
		price := "unknown price"
		if r.Priced {
			price = rate(r.Rate, c)
		}
		b.WriteString(draw.Wrap(aside, fmt.Sprintf("not %s at %s: %s%s", r.Offer, price, words(r.Why),
			ofZone(d.Expect, r.Offer)), p.width()))
	}
	if len(d.Counts) > 0 {
		b.WriteString(draw.Wrap(aside, "rejected in all: "+counted(d.Counts), p.width()))
	}
}

// counted says how many offers were rejected for each reason.
func counted(list []plan.ReasonCount) string {
	parts := make([]string, 0, len(list))
	for _, n := range list {
		parts = append(parts, fmt.Sprintf("%d %s", n.Count, words(n.Why)))
	}
	return strings.Join(parts, ", ")
}

// soonest stands for plan.SlackGone where nothing is in time any more.
const soonest plan.Reason = "slack gone, non-preemptible capacity is the soonest"

// kept says that a deadline cannot be met, or not with the promised probability.
func kept(d plan.Decision) string {
	switch {
	case !d.HasSlack:
	case d.Slack < 0:
		return "the deadline cannot be met any more: late by " + draw.Span(-d.Slack) + " or more"
	case d.Slack < d.Margin:
		return "in time only if the work takes no longer than expected: what is promised is not certain"
	}
	return ""
}

// expected says what each choice was expected to cost, and how likely spot is.
func expected(e plan.Expect) string {
	var parts []string
	for _, c := range []struct {
		name string
		usd  *float64
	}{{"waiting", e.Wait}, {"spot", e.Spot}, {"on-demand", e.OnDemand}} {
		if c.usd != nil {
			parts = append(parts, c.name+" "+usd(*c.usd))
		}
	}
	if len(e.Zones) > 0 { // each zone's chance stands with it
		return fmt.Sprintf("expected to its end: %s", strings.Join(parts, ", "))
	}
	spot := "comes back within"
	if e.Up {
		spot = "lasts the next"
	}
	return fmt.Sprintf("expected to its end: %s; spot %s %s with %.0f %%", strings.Join(parts, ", "), spot,
		draw.Span(e.NextPoll), 100*e.Chance)
}

// ofZone says what was expected of a zone's spot, where several were weighed.
func ofZone(e *plan.Expect, offer market.OfferID) string {
	if e == nil {
		return ""
	}
	for _, z := range e.Zones {
		if z.Offer != offer {
			continue
		}
		text := "; "
		if z.USD != nil {
			text += "expected " + usd(*z.USD) + " to the end, "
		}
		switch {
		case z.Up:
			text += "lasts the next hour"
		case z.Tried:
			text += "comes back within an hour"
		default:
			text += "not probed, is available"
		}
		return text + fmt.Sprintf(" with %.0f %%", 100*z.Chance)
	}
	return ""
}

// reasons say why an option was taken, or none.
var reasons = map[plan.Reason]string{
	plan.Cheapest:   "cheapest",
	plan.Stays:      "stays, moving would not pay",
	plan.SlackGone:  "slack gone, only non-preemptible capacity is in time",
	plan.BehindPace: "behind pace, waiting for spot would use up the slack",
	plan.WaitsMore:  "waiting for spot is expected to cost more",
	plan.ByRule:     "asked for by the job or its policy",
	plan.Prepaid:    "already paid, and free",
	plan.Beside:     "beside, a part of a machine is free that runs another job of the same user or team",
	plan.Warm:       "warm, a machine of the same user waits there, and none has to be started",
	plan.Cleaning:   "waits, the machine that it takes is being cleaned after its last task",
	plan.Probing:    "asks first whether it can be had",
	plan.TimeGone:   "time gone, the budget's wall-clock is used up",
	plan.HoursGone:  "hours gone, the budget's GPU-hours are used up",
	plan.WaitsSpot:  "waits, spot is expected in time",
	plan.NoOffer:    "no offer, nothing on the market fits",
	plan.NoCapacity: "no capacity, what fits cannot be had now",
	plan.SavesNone:  "saves nothing, so what an interruption loses would be done anew from its start",
	plan.BudgetGone: "budget gone, no option starts within it",
	plan.BudgetWait: "waits, what can be had would not finish within the budget, and something cheaper would",
	plan.OutOfMoney: "budget short, not even the cheapest finishes within it",
}

// why says in words why an option was taken, or none.
func why(r plan.Reason) string {
	if text, ok := reasons[r]; ok {
		return text
	}
	return words(r)
}
