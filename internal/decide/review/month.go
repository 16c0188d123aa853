// Package review sums what a month cost for a monthly meeting, and marks how mature the handling of cost is.
package review

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Sum is what the month cost in one currency. client.ReviewSum describes the fields.
type Sum struct {
	Currency money.Currency              `json:"currency"`
	Spent    money.Amount                `json:"spent"`
	Uses     map[ledger.Use]money.Amount `json:"uses"`
	Extras   map[string]money.Amount     `json:"bill_extras"`
	Teams    map[string]money.Amount     `json:"teams"`
	Budgeted money.Amount                `json:"budgeted"`
	Jobs     int                         `json:"jobs"`
	Losing   int                         `json:"jobs_that_lost_work"`
	Top      []Job                       `json:"top"`
	Rest     money.Amount                `json:"rest"`
	Coverage []Coverage                  `json:"coverage"`

	LostToInterruptions *money.Amount `json:"lost_to_interruptions"`

	Foreseen  int           `json:"foreseen"`
	Estimated *money.Amount `json:"estimated"`
	Actual    *money.Amount `json:"actual"`
}

// Job is a job with its cost in the month.
type Job struct {
	Job  string       `json:"job"`
	Team string       `json:"team"`
	Cost money.Amount `json:"cost"`
	Lost money.Amount `json:"lost"`
}

// Coverage is how much of Spent has a tag. Share is null if nothing was spent.
type Coverage struct {
	Tag    string       `json:"tag"`
	Amount money.Amount `json:"amount"`
	Share  *float64     `json:"share"`
}

const mostTop = 10

// Month sums charges. Its fields Scopes and Monthly are set before the first charge.
type Month struct {
	// Scopes are those of the limits of dollars per month.
	Scopes []budget.Scope

	tags []string
	sums map[money.Currency]*account
}

// account is a Sum with what it is computed from.
type account struct {
	Sum
	scopes map[budget.Scope]money.Amount
	jobs   map[string]*Job
	tagged map[string]money.Amount
}

// New returns a month that says how much spending has each of the demanded tags, besides those that every review has.
func New(demanded []string, scopes []budget.Scope) *Month {
	m := &Month{Scopes: scopes, tags: []string{"team", "project", ledger.LabelEnvironment, ledger.LabelModelVersion},
		sums: map[money.Currency]*account{}}
	for _, tag := range slices.Sorted(slices.Values(demanded)) {
		if !slices.Contains(m.tags, tag) {
			m.tags = append(m.tags, tag)
		}
	}
	return m
}

func (m *Month) account(c money.Currency) *account {
	a := m.sums[c]
	if a == nil {
		a = &account{Sum: Sum{Currency: c, Uses: map[ledger.Use]money.Amount{}, Extras: map[string]money.Amount{},
			Teams: map[string]money.Amount{}}, scopes: map[budget.Scope]money.Amount{}, jobs: map[string]*Job{},
			tagged: map[string]money.Amount{}}
		m.sums[c] = a
	}
	return a
}

// extras names the parts of a bill's corrections that are no usage.
var extras = map[string]string{"tax": "tax", "credit": "credit", "commitment": "adjustment"}

// Add adds a charge of the month.
func (m *Month) Add(c *charge.Charge) {
	a := m.account(c.Currency)
	a.Spent = a.Spent.Add(c.Amount)
	a.Uses[c.Use], a.Teams[c.Owner.Team] = a.Uses[c.Use].Add(c.Amount), a.Teams[c.Owner.Team].Add(c.Amount)
	part, _ := ledger.Extra(c.Rule)
	if name := extras[part]; name != "" {
		a.Extras[name] = a.Extras[name].Add(c.Amount)
	}
	for _, tag := range m.tags {
		if tagOf(c, tag) != "" {
			a.tagged[tag] = a.tagged[tag].Add(c.Amount)
		}
	}
	held := false
	for _, scope := range m.Scopes {
		if scope.Holds(c.Owner, c.User) {
			held, a.scopes[scope] = true, a.scopes[scope].Add(c.Amount)
		}
	}
	if held {
		a.Budgeted = a.Budgeted.Add(c.Amount)
	}
	a.addJob(c)
}

// tagOf returns the value of a tag, which may also be a field of the job file.
func tagOf(c *charge.Charge, tag string) string {
	return cmp.Or(c.Owner.Labels()[tag], map[string]string{"team": c.Owner.Team, "project": c.Owner.Project,
		"user": c.User, "kind": c.Kind}[tag])
}

func (a *account) addJob(c *charge.Charge) {
	if c.Owner.Job == "" {
		return
	}
	j := a.jobs[c.Owner.Job]
	if j == nil {
		j = &Job{Job: c.Owner.Job, Team: c.Owner.Team}
		a.jobs[c.Owner.Job] = j
	}
	if j.Cost = j.Cost.Add(c.Amount); c.Use == ledger.Lost {
		j.Lost = j.Lost.Add(c.Amount)
	}
}

// Foresee adds the estimated and the actual cost of n jobs; with n below zero it subtracts them.
func (m *Month) Foresee(c money.Currency, n int, estimated, actual money.Amount) {
	if n < 0 {
		estimated, actual = estimated.Neg(), actual.Neg()
	}
	s := m.account(c)
	if s.Estimated == nil {
		s.Estimated, s.Actual = new(money.Amount), new(money.Amount)
	}
	s.Foreseen, *s.Estimated, *s.Actual = s.Foreseen+n, s.Estimated.Add(estimated), s.Actual.Add(actual)
	if s.Foreseen == 0 {
		s.Estimated, s.Actual = nil, nil
	}
}

// Interrupted adds lost work of interrupted attempts. It is known of teams, so cost without a team leaves the whole
// unknown.
func (m *Month) Interrupted(of map[money.Currency]money.Amount) {
	for c, a := range m.sums {
		if a.Teams[""].IsZero() {
			a.LostToInterruptions = new(of[c])
		}
	}
}

// Spent returns what a scope spent.
func (m *Month) Spent(c money.Currency, scope budget.Scope) money.Amount {
	if a := m.sums[c]; a != nil {
		return a.scopes[scope]
	}
	return money.Amount{}
}

// Sums returns the sums by currency.
func (m *Month) Sums() []Sum {
	list := []Sum{}
	for _, c := range slices.Sorted(maps.Keys(m.sums)) {
		list = append(list, m.sums[c].finish(m.tags))
	}
	return list
}

func (a *account) finish(tags []string) Sum {
	jobs := slices.SortedFunc(maps.Values(a.jobs), func(x, y *Job) int {
		return cmp.Or(y.Cost.Cmp(x.Cost), strings.Compare(x.Job, y.Job))
	})
	s := a.Sum
	s.Rest, s.Jobs, s.Top, s.Coverage = s.Spent, len(jobs), []Job{}, []Coverage{}
	for i, j := range jobs {
		if j.Lost.Sign() > 0 {
			s.Losing++
		}
		if i < mostTop {
			s.Top, s.Rest = append(s.Top, *j), s.Rest.Sub(j.Cost)
		}
	}
	for _, tag := range tags {
		s.Coverage = append(s.Coverage, Coverage{tag, a.tagged[tag], ShareOf(a.tagged[tag], s.Spent)})
	}
	return s
}

// ShareOf returns a/b; nil if b is not positive.
func ShareOf(a, b money.Amount) *float64 {
	if b.Sign() <= 0 {
		return nil
	}
	share, _ := new(big.Rat).SetFrac(a.Big(), b.Big()).Float64()
	return &share
}
