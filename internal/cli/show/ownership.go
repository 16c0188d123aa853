package show

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Waiting says that n machines wait for a decision.
func Waiting(n int) string {
	what := fmt.Sprintf("%d machines of an earlier incarnation of the log wait", n)
	if n == 1 {
		what = "1 machine of an earlier incarnation of the log waits"
	}
	return what + " for scrimp adopt or scrimp release; nothing is launched until then"
}

// Undecided lists machines of an earlier incarnation.
func Undecided(list []api.Undecided, p Place) string {
	if len(list) == 0 {
		return "No machine waits for scrimp adopt or scrimp release.\n"
	}
	rows := make([][]string, len(list))
	for i, u := range list {
		since, cost := "ended", "-"
		if u.Cost != nil {
			since, cost = p.When(u.Since), money.Format(*u.Cost, u.Currency, 4)
		}
		rows[i] = []string{Clean(u.Instance), Clean(string(u.Offer)), Clean(u.Job), since, cost}
	}
	return draw.Grid([]draw.Column{
		{Name: "INSTANCE", Key: true}, {Name: "OFFER", Leaves: 1}, {Name: "JOB", Least: 16}, {Name: "SINCE", Leaves: 2},
		{Name: "COST", Right: true},
	}, rows, p.Columns())
}

// Decided lists the results of a decision.
func Decided(list []api.Undecided, adopt bool, p Place) string {
	if len(list) == 0 {
		return Undecided(list, p)
	}
	var b strings.Builder
	for _, u := range list {
		whose := ""
		if u.Job != "" {
			whose = " of job " + Clean(u.Job)
		}
		switch {
		case u.Ended:
			fmt.Fprintf(&b, "%s%s has ended meanwhile: the job goes on here.\n", Clean(u.Instance), whose)
		case adopt:
			fmt.Fprintf(&b, "Adopted %s%s.\n", Clean(u.Instance), whose)
		default:
			fmt.Fprintf(&b, "Released %s%s: it is left running.\n", Clean(u.Instance), whose)
		}
	}
	return b.String()
}
