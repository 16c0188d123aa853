package proposals

import (
	"slices"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/work/portfolio"
)

// rank ranks the proposals that wait, and says which of them fit into the budget.
func rank(v *client.Proposals) {
	var items []portfolio.Item
	of := map[string]*client.Proposal{}
	for i := range v.Proposals {
		p := &v.Proposals[i]
		if p.State != string(core.Held) || p.Currency != v.Currency || p.Value == nil || p.Cost == nil {
			continue
		}
		of[p.ID] = p
		items = append(items, portfolio.Item{ID: p.ID, Cost: p.Cost[1], Value: *p.Value})
	}
	portfolio.Rank(items)
	var chosen []bool
	if v.Budget != nil {
		chosen, v.Exact = portfolio.Choose(items, *v.Budget)
	}
	for i, x := range items {
		p := of[x.ID]
		p.Rank = new(i + 1)
		if x.Cost.Sign() > 0 {
			p.PerDollar = new(x.Value.Float() / x.Cost.Float())
		}
		if v.Budget == nil {
			continue
		}
		if p.Fits = new(chosen[i]); chosen[i] {
			v.Cost, v.Value = v.Cost.Add(x.Cost), v.Value.Add(x.Value)
		}
	}
	slices.SortStableFunc(v.Proposals, byRank)
}
