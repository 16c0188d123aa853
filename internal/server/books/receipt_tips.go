package books

import (
	"fmt"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// tips returns what would make the next run cheaper, by rules over the receipt.
func tips(v receipt.Receipt) []receipt.Tip {
	list := []receipt.Tip{}
	share := func(u ledger.Use) float64 { return v.Uses[u].Float() / max(v.Cost.Float(), 1e-12) }
	add := func(saves money.Amount, format string, args ...any) {
		t := receipt.Tip{Text: fmt.Sprintf(format, args...)}
		if saves.Sign() > 0 {
			t.Saves = new(saves.Float())
		}
		list = append(list, t)
	}
	if part := share(ledger.Lost) * 100; part > 1 {
		switch {
		case v.SaveTrouble != "":
			add(v.Uses[ledger.Lost], "%.0f %% of the cost was work that was lost. What the job saved was not kept: "+
				"remove the cause that this receipt names", part)
		case len(v.Interruptions) > 0:
			add(v.Uses[ledger.Lost], "%.0f %% of the cost was lost to interruptions, as work after a save or as time until "+
				"they were seen: save more often, or let the program call scrimp.should_checkpoint()", part)
		case v.State == string(core.Cancelled):
			add(v.Uses[ledger.Lost], "%.0f %% of the cost was work after the last save: scrimp stop saves before it ends a job",
				part)
		default:
			add(v.Uses[ledger.Lost], "%.0f %% of the cost was work after the last save: save more often", part)
		}
	}
	if share(ledger.StartUp) > 0.01 {
		add(v.Uses[ledger.StartUp], "%.0f %% of the cost was start-up: shorten set-up and restore",
			share(ledger.StartUp)*100)
	}
	ruled := v.Cost.Sub(v.CostWithoutRules) // charges beyond the seconds used, such as a minimum, are booked as idle
	if ruled.Sign() < 0 {
		ruled = money.Amount{}
	}
	if part := ruled.Float() / max(v.Cost.Float(), 1e-12); part > 0.01 {
		add(ruled, "the provider bills %.0f %% of the cost beyond the seconds used, such as a minimum charge: shorter runs "+
			"cost no less", part*100)
	}
	if idle := v.Uses[ledger.Idle].Sub(ruled); idle.Float()/max(v.Cost.Float(), 1e-12) > 0.01 {
		add(idle, "%.0f %% of the cost was idle time: keep outputs and the last save small",
			100*idle.Float()/v.Cost.Float())
	}
	firm := money.Amount{}
	for _, t := range v.Tries {
		if t.Capacity == string(market.OnDemand) {
			firm = firm.Add(t.Cost)
		}
	}
	if firm.Sign() > 0 && v.Deadline != nil && slices.ContainsFunc(v.Decisions, tookOnDemandForDeadline) {
		text := "%s went to on-demand to be in time: a later deadline would leave more to spot"
		if slices.ContainsFunc(v.Decisions, func(d receipt.Decision) bool { return d.Refused == "quota" }) {
			text = "%s went to on-demand to be in time, after machines were refused for a quota: ask the provider for a " +
				"higher one (scrimp explain)"
		}
		add(money.Amount{}, text, money.Format(firm, v.Currency, 4))
	}
	if v.Checkpoints == 0 && v.SaveTrouble == "" && v.State == string(core.Succeeded) {
		add(money.Amount{}, "the job saved no checkpoint: an interruption would have lost all its work (docs/programs.md)")
	}
	return list
}

// tookOnDemandForDeadline reports whether the decision took on-demand to meet the deadline, and not because the job
// file requires it.
func tookOnDemandForDeadline(d receipt.Decision) bool {
	return slices.Contains([]plan.Reason{plan.SlackGone, plan.BehindPace, plan.WaitsMore, plan.Uncounted},
		plan.Reason(d.Why))
}
