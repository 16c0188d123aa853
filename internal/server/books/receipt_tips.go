package books

import (
	"fmt"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/receipt"
)

// tips are what would make the next run cheaper, by rules over the receipt.
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
	if share(ledger.Lost) > 0.01 {
		add(v.Uses[ledger.Lost], "%.0f %% of the cost was work that was lost: save more often, or let the program call "+
			"scrimp.should_checkpoint()", share(ledger.Lost)*100)
	}
	if share(ledger.StartUp) > 0.01 {
		add(v.Uses[ledger.StartUp], "%.0f %% of the cost was start-up: make set-up and restore quicker",
			share(ledger.StartUp)*100)
	}
	ruled := v.Cost.Sub(v.CostWithoutRules) // what is billed beyond the seconds, such as a minimum, is booked as idle
	if ruled.Sign() < 0 {
		ruled = money.Amount{}
	}
	if part := ruled.Float() / max(v.Cost.Float(), 1e-12); part > 0.01 {
		add(ruled, "%.0f %% of the cost is billed beyond the seconds used, such as a minimum charge: shorter runs cost "+
			"no less", part*100)
	}
	if idle := v.Uses[ledger.Idle].Sub(ruled); idle.Float()/max(v.Cost.Float(), 1e-12) > 0.01 {
		add(idle, "%.0f %% of the cost was a machine without work: keep outputs and the last save small",
			100*idle.Float()/v.Cost.Float())
	}
	firm := money.Amount{}
	for _, t := range v.Tries {
		if t.Capacity == string(market.OnDemand) {
			firm = firm.Add(t.Cost)
		}
	}
	if firm.Sign() > 0 && v.Deadline != nil {
		add(money.Amount{}, "%s went to on-demand to be in time: a later deadline would leave more to spot",
			money.Format(firm, v.Currency, 4))
	}
	if v.Checkpoints == 0 && v.State == string(core.Succeeded) {
		add(money.Amount{}, "no checkpoint was saved: with checkpoint.dir an interruption would not lose everything")
	}
	return list
}
