package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Account is what the jobs of a team's project come to.
type Account struct {
	Team, Project string
	States        map[State]int // jobs; a state that none is in may be missing
	Open          int           // jobs that are not over, or still cost something
	Taken         int           // machines that were taken from them
	Spent         money.Amount
}

// Jobs is how many there are.
func (a Account) Jobs() (n int) {
	for _, some := range a.States {
		n += some
	}
	return n
}

type accountKey struct{ team, project string }

// account adds j to its account where nothing of it costs anything now, or takes it
// out again before it changes. What costs something is added when it is asked for.
func (m *Machine) account(j *Job, by int) {
	if !j.Costs() {
		accountOf(m.accounts, j).change(j, by, m.now())
	}
}

func accountOf(in map[accountKey]*Account, j *Job) *Account {
	k := accountKey{j.Terms().Owner.Team, j.Terms().Owner.Project}
	a := in[k]
	if a == nil {
		a = &Account{Team: k.team, Project: k.project, States: map[State]int{}}
		in[k] = a
	}
	return a
}

func (a *Account) change(j *Job, by int, t time.Time) {
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
func (m *Machine) Accounts(t time.Time) []Account {
	all := make(map[accountKey]*Account, len(m.accounts))
	for k, a := range m.accounts {
		c := *a
		c.States = maps.Clone(a.States)
		all[k] = &c
	}
	for j := range m.costing() {
		accountOf(all, j).change(j, 1, t)
	}
	return listedAccounts(all)
}

// costing are the jobs of which a machine may cost something now, or is asked for, in no order.
func (m *Machine) costing() map[*Job]struct{} {
	jobs := make(map[*Job]struct{}, len(m.s.Running()))
	for _, j := range m.s.Running() {
		jobs[j] = struct{}{}
	}
	for a := range m.s.Attempts() { // of jobs that hold another machine by now
		jobs[m.s.Job(a.Job())] = struct{}{}
	}
	for a := range m.s.Allocations() {
		jobs[m.s.Job(a.Job())] = struct{}{}
	}
	return jobs
}

// listedAccounts leaves out those of which no job is left.
func listedAccounts(all map[accountKey]*Account) []Account {
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
