package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// plannedOffers bounds the offers that the page of a plan lists besides the one that is taken.
const plannedOffers = 50

// viewOf prepares a plan for the page.
func viewOf(p client.Plan) *planView {
	v := &planView{Plan: p, Because: cmp.Or(plan.Reason(p.Why).Text(), readable(p.Why)),
		Opens: p.BeginS != nil && p.Why == string(plan.Closed), Never: p.FinishS != nil && p.FinishS[2] <= 0}
	v.Offers = slices.Clone(p.Rejected)
	slices.SortStableFunc(v.Offers, func(a, b client.PlanRefusal) int {
		return cmp.Or(cmp.Compare(orLast(a.WorkUSD), orLast(b.WorkUSD)), cmp.Compare(orLast(a.RateUSD), orLast(b.RateUSD)))
	})
	v.MoreOffers = max(0, len(v.Offers)-plannedOffers)
	v.Offers = v.Offers[:len(v.Offers)-v.MoreOffers]
	if p.CostUSD != nil && !v.Never {
		v.Cost = rangeBar("cost", *p.CostUSD, dollars, tick{"budget", "limit", p.WorstUSD},
			tick{"on-demand", "two", p.OnDemandUSD})
	}
	if p.FinishS != nil && !v.Never {
		v.Finish = rangeBar("finish", *p.FinishS, lasting)
	}
	return v
}

// orLast sorts unknown values last.
func orLast(v *float64) float64 {
	if v == nil {
		return 1e300
	}
	return *v
}

// tick is a value to compare a range with; nil: unknown.
type tick struct {
	name, class string
	at          *float64
}

// rangeBar draws the 10 %, the median and the 90 % of simulated runs on a line from zero, with values to compare.
func rangeBar(what string, q [3]float64, text func(float64) string, ticks ...tick) template.HTML {
	most := q[2]
	for _, t := range ticks {
		if t.at != nil && *t.at < 5*q[2] { // a value far above would flatten the range
			most = max(most, *t.at)
		}
	}
	if most <= 0 {
		return ""
	}
	x := func(v float64) float64 { return v / most * 98 }
	legend := `<li><i class="middle" aria-hidden="true"></i>median</li>`
	says := []string{fmt.Sprintf("%s: 10 %% %s, median %s, 90 %% %s", what, text(q[0]), text(q[1]), text(q[2]))}
	var b strings.Builder
	fmt.Fprintf(&b, `<rect class="rail" width="100" y="3" height="4"/><rect class="fill" x="%.2f" y="3" width="%.2f" `+
		`height="4"/><rect class="middle" x="%.2f" y="1" width="0.8" height="8"/>`, x(q[0]), max(0.8, x(q[2])-x(q[0])),
		max(0, x(q[1])-0.4))
	for _, t := range ticks {
		if t.at == nil || *t.at > most {
			continue
		}
		says = append(says, t.name+" "+text(*t.at))
		fmt.Fprintf(&b, `<rect class="tick %s" x="%.2f" y="0" width="0.8" height="10"><title>%s %s</title></rect>`, t.class,
			x(*t.at), t.name, template.HTMLEscapeString(text(*t.at)))
		legend += `<li><i class="` + t.class + `" aria-hidden="true"></i>` + t.name + `</li>`
	}
	return template.HTML(fmt.Sprintf(`<svg class="range" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" `+
		`aria-label="%s">%s</svg><ul class="legend">%s</ul>`, template.HTMLEscapeString(strings.Join(says, "; ")), b.String(),
		legend))
}

// scheduleBar draws the time since the submission: what is over, when the job ends by its forecast, and the deadline.
// All are seconds.
func scheduleBar(gone float64, ends [3]float64, deadline float64) template.HTML {
	most := max(gone, ends[2], deadline)
	if most <= 0 {
		return ""
	}
	x := func(v float64) float64 { return max(0, v) / most * 98 }
	return template.HTML(fmt.Sprintf(`<svg class="range" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" `+
		`aria-label="%s over; ends %s to %s after its submission; deadline after %s"><rect class="rail" width="100" y="3" `+
		`height="4"/><rect class="gone" width="%.2f" y="3" height="4"/><rect class="fill" x="%.2f" y="3" width="%.2f" `+
		`height="4"/><rect class="tick limit" x="%.2f" y="0" width="0.8" height="10"/></svg><ul class="legend"><li>`+
		`<i class="gone" aria-hidden="true"></i>over</li><li><i class="use useful" aria-hidden="true"></i>ends, 10 %% to `+
		`90 %%</li><li><i class="limit" aria-hidden="true"></i>deadline</li></ul>`, lasting(gone), lasting(ends[0]),
		lasting(ends[2]), lasting(deadline), x(gone), x(ends[0]), max(0.8, x(ends[2])-x(ends[0])), x(deadline)))
}

func dollars(v float64) string { return money.ShortFloat(v, money.USD) }

func lasting(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }

// usd formats an estimate in dollars. Estimates are not exact.
func usd(v any) template.HTML {
	f, known := floatOf(v)
	if !known {
		return unknown
	}
	return template.HTML(template.HTMLEscapeString(dollars(f)))
}

// ranged formats the range of a quantity, or one value if both ends look the same.
func ranged(text func(float64) string, v any) template.HTML {
	q, ok := v.(*[3]float64)
	if !ok || q == nil {
		return unknown
	}
	return template.HTML(template.HTMLEscapeString(between(text, q)))
}

func between(text func(float64) string, q *[3]float64) string {
	low, high := text(q[0]), text(q[2])
	if low == high {
		return low
	}
	return low + " to " + high
}
