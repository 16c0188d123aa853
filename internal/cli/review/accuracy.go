package review

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// missed writes how far the estimates were from what came out.
func (r page) missed(b *strings.Builder, p show.Place) {
	for _, m := range r.Accuracy {
		if m.Kind != "all" {
			continue
		}
		within := ""
		if m.Within != nil {
			within = fmt.Sprintf(", %.0f %% of the ranges held", 100**m.Within)
		}
		p.Fact(b, "estimated", "%s of %s: median error %.1f %%, median %s%s", m.What, draw.Count(m.Runs, "run"),
			100*m.Median, side(m.Bias), within)
	}
	for _, x := range r.Furthest {
		p.Fact(b, "", "%s: %s expected, %s came out (%s)", show.Clean(x.Job), show.USD(x.Expected), show.USD(x.Actual),
			side(x.Expected/x.Actual-1))
	}
}

// side formats expected / actual - 1.
func side(share float64) string {
	if share < 0 {
		return fmt.Sprintf("%.1f %% too little", -100*share)
	}
	return fmt.Sprintf("%.1f %% too much", 100*share)
}
