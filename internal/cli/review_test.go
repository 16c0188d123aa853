package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// The review of this month has what scrimp costs and the receipt say, and a month without costs is refused.
func TestReview_EqualsTheCostsAndTheReceipt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: tiny\ncommand: \"true\"\nbudget: 5\ntags: {ticket: T-1}\n")
	h.do("run", "job.yaml")
	var got struct {
		Month string
		Sums  []struct {
			Spent money.Amount
			Uses  map[string]money.Amount
			Top   []struct {
				Job  string
				Cost money.Amount
			}
			Rest money.Amount
			Jobs int
		}
	}
	if err := json.Unmarshal([]byte(h.out("review", "--json")), &got); err != nil || len(got.Sums) != 1 {
		t.Fatalf("%v: %+v", err, got)
	}
	var receipt client.Receipt
	if err := json.Unmarshal([]byte(h.out("receipt", "tiny", "--json")), &receipt); err != nil {
		t.Fatal(err)
	}
	s := got.Sums[0]
	if s.Jobs != 1 || s.Top[0].Job != "tiny" || s.Top[0].Cost != receipt.Cost || s.Spent != s.Rest.Add(receipt.Cost) {
		t.Errorf("%+v, the receipt says %v", s, receipt.Cost)
	}
	sum, uses := money.Amount{}, money.Amount{}
	for line := range strings.Lines(h.out("costs", "--json")) {
		var l struct{ Spent money.Amount }
		must.Do(t, json.Unmarshal([]byte(line), &l))
		sum = sum.Add(l.Spent)
	}
	for _, a := range s.Uses {
		uses = uses.Add(a)
	}
	if uses != s.Spent || sum != s.Spent {
		t.Errorf("%v were spent, by use %v, by scrimp costs %v", s.Spent, uses, sum)
	}
	if text := h.out("review"); !strings.Contains(text, "Review of "+got.Month) || !strings.Contains(text, "tiny") {
		t.Errorf("%s", text)
	}
	for month, says := range map[string]string{"2026-13": "--month \"2026-13\" is not a month: write YYYY-MM, such as 2026-10", "October": "--month \"October\" is not a month", "1999-01": "no costs in this month", "9999-01": "has not begun"} {
		if text, err := h.try("review", "--month", month); err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: %v %s", month, err, text)
		}
	}
}
