package review

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// proposals keeps the proposals that were made, decided or given an outcome within the month, newest first.
func (r *Review) proposals(list []api.Proposal) {
	within := func(t *time.Time) bool { return t != nil && !t.Before(r.Since) && t.Before(r.Until) }
	r.Proposals = []api.Proposal{}
	for _, p := range list {
		if within(&p.At) || p.Approval != nil && within(p.Approval.At) || within(p.OutcomeAt) {
			r.Proposals = append(r.Proposals, p)
		}
	}
	slices.SortStableFunc(r.Proposals, func(a, b api.Proposal) int { return b.At.Compare(a.At) })
}

// mostProposals is how many proposals the page shows.
const mostProposals = 5

// proposed writes the proposals and what they gave. It counts all of them, and shows the newest.
func (r *Review) proposed(b *strings.Builder, p show.Place) {
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
