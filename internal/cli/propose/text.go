package propose

import (
	"fmt"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// valueText formats an expected or real value: the amount, the words, or both.
func valueText(a *money.Amount, words string, c money.Currency) string {
	var parts []string
	if a != nil {
		parts = append(parts, money.Short(*a, c))
	}
	if words = strings.TrimSpace(words); words != "" {
		parts = append(parts, words)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// row formats a proposal as a row of the table.
func row(x api.Proposal, asked bool) []string {
	rank, cost, per, spent, gave, fits := "-", "-", "-", "-", "-", "-"
	if x.Rank != nil {
		rank = strconv.Itoa(*x.Rank)
	}
	if x.Cost != nil {
		cost = money.Short(x.Cost[1], x.Currency)
	}
	if x.PerDollar != nil {
		per = fmt.Sprintf("%.2f", *x.PerDollar)
	}
	if !x.Spent.IsZero() {
		spent = money.Short(x.Spent, x.Currency)
	}
	if x.Outcome != nil {
		gave = show.Clean(valueText(x.Outcome.Value, x.Outcome.Text, x.Currency))
	}
	if x.Fits != nil {
		fits = map[bool]string{true: "yes", false: "no"}[*x.Fits]
	}
	value := show.Clean(valueText(x.Value, x.ValueText, x.Currency))
	of := []string{rank, x.ID, show.Named(x.Team), x.State, value, cost, per, spent, gave}
	if asked {
		of = append(of, fits)
	}
	return of
}

// list formats proposals as a table, with what fits into the budget below it.
func list(v api.Proposals, p show.Place) string {
	if len(v.Proposals) == 0 {
		return draw.Wrap("", "No job is proposed: scrimp propose job.yaml proposes one.", p.Columns())
	}
	var rows [][]string
	fits, ranked := 0, 0
	for _, x := range v.Proposals {
		rows = append(rows, row(x, v.Budget != nil))
		if x.Rank != nil {
			ranked++
		}
		if x.Fits != nil && *x.Fits {
			fits++
		}
	}
	columns := []draw.Column{{Name: "#", Right: true}, {Name: "ID", Key: true}, {Name: "TEAM", Leaves: 2},
		{Name: "STATE"}, {Name: "VALUE", Least: 8}, {Name: "COST", Right: true}, {Name: "PER $", Right: true, Leaves: 3},
		{Name: "SPENT", Right: true, Leaves: 4}, {Name: "GAVE", Least: 8, Leaves: 1}}
	if v.Budget != nil {
		columns = append(columns, draw.Column{Name: "FITS"})
	}
	text := draw.Grid(columns, rows, p.Columns())
	if v.Budget == nil {
		return text
	}
	says := fmt.Sprintf("%d of %d ranked proposals fit into %s: %s for %s.", fits, ranked,
		money.Short(*v.Budget, v.Currency), money.Short(v.Value, v.Currency), money.Short(v.Cost, v.Currency))
	if !v.Exact {
		says += " There are too many sets to try all: another set may be worth more."
	}
	return text + "\n" + draw.Wrap("", says, p.Columns())
}

// one formats a proposal: what was expected, what it cost, and what it gave.
func one(v api.Proposal, p show.Place) string {
	var b strings.Builder
	by := v.User
	if v.Team != "" {
		by += " of " + v.Team
	}
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s: %s, proposed by %s on %s", v.ID, v.State, show.Clean(by), p.Moment(v.At)),
		p.Columns()))
	p.Fact(&b, "why", "%s", v.Why)
	p.Fact(&b, "value", "%s", valueText(v.Value, v.ValueText, v.Currency))
	if v.Cost == nil {
		p.Fact(&b, "cost", "- planned: scrimp does not know the job's work or found no offer")
	} else {
		p.Fact(&b, "cost", "%s planned (%s to %s in 80 %% of the runs)", money.Short(v.Cost[1], v.Currency),
			money.Short(v.Cost[0], v.Currency), money.Short(v.Cost[2], v.Currency))
	}
	if v.State == "held" {
		if v.Approval != nil && v.Approval.Most != nil {
			p.Fact(&b, "at most", "%s: its budget stops it", money.Short(*v.Approval.Most, v.Currency))
		} else {
			p.Fact(&b, "at most", "unknown: it has no budget")
		}
		p.Fact(&b, "next", "scrimp proposals approve %s, or reject %s --reason TEXT", v.ID, v.ID)
		return b.String()
	}
	if r := v.Approval; r != nil && r.Approved != nil {
		verdict := map[bool]string{true: "approved", false: "rejected"}[*r.Approved]
		p.Fact(&b, "review", "%s", strings.TrimSuffix(verdict+" by "+r.By+": "+r.Reason, ": "))
		if !*r.Approved {
			return b.String()
		}
	}
	spent := money.Short(v.Spent, v.Currency)
	switch {
	case !v.Over:
		spent += " so far"
	case v.CostError != nil:
		spent += fmt.Sprintf(", %+.0f %% against the plan", *v.CostError*100)
	}
	p.Fact(&b, "spent", "%s", spent)
	switch {
	case v.Outcome == nil && (v.Approval == nil || v.Approval.Approved == nil): // given up before anybody decided
	case v.Outcome == nil:
		p.Fact(&b, "gave", "- (scrimp proposals outcome %s records it)", v.ID)
	default:
		p.Fact(&b, "gave", "%s, says %s", valueText(v.Outcome.Value, v.Outcome.Text, v.Currency), v.OutcomeBy)
	}
	return b.String()
}
