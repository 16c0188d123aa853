package admission

import (
	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/state"
)

// sumArchive adds the sums over archived jobs.
func (ad *Admission) sumArchive() {
	ad.State.Archived(func(k state.ArchiveKey, v state.ArchiveSum) {
		key := books.AccountKey{Team: k.Team, Project: k.Project}
		a := ad.books.ByTeam[key]
		if a == nil {
			a = &books.Account{Team: k.Team, Project: k.Project, States: map[state.Status]int{}}
			ad.books.ByTeam[key] = a
		}
		for s, n := range v.States() {
			if a.States[s] += n; a.States[s] == 0 {
				delete(a.States, s)
			}
		}
		a.Taken, a.Spent = a.Taken+v.Interruptions, a.Spent.Add(v.Spent)
		if v.History != (state.History{}) {
			owner := state.HistoryOwner{Dimensions: k.Dimensions, Currency: k.Currency}
			ad.books.Past.Sums.Add(k.Hour, owner, v.History)
			ad.books.Past.AddArchived(k.Hour, owner, v.History)
		}
	})
}
