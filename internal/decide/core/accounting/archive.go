package accounting

import "scrimp/internal/decide/state"

// SumArchive adds the sums over archived jobs.
func (bk *Books) SumArchive() {
	bk.State.Archived(func(k state.ArchiveKey, v state.ArchiveSum) {
		key := AccountKey{Team: k.Team, Project: k.Project}
		a := bk.ByTeam[key]
		if a == nil {
			a = &Account{Team: k.Team, Project: k.Project, States: map[state.Status]int{}}
			bk.ByTeam[key] = a
		}
		for s, n := range v.States() {
			if a.States[s] += n; a.States[s] == 0 {
				delete(a.States, s)
			}
		}
		a.Taken, a.Spent = a.Taken+v.Interruptions, a.Spent.Add(v.Spent)
		if v.History != (state.History{}) {
			owner := state.HistoryOwner{Dimensions: k.Dimensions, Currency: k.Currency}
			bk.Past.Sums.Add(k.Hour, owner, v.History)
			bk.Past.AddArchived(k.Hour, owner, v.History)
		}
	})
}
