package review

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
)

// The review has the proposals that something happened to in its month, and says what each gave.
func TestProposals_AreThoseOfTheMonthWithWhatTheyGave(t *testing.T) {
	day := func(d int) time.Time { return begin.AddDate(0, 0, d) }
	made := func(id string, d int) api.Proposal {
		return api.Proposal{ID: id, State: "held", At: day(d), Currency: "USD", Proposing: api.Proposing{ValueText: "a paper"}}
	}
	decided, given := made("decided", -9), made("given", -9)
	decided.State, decided.Approval = "running", &api.Approval{At: new(day(3)), Approved: new(true)}
	given.State, given.Approval = "succeeded", &api.Approval{At: new(day(-8)), Approved: new(true)}
	given.Value, given.ValueText, given.Spent = new(money.Picos(50e12)), "", money.Picos(7e12)
	given.Cost = &[3]money.Amount{{}, money.Picos(6e12), {}}
	given.Outcome, given.OutcomeAt = &api.ProposalOutcome{Text: "2 points", Value: new(money.Picos(40e12))}, new(day(30))
	r := &Review{Since: begin, Until: begin.AddDate(0, 1, 0)}
	refused, left := made("refused", 0), made("left", 0)
	refused.State, refused.Approval = "cancelled", &api.Approval{At: new(day(2)), Approved: new(false)}
	left.State, left.Approval = "stopped", &api.Approval{}
	r.proposals([]api.Proposal{made("before", -1), made("first", 0), refused, left, decided, given, made("next", 31)})
	ids := ""
	for _, p := range r.Proposals {
		ids += p.ID + " "
	}
	if want := "first refused left decided given "; ids != want {
		t.Errorf("%s, want %s", ids, want)
	}
	var b strings.Builder
	r.proposed(&b, show.Place{})
	for _, want := range []string{"5: 2 approved, 1 rejected, 1 wait, 1 ended without a decision", "given (succeeded): $6.00 planned, $7.00 spent, $50.00 expected, gave $40.00 2 points",
		"first (held): unknown planned, $0.00 spent, a paper expected, no outcome recorded"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\nlacks %s", b.String(), want)
		}
	}
}
