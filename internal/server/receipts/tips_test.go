package receipts

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Tips name what happened: they mention work lost to interruptions only if there were some, and on-demand for the
// deadline only if a decision says so.
func TestTips_NameWhatHappened(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := receipt.Receipt{Cost: money.Picos(1e12), CostWithoutRules: money.Picos(1e12), Currency: money.USD, Deadline: &at, State: "cancelled",
		Uses:  map[ledger.Use]money.Amount{ledger.Lost: money.Picos(9e11), ledger.Useful: money.Picos(1e11)},
		Tries: []receipt.Try{{Capacity: string(market.OnDemand), Cost: money.Picos(1e12)}}}
	taken := base
	taken.State, taken.Interruptions = "succeeded", []receipt.Interruption{{}}
	taken.Checkpoints = 1
	unsaved := taken
	unsaved.SaveTrouble = "the checkpoint folder cannot be copied whole: no room"
	failed := base
	failed.State = "failed"
	preempted := failed
	preempted.Preempted = 1
	late := base
	late.Decisions = []receipt.Decision{{Why: "cheapest"}, {Why: "slack_gone"}}
	quota := late
	quota.Decisions = []receipt.Decision{{Why: "cheapest"}, {Why: "waits_spot", Refused: "quota"}, {Why: "behind_pace"}}
	for name, c := range map[string]struct {
		of        receipt.Receipt
		has, lack string
	}{
		"cancelled":                {base, "scrimp stop saves", "interruptions"},
		"failed":                   {failed, "after the last save: save more often", "interruptions"},
		"preempted":                {preempted, "preemptible: false", "save more often"},
		"interrupted":              {taken, "was lost to interruptions", "after the last save"},
		"saves are not kept":       {unsaved, "What the job saved was not kept", "save more often"},
		"on-demand that was asked": {base, "", "a later deadline"},
		"on-demand for a quota":    {quota, "ask the provider for a higher one", "a later deadline"},
		"on-demand to be in time":  {late, "a later deadline", "interruptions"},
	} {
		var all []string
		for _, tip := range tips(c.of) {
			all = append(all, tip.Text)
		}
		if text := strings.Join(all, "; "); !strings.Contains(text, c.has) || strings.Contains(text, c.lack) {
			t.Errorf("%s: %q, want %q and not %q", name, text, c.has, c.lack)
		}
	}
}
