package review

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// mostProposals is how many proposals the page shows.
const mostProposals = 5

// proposed writes the proposals and what they gave. It counts all of them, and shows the newest.
func (r page) proposed(b *strings.Builder, p show.Place) {
	waits, approved, rejected := 0, 0, 0
	for _, x := range r.Proposals {
		switch v := x.Approval; {
		case x.State == "held":
			waits++
		case v != nil && v.Approved != nil && *v.Approved:
			approved++
		case v != nil && v.Approved != nil:
			rejected++
		}
	}
	p.Fact(b, "proposals", "%d: %d approved, %d rejected, %d wait, %d ended without a decision", len(r.Proposals),
		approved, rejected, waits, len(r.Proposals)-approved-rejected-waits)
	for _, x := range r.Proposals[:min(len(r.Proposals), mostProposals)] {
		p.Fact(b, "", "%s (%s): %s", x.ID, x.State, strings.Join(gave(x), ", "))
	}
	if more := len(r.Proposals) - mostProposals; more > 0 {
		p.Fact(b, "", "%s more: scrimp proposals", draw.Count(more, "proposal"))
	}
}

// gave says what a proposal was expected to cost and give, and what it has cost and given.
func gave(x api.Proposal) (parts []string) {
	worth := func(a *money.Amount, words string) string {
		if a == nil {
			return words
		}
		return strings.TrimSpace(money.Short(*a, x.Currency) + " " + words)
	}
	cost := "unknown"
	if x.Cost != nil {
		cost = money.Short(x.Cost[1], x.Currency)
	}
	parts = append(parts, fmt.Sprintf("%s planned, %s spent", cost, money.Short(x.Spent, x.Currency)),
		worth(x.Value, x.ValueText)+" expected")
	if x.Outcome == nil {
		return append(parts, "no outcome recorded")
	}
	return append(parts, "gave "+worth(x.Outcome.Value, x.Outcome.Text))
}
