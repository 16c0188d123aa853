package spending

import (
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// mostFixed bounds the fixed costs that are named.
const mostFixed = 5

// Fixed says which fixed costs the month of now has: the ledger, and so the table of costs, has none of them.
func Fixed(fees []api.Fee, now time.Time, p show.Place) string {
	month := now.UTC().Format("2006-01")
	var names []string
	n := 0
	for _, f := range fees {
		if f.Since > month || f.Until != "" && f.Until < month {
			continue
		}
		if n++; n <= mostFixed {
			names = append(names, show.Clean(f.Name)+" "+money.Short(f.Amount, f.Currency))
		}
	}
	switch {
	case n == 0:
		return ""
	case n > mostFixed:
		names = append(names, fmt.Sprintf("and %d more", n-mostFixed))
	}
	return draw.Wrap("", "Fixed costs of "+month+", which the table leaves out: "+strings.Join(names, ", ")+
		". scrimp chargeback divides them.", p.Columns())
}
