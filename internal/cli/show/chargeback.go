package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Chargeback formats a month's statements.
func Chargeback(v api.Chargeback, p Place) string {
	var s strings.Builder
	until := "."
	if !v.Over {
		until = ", up to now: the month is not over."
	}
	s.WriteString(draw.Wrap("", fmt.Sprintf("%s, shared cost divided by the rule %s%s", Clean(v.Month), Clean(v.Rule),
		until), p.Columns()))
	whole := func(a *money.Amount, c money.Currency) string {
		if a == nil {
			return "-"
		}
		return money.Short(*a, c)
	}
	var costs, units [][]string
	for _, l := range v.Statements {
		c := l.Currency
		use := func(u api.Use) string {
			if l.Uses[u].IsZero() {
				return "-"
			}
			return money.Short(l.Uses[u], c)
		}
		costs = append(costs, []string{Clean(l.Team), money.Short(l.Own, c), use(api.Useful), use(api.Lost), use(api.StartUp),
			use(api.Idle), use(api.Open), money.Short(l.Shared, c), money.Short(l.Total, c), money.Short(l.Accrued, c),
			money.Short(l.Billed, c), whole(l.Saved, c)})
		units = append(units, []string{Clean(l.Team), fmt.Sprint(l.Runs), fmt.Sprint(l.Succeeded), whole(l.PerRun, c),
			whole(l.PerSuccess, c), whole(l.PerGPUHour, c), money.Short(l.LostToInterrupts, c), whole(l.PerEpoch, c),
			whole(l.PerMillion, c)})
	}
	dash := []string{"-", "-", "-", "-", "-"}
	for _, l := range v.Pools {
		costs = append(costs, slices.Concat([]string{Clean(l.Name), money.Short(l.Amount, l.Currency)}, dash,
			[]string{money.Short(l.Divided.Neg(), l.Currency), money.Short(l.Left, l.Currency), "-", "-", "-"}))
	}
	for _, l := range v.Totals {
		costs = append(costs, slices.Concat([]string{"total", money.Short(l.Own.Add(l.Shared).Add(l.Left), l.Currency)}, dash,
			[]string{"-", money.Short(l.Total, l.Currency), "-", "-", "-"}))
	}
	right := func(name string, leaves int) draw.Column { return draw.Column{Name: name, Right: true, Leaves: leaves} }
	s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "TEAM", Key: true}, right("OWN", 0), right("USEFUL", 3),
		right("LOST", 4), right("START-UP", 5), right("IDLE", 6), right("OPEN", 7), right("SHARED", 0), right("TOTAL", 0),
		right("ACCRUED", 2), right("BILLED", 1), right("SAVED", 1)}, costs, p.Columns()))
	if len(units) > 0 {
		s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "TEAM", Key: true}, right("RUNS", 0), right("SUCCEEDED", 4),
			right("PER RUN", 0), right("PER SUCCESS", 0), right("PER GPU-HOUR", 0), right("INTERRUPTIONS", 3),
			right("PER EPOCH", 1), right("PER 1M SAMPLES", 2)}, units, p.Columns()))
	}
	s.WriteString(methods(v, p))
	return s.String()
}

// methods lists how each pool was divided.
func methods(v api.Chargeback, p Place) string {
	var text strings.Builder
	for i, l := range v.Pools {
		if i == 0 {
			text.WriteString("\n")
		}
		text.WriteString(draw.Wrap("", fmt.Sprintf("%s, %s: %s.", Clean(l.Name), money.Short(l.Amount, l.Currency),
			Clean(l.Method)), p.Columns()))
	}
	if !v.Whole {
		text.WriteString("\n" + draw.Wrap("", "You see the teams in which you have a role. Their shares are of the whole "+
			"month.", p.Columns()))
	}
	return text.String()
}

// Fees formats the table of shared costs without a machine.
func Fees(list []api.Fee, p Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No fees.", p.Columns())
	}
	var rows [][]string
	for _, f := range list {
		rows = append(rows, []string{Clean(f.Name), money.Short(f.Amount, f.Currency), cmp.Or(Clean(f.Since), "-"),
			cmp.Or(Clean(f.Until), "-"), cmp.Or(Clean(f.Spread), "by statement")})
	}
	return draw.Grid([]draw.Column{{Name: "FEE", Key: true}, {Name: "A MONTH", Right: true}, {Name: "SINCE"},
		{Name: "UNTIL"}, {Name: "SPREAD", Leaves: 1}}, rows, p.Columns())
}
