package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// A proposed job costs nothing until it is approved; then it runs, and its cost is that of its receipt.
func TestProposals_AreRankedApprovedAndCompared(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: idea\ncommand: \"true\"\nwork: {steps: 3, time: 20m}\nbudget: 5\n")
	for args, says := range map[string]string{
		"--value 1": "--why is missing", "--why w": "--value is missing", "--why w --value $5,000": "is not an amount from 0",
		"--why w --value -1": "is not an amount from 0",
	} {
		if text, err := h.try(append([]string{"propose", "job.yaml"}, strings.Fields(args)...)...); err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: %v %s", args, err, text)
		}
	}
	h.do("propose", "job.yaml", "--why", "twice the data", "--value", "$50")
	h.do("propose", "job.yaml", "--why", "an ablation", "--value", "20")
	h.do("propose", "job.yaml", "--why", "a reviewer asks", "--value", "figure 3")
	var v client.Proposals
	if err := json.Unmarshal([]byte(h.out("proposals", "--budget", "$100", "--json")), &v); err != nil || len(v.Proposals) != 3 {
		t.Fatalf("%v %+v", err, v)
	}
	if text, err := h.try("proposals", "--budget", ""); err == nil || !strings.Contains(text, "--budget is empty") {
		t.Errorf("%v %s", err, text)
	}
	var cost, value money.Amount
	for i, id := range []string{"idea", "idea-2"} {
		p := v.Proposals[i]
		if p.ID != id || *p.Rank != i+1 || !*p.Fits || p.Cost[0].Cmp(p.Cost[1]) > 0 || p.Cost[1].Cmp(p.Cost[2]) > 0 || p.Cost[1].Sign() <= 0 {
			t.Errorf("%+v", p)
		}
		cost, value = cost.Add(p.Cost[1]), value.Add(*p.Value)
	}
	if p := v.Proposals[2]; p.ID != "idea-3" || p.Rank != nil || p.Value != nil || p.ValueText != "figure 3" || v.Cost != cost || v.Value != value || !v.Exact {
		t.Errorf("%+v", v)
	}
	if text, err := h.try("proposals", "outcome", "idea", "--text", "x"); err == nil || !strings.Contains(text, "never approved") {
		t.Errorf("%v %s", err, text)
	}
	h.do("proposals", "approve", "idea")
	h.do("wait", "idea")
	h.do("proposals", "reject", "idea-2", "--reason", "too small")
	h.do("proposals", "outcome", "idea", "--text", "3 points better", "--value", "$40")
	var receipt client.Receipt
	if err := json.Unmarshal([]byte(h.out("receipt", "idea", "--json")), &receipt); err != nil {
		t.Fatal(err)
	}
	var one client.Proposal
	if err := json.Unmarshal([]byte(h.out("proposals", "show", "idea", "--json")), &one); err != nil || one.Spent != receipt.Cost || !one.Over ||
		one.Outcome.Value.Cmp(money.Picos(40e12)) != 0 || *one.CostError != one.Spent.Float()/one.Cost[1].Float()-1 {
		t.Errorf("%v %+v, the receipt says %v", err, one, receipt.Cost)
	}
	if text := h.out("review"); !strings.Contains(text, "3: 1 approved, 1 rejected, 1 wait, 0 ended") || !strings.Contains(text, "gave $40.00 3 points better") {
		t.Errorf("%s", text)
	}
}
