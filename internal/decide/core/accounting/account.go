package accounting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Account is the sums over the jobs of a team's project.
type Account struct {
	Team, Project string
	States        map[state.Status]int // jobs by state; states without jobs may be missing
	Open          int                  // jobs that have not ended, or still cost something
	Taken         int                  // their interrupted machines
	Spent         money.Amount
}

// Jobs returns the number of jobs.
func (a Account) Jobs() (n int) {
	for _, some := range a.States {
		n += some
	}
	return n
}

// AccountKey identifies the account of a team, or of one of its projects.
type AccountKey struct{ Team, Project string }

// Account adds j to its account if it costs nothing now, or removes it before it changes. Jobs that cost something
// are added when the accounts are read.
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
	if by > 0 {
		a.Spent = a.Spent.Add(j.Spent(t))
	} else {
		a.Spent = a.Spent.Sub(j.Spent(t))
	}
	if a.States[j.State()] += by; a.States[j.State()] == 0 {
		delete(a.States, j.State())
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

// Accounts returns the sums of each project up to t, which must not be before the last event, by team and project.
// It visits the jobs with a machine and no others.
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

// Count returns the number of jobs of the teams that sees selects, and of those of them that have not ended or still
// cost something.
func (bk *Books) Count(sees func(team string) bool) (jobs, open int) {
	for k, a := range bk.ByTeam {
		if sees(k.Team) {
			jobs, open = jobs+a.Jobs(), open+a.Open
		}
	}
	for j := range bk.Costing() {
		if sees(j.Terms().Owner.Team) {
			jobs, open = jobs+1, open+1
		}
	}
	return jobs, open
}

// Costing returns the jobs with a machine that may cost something now, or a request for one, in no order.
func (bk *Books) Costing() map[*state.Job]struct{} {
	jobs := make(map[*state.Job]struct{}, len(bk.State.Running()))
	for _, j := range bk.State.Running() {
		jobs[j] = struct{}{}
	}
	for a := range bk.State.Attempts() { // some of their jobs already hold another machine
		jobs[bk.State.Job(a.Job())] = struct{}{}
	}
	for a := range bk.State.Allocations() {
		jobs[bk.State.Job(a.Job())] = struct{}{}
	}
	return jobs
}

// ListedAccounts returns the accounts in order, without those that have no jobs.
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
