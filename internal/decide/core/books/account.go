package books

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Account is what the jobs of a team's project come to.
type Account struct {
	Team, Project string
	States        map[state.Status]int // jobs; a state that none is in may be missing
	Open          int                  // jobs that are not over, or still cost something
	Taken         int                  // machines that were taken from them
	Spent         money.Amount
}

// Jobs is how many there are.
func (a Account) Jobs() (n int) {
	for _, some := range a.States {
		n += some
	}
	return n
}

// AccountKey names the account of a team or a project of it.
type AccountKey struct{ Team, Project string }

// Account adds j to its account where nothing of it costs anything now, or takes it
// out again before it changes. What costs something is added when it is asked for.
func (bk *Books) Account(j *state.Job, by int) {
	if !j.Costs() {
		accountOf(bk.ByTeam, j).change(j, by, bk.Now())
	}
}

func accountOf(in map[AccountKey]*Account, j *state.Job) *Account {
	k := AccountKey{j.Terms().Owner.Team, j.Terms().Owner.Project}
	a := in[k]
	if a == nil {
		a = &Account{Team: k.Team, Project: k.Project, States: map[state.Status]int{}}
		in[k] = a
	}
	return a
}

func (a *Account) change(j *state.Job, by int, t time.Time) {
	if a.States[j.State()] += by; a.States[j.State()] == 0 {
		delete(a.States, j.State())
	}
	if by > 0 {
		a.Spent = a.Spent.Add(j.Spent(t))
	} else {
		a.Spent = a.Spent.Sub(j.Spent(t))
	}
	for _, try := range j.Attempts() {
		for _, k := range try.Tasks() {
			if k.Taken() {
				a.Taken += by
			}
		}
	}
	if !j.State().Over() || j.Costs() {
		a.Open += by
	}
}

// Accounts returns what the jobs of each project have come to by t, which is not before
// the last event, by team and project. It goes through the jobs that hold a machine,
// and not through the others.
func (bk *Books) Accounts(t time.Time) []Account {
	all := make(map[AccountKey]*Account, len(bk.ByTeam))
	for k, a := range bk.ByTeam {
		c := *a
		c.States = maps.Clone(a.States)
		all[k] = &c
	}
	for j := range bk.Costing() {
		accountOf(all, j).change(j, 1, t)
	}
	return ListedAccounts(all)
}

// Costing are the jobs of which a machine may cost something now, or is asked for, in no order.
func (bk *Books) Costing() map[*state.Job]struct{} {
	jobs := make(map[*state.Job]struct{}, len(bk.State.Running()))
	for _, j := range bk.State.Running() {
		jobs[j] = struct{}{}
	}
	for a := range bk.State.Attempts() { // of jobs that hold another machine by now
		jobs[bk.State.Job(a.Job())] = struct{}{}
	}
	for a := range bk.State.Allocations() {
		jobs[bk.State.Job(a.Job())] = struct{}{}
	}
	return jobs
}

// ListedAccounts leaves out those of which no job is left.
func ListedAccounts(all map[AccountKey]*Account) []Account {
	list := make([]Account, 0, len(all))
	for _, a := range all {
		if len(a.States) > 0 {
			list = append(list, *a)
		}
	}
	slices.SortFunc(list, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Project, b.Project))
	})
	return list
}
