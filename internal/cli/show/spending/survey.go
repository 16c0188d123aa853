package spending

import (
	"fmt"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Survey is the text of what the engines see in their accounts.
func Survey(v *api.Survey, p show.Place) string {
	var s, why strings.Builder
	asked := 0
	for _, e := range v.Engines {
		switch {
		case e.Error != "":
			s.WriteString(draw.Wrap("", fmt.Sprintf("Engine %s was not read: %s", show.Clean(e.Name), show.Clean(e.Error)),
				p.Columns()))
		case e.Lists:
			asked++
			s.WriteString(draw.Wrap("", fmt.Sprintf("Engine %s sees %s.", show.Clean(e.Name),
				draw.Count(e.Seen, "resource")), p.Columns()))
		}
	}
	if len(v.Resources) == 0 {
		text := "No engine can list an account: engines on AWS can."
		if asked > 0 {
			text = "All of them have the tags, and each volume has a machine that runs."
		}
		return s.String() + draw.Wrap("", text, p.Columns())
	}
	var rows [][]string
	for i, r := range v.Resources {
		rows = append(rows, []string{strconv.Itoa(i + 1), show.Clean(r.ID), show.Clean(r.Engine), show.Clean(r.Kind),
			show.Clean(r.Type), amountOr(r.Monthly, r.Currency), show.Clean(strings.Join(r.Lacks, ", ")), show.Clean(r.Action)})
		text := show.Clean(r.Evidence)
		if r.Command != "" {
			text += ". Try: " + show.Clean(r.Try) + ". Do: " + show.Clean(r.Command)
		}
		why.WriteString(draw.Wrap(fmt.Sprintf("%d  ", i+1), text, p.Columns()))
	}
	s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "#", Right: true}, {Name: "ID", Key: true},
		{Name: "ENGINE", Leaves: 2}, {Name: "KIND", Leaves: 1}, {Name: "TYPE", Least: 8}, {Name: "A MONTH", Right: true},
		{Name: "LACKS", Least: 8}, {Name: "ACTION"}}, rows, p.Columns()) + "\n" + why.String())
	sum, unknown := monthOf(v.Resources)
	s.WriteString(draw.Wrap("", sum+unknown, p.Columns()))
	return s.String()
}

// monthOf says what the resources with a known price cost a month, by currency, and how many have none.
func monthOf(list []api.SurveyResource) (sum, unknown string) {
	by, without := map[money.Currency]money.Amount{}, 0
	var order []money.Currency
	for _, r := range list {
		if r.Monthly == nil {
			without++
			continue
		}
		if _, has := by[r.Currency]; !has {
			order = append(order, r.Currency)
		}
		by[r.Currency] = by[r.Currency].Add(*r.Monthly)
	}
	for _, c := range order {
		sum += money.Short(by[c], c) + " a month at present prices. "
	}
	if without > 0 {
		unknown = draw.Count(without, "resource") + " without a known price."
	}
	return sum, unknown
}
