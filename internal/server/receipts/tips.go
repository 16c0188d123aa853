package receipts

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
	a := advice{v: v, list: []receipt.Tip{}}
	if part := a.share(ledger.Lost) * 100; part > 1 {
		a.add(v.Uses[ledger.Lost], lostText(v), part)
	}
	if a.share(ledger.StartUp) > 0.01 {
		a.add(v.Uses[ledger.StartUp], "%.0f %% of the cost was start-up: shorten set-up and restore",
			a.share(ledger.StartUp)*100)
	}
	a.idle()
	a.onDemand()
	if v.Checkpoints == 0 && v.SaveTrouble == "" && v.State == string(core.Succeeded) {
		a.add(money.Amount{}, "the job saved no checkpoint: an interruption would have lost all its work (docs/programs.md)")
	}
	return a.list
}

// advice collects the tips for a receipt.
type advice struct {
	v    receipt.Receipt
	list []receipt.Tip
}

// share is the part of the cost that went to a use, from 0 to 1.
func (a *advice) share(u ledger.Use) float64 {
	return a.v.Uses[u].Float() / max(a.v.Cost.Float(), 1e-12)
}

// add adds a tip. Saves is what the use cost that the tip avoids, and is not shown where it is zero.
func (a *advice) add(saves money.Amount, format string, args ...any) {
	t := receipt.Tip{Text: fmt.Sprintf(format, args...)}
	if saves.Sign() > 0 {
		t.Saves = new(saves.Float())
	}
	a.list = append(a.list, t)
}

// lostText returns the tip for work that was lost, by its cause, as a format of the percentage.
func lostText(v receipt.Receipt) string {
	switch {
	case v.SaveTrouble != "":
		return "%.0f %% of the cost was work that was lost. What the job saved was not kept: " +
			"remove the cause that this receipt names"
	case len(v.Interruptions) > 0:
		return "%.0f %% of the cost was lost to interruptions, as work after a save or as time until " +
			"they were seen: save more often, or let the program call scrimp.should_checkpoint()"
	case v.Preempted > 0:
		return "%.0f %% of the cost was lost to critical jobs that preempted this one: let the program save when " +
			"it is asked to end, or write preemptible: false"
	case v.State == string(core.Cancelled):
		return "%.0f %% of the cost was work after the last save: scrimp stop saves before it ends a job"
	}
	return "%.0f %% of the cost was work after the last save: save more often"
}

// idle adds the tips for time that was billed beyond the seconds used, such as a minimum charge, and for other idle
// time. The ledger books both as idle.
func (a *advice) idle() {
	v := a.v
	ruled := v.Comparable().Sub(v.CostWithoutRules) // without tax, credits and the reading of inputs
	if ruled.Sign() < 0 {
		ruled = money.Amount{}
	}
	if part := ruled.Float() / max(v.Cost.Float(), 1e-12); part > 0.01 {
		a.add(ruled, "the provider bills %.0f %% of the cost beyond the seconds used, such as a minimum charge: shorter "+
			"runs cost no less", part*100)
	}
	if idle := v.Uses[ledger.Idle].Sub(ruled); idle.Float()/max(v.Cost.Float(), 1e-12) > 0.01 {
		a.add(idle, "%.0f %% of the cost was idle time: keep outputs and the last save small",
			100*idle.Float()/v.Cost.Float())
	}
}

// onDemand adds the tip for a job that ran on-demand because of its deadline.
func (a *advice) onDemand() {
	v, cost := a.v, money.Amount{}
	for _, t := range v.Tries {
		if t.Capacity == string(market.OnDemand) {
			cost = cost.Add(t.Cost)
		}
	}
	if cost.Sign() <= 0 || v.Deadline == nil || !slices.ContainsFunc(v.Decisions, tookOnDemandForDeadline) {
		return
	}
	text := "%s went to on-demand to be in time: a later deadline would leave more to spot"
	if slices.ContainsFunc(v.Decisions, func(d receipt.Decision) bool { return d.Refused == "quota" }) {
		text = "%s went to on-demand to be in time, after machines were refused for a quota: ask the provider for a " +
			"higher one (scrimp explain)"
	}
	a.add(money.Amount{}, text, money.Format(cost, v.Currency, 4))
}

// tookOnDemandForDeadline reports whether the decision took on-demand to meet the deadline, and not because the job
// file requires it.
func tookOnDemandForDeadline(d receipt.Decision) bool {
	return slices.Contains([]plan.Reason{plan.SlackGone, plan.BehindPace, plan.WaitsMore, plan.Uncounted},
		plan.Reason(d.Why))
}
