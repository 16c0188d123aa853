package propose

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
)

// What is unknown is a dash and not $0, text of other users cannot steer the terminal, and a search that gave up says so.
func TestList_ShowsUnknownAsADash(t *testing.T) {
	usd := func(n int64) money.Amount { return money.Picos(n * 1e12) }
	v := api.Proposals{Budget: new(usd(10)), Cost: usd(4), Value: usd(9), Currency: "USD", Proposals: []api.Proposal{
		{ID: "a", State: "held", Currency: "USD", Rank: new(1), Fits: new(true), PerDollar: new(2.25),
			Cost: &[3]money.Amount{usd(3), usd(4), usd(6)}, Proposing: api.Proposing{Value: new(usd(9))}},
		{ID: "b", State: "held", Currency: "USD", Proposing: api.Proposing{ValueText: "a\x1b[2Jpaper"}}}}
	text := list(v, show.Place{})
	lines := strings.Split(text, "\n")
	// A column without any value is left out.
	if got := strings.Join(strings.Fields(lines[1]), " "); got != "1 a (none) held $9.00 $4.00 2.25 yes" {
		t.Error(got)
	}
	if got := strings.Fields(lines[2]); got[0] != "-" || strings.Contains(lines[2], "\x1b") || strings.Contains(lines[2], "$0") ||
		got[len(got)-1] != "-" {
		t.Errorf("%q", lines[2])
	}
	if !strings.Contains(text, "1 of 1 ranked proposals fit into $10.00: $9.00 for $4.00.") || !strings.Contains(text, "too many sets") {
		t.Error(text)
	}
	v.Exact = true
	if strings.Contains(list(v, show.Place{}), "too many sets") {
		t.Error("an exact search says that it gave up")
	}
	v.Proposals[0].Approval = &api.Approval{Most: new(usd(70)), Proposal: true}
	if text := one(v.Proposals[0], show.Place{}); !strings.Contains(text, "$70.00: its budget stops it\n") {
		t.Errorf("who approves does not see what the job can cost: %s", text)
	}
	if text := one(v.Proposals[1], show.Place{}); !strings.Contains(text, "unknown: it has no budget") || !strings.Contains(text, "- planned") || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

func TestValueOf_TakesAmountsOrWordsAndRefusesWhatIsNearlyAnAmount(t *testing.T) {
	for text, want := range map[string]string{"$5000": "5000", "12.5": "12.5", "0": "0", " a figure ": "a figure"} {
		a, words, err := valueOf(text)
		if a != nil {
			words = a.String()
		}
		if err != nil || words != want {
			t.Errorf("%q: %q %v", text, words, err)
		}
	}
	for _, text := range []string{"$5,000", "-1", "$", "5k", "1e9"} {
		if a, words, err := valueOf(text); err == nil {
			t.Errorf("%q is %v %q", text, a, words)
		}
	}
}
