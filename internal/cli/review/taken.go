package review

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// mostTaken is how many recommendations the page shows.
const mostTaken = 5

// saved writes what the recommendations were expected to save and have saved.
func (r page) saved(b *strings.Builder, p show.Place) {
	if len(r.Taken) == 0 {
		return
	}
	p.Fact(b, "taken", "%s", draw.Count(len(r.Taken), "recommendation"))
	for _, t := range r.Taken[:min(len(r.Taken), mostTaken)] {
		of := ""
		if t.Team != "" {
			of = " of " + show.Clean(t.Team)
		}
		amount := func(a *money.Amount) string {
			if a == nil {
				return "-"
			}
			return money.Short(*a, t.Currency)
		}
		p.Fact(b, "", "%s%s: %s saved, %s expected, in the %s since %s", show.Clean(t.Name), of, amount(t.Saved),
			amount(t.Expected), fmt.Sprintf("%.1f days", t.Days), t.At.UTC().Format(time.DateOnly))
	}
	if more := len(r.Taken) - mostTaken; more > 0 {
		p.Fact(b, "", "%s more: scrimp recommend", draw.Count(more, "recommendation"))
	}
}
