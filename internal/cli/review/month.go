package review

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/measured"
	"scrimp/internal/lib/money"
)

// Review is a month on one page. Null is unknown.
type Review struct {
	Month string    `json:"month"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"` // end of the month, or now if it is not over
	Over  bool      `json:"over"`
	Whole bool      `json:"whole"` // false: you may not see all teams, and the figures are of those that you may
	Sums  []*Sum    `json:"sums"`  // by currency
	// Budgets are the limits of dollars per month.
	Budgets   []Budget       `json:"budgets"`
	Anomalies []api.Anomaly  `json:"anomalies"` // of the month, the dearest first; null: it is too long ago
	Proposals []api.Proposal `json:"proposals"` // proposed or decided in the month, newest first
	// Taken lists the recommendations that were taken and whose 30 days of measurement touch the month, newest first.
	Taken []api.TakenRecommendation `json:"taken"`
	// Accuracy is how far the estimates of the runs that ended in the month were from what came out, and Furthest has
	// the runs whose dollars were furthest from it, at most three.
	Accuracy []measured.Missed `json:"accuracy"`
	Furthest []measured.Pair   `json:"furthest"`

	Actions []Action `json:"actions"` // at most three
}

// Sum is what the month cost in one currency.
type Sum struct {
	Currency money.Currency           `json:"currency"`
	Spent    money.Amount             `json:"spent"` // of the ledger; fees are not in it
	Uses     map[string]money.Amount  `json:"uses"`  // useful, lost, start-up, idle and open: they add up to Spent
	Extras   map[string]money.Amount  `json:"bill_extras"`
	Teams    map[string]money.Amount  `json:"teams"` // they add up to Spent; "" is of no team
	Jobs     int                      `json:"jobs"`  // jobs with costs
	Losing   int                      `json:"jobs_that_lost_work"`
	Top      []Job                    `json:"top"`  // at most ten
	Rest     money.Amount             `json:"rest"` // all other cost, so that Top and Rest add up to Spent
	Coverage []Coverage               `json:"coverage"`
	Scopes   map[string]*money.Amount `json:"-"` // by budget scope

	// LostToInterruptions is the lost work of interrupted attempts; null if some cost has no team.
	LostToInterruptions *money.Amount `json:"lost_to_interruptions"`
	// Of the jobs that succeeded and whose last machine ended in the month: their expected cost at the first decision
	// and their actual one, without the tax and credits of bills.
	Foreseen  int           `json:"foreseen"`
	Estimated *money.Amount `json:"estimated"`
	Actual    *money.Amount `json:"actual"`

	jobs   map[string]*Job
	tagged map[string]money.Amount
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

// Budget is a limit of dollars per month with what its scope spent in this month.
type Budget struct {
	Scope    string         `json:"scope"`
	Currency money.Currency `json:"currency"`
	Limit    money.Amount   `json:"limit"`
	Spent    money.Amount   `json:"spent"`
	// Forecast is the expected spending by the end of the month, and Chance that of reaching the limit; null in a
	// month that is over.
	Forecast *money.Amount `json:"forecast"`
	Chance   *float64      `json:"chance"`
}

// Action is something to do next. Amount is what it is about: a saving a month, or what an anomaly costs so far.
type Action struct {
	What     string         `json:"what"`
	Command  string         `json:"command"`
	Amount   money.Amount   `json:"amount"`
	Currency money.Currency `json:"currency"`
}

const (
	mostTop     = 10
	mostActions = 3
)

// tags are those whose coverage every review has, besides those that the budgets demand.
var tags = []string{"team", "project", "environment", "model_version"}

// month reads the rows of a FOCUS file of a month.
type month struct {
	tags   []string
	scopes []string // of budgets
	sums   map[money.Currency]*Sum
}

func (m *month) sum(c money.Currency) *Sum {
	s := m.sums[c]
	if s == nil {
		s = &Sum{Currency: c, Uses: map[string]money.Amount{}, Extras: map[string]money.Amount{},
			Teams: map[string]money.Amount{}, Scopes: map[string]*money.Amount{}, jobs: map[string]*Job{},
			tagged: map[string]money.Amount{}}
		for _, scope := range m.scopes {
			s.Scopes[scope] = new(money.Amount)
		}
		m.sums[c] = s
	}
	return s
}

// read adds the rows of a file.
func (m *month) read(file io.Reader) error {
	in := csv.NewReader(file)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		return fmt.Errorf("read the costs of the month: %w", err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	for _, name := range strings.Fields("BilledCost BillingCurrency ChargeCategory SubAccountId Tags x_Team x_User " +
		"x_Job x_Outcome") {
		if _, is := at[name]; !is {
			return fmt.Errorf("read the costs of the month: the column %s is missing", name)
		}
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.add(func(name string) string { return row[at[name]] })
		}
		if err != nil {
			return fmt.Errorf("read the costs of the month: %w", err)
		}
	}
}

func (m *month) add(of func(string) string) error {
	cost, err := money.Parse(of("BilledCost"))
	if err != nil {
		return err
	}
	own := map[string]string{}
	if text := of("Tags"); text != "" {
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			return fmt.Errorf("read the tags %.60q: %w", text, err)
		}
	}
	s := m.sum(money.Currency(of("BillingCurrency")))
	s.Spent = s.Spent.Add(cost)
	use, team, job := of("x_Outcome"), raw("team", of("x_Team"), own), raw("job", of("x_Job"), own)
	s.Uses[use], s.Teams[team] = s.Uses[use].Add(cost), s.Teams[team].Add(cost)
	if extra := of("ChargeCategory"); extra != "Usage" {
		s.Extras[strings.ToLower(extra)] = s.Extras[strings.ToLower(extra)].Add(cost)
	}
	for _, tag := range m.tags {
		if own[tag] != "" {
			s.tagged[tag] = s.tagged[tag].Add(cost)
		}
	}
	names := map[string]string{"team": team, "project": raw("project", of("SubAccountId"), own),
		"user": raw("user", of("x_User"), own)}
	for scope, sum := range s.Scopes {
		if inScope(scope, names, own) {
			*sum = sum.Add(cost)
		}
	}
	if job != "" {
		s.addJob(job, team, use, cost)
	}
	return nil
}

// inScope reports whether a budget of the scope counts a cost with these names and tags. A job may have a tag that is
// called as a name is, such as user, so the names are apart.
func inScope(scope string, names, own map[string]string) bool {
	kind, value, _ := strings.Cut(scope, ":")
	if kind == "tag" {
		name, want, _ := strings.Cut(value, "=")
		return own[name] == want
	}
	return scope == "all" || names[kind] == value && value != ""
}

func (s *Sum) addJob(job, team, use string, cost money.Amount) {
	j := s.jobs[job]
	if j == nil {
		j = &Job{Job: job, Team: team}
		s.jobs[job] = j
	}
	if j.Cost = j.Cost.Add(cost); use == "lost" {
		j.Lost = j.Lost.Add(cost)
	}
}

// raw returns the name that a column holds as FOCUS files write it, from the tags if they have it unchanged.
func raw(kind, column string, own map[string]string) string {
	if name := own[kind]; focus.ID(kind, name) == column {
		return name
	}
	return column
}

// finish sums the rows by job, and returns the sums by currency.
func (m *month) finish() []*Sum {
	list := []*Sum{}
	for _, c := range slices.Sorted(maps.Keys(m.sums)) {
		s := m.sums[c]
		jobs := slices.SortedFunc(maps.Values(s.jobs), func(a, b *Job) int {
			return cmp.Or(b.Cost.Cmp(a.Cost), strings.Compare(a.Job, b.Job))
		})
		s.Rest, s.Jobs, s.Top = s.Spent, len(jobs), []Job{}
		for i, j := range jobs {
			if j.Lost.Sign() > 0 {
				s.Losing++
			}
			if i < mostTop {
				s.Top, s.Rest = append(s.Top, *j), s.Rest.Sub(j.Cost)
			}
		}
		for _, tag := range m.tags {
			s.Coverage = append(s.Coverage, Coverage{tag, s.tagged[tag], shareOf(s.tagged[tag], s.Spent)})
		}
		list = append(list, s)
	}
	return list
}

// shareOf returns a/b; nil if b is not positive.
func shareOf(a, b money.Amount) *float64 {
	if b.Sign() <= 0 {
		return nil
	}
	share, _ := new(big.Rat).SetFrac(a.Big(), b.Big()).Float64()
	return &share
}

// budgets lists the limits of dollars per month with the spending of their scopes.
func (r *Review) budgets(b api.Budgets) {
	r.Budgets = []Budget{}
	for _, l := range b.Limits {
		if l.Limit.Window != "month" || l.Limit.Dollars == nil {
			continue
		}
		one := Budget{Scope: l.Limit.Scope, Currency: b.Currency, Limit: *l.Limit.Dollars}
		for _, s := range r.Sums {
			if sum := s.Scopes[one.Scope]; s.Currency == b.Currency && sum != nil {
				one.Spent = *sum
			}
		}
		if l.Outlook != nil && !r.Over {
			one.Forecast, one.Chance = &l.Outlook.Spent, &l.Outlook.Chance
		}
		r.Budgets = append(r.Budgets, one)
	}
}

// actions lists what to do next: the largest saving that waste has, and the dearest incidents that go on. Amounts of
// the budgets' currency come first, because amounts of two currencies do not compare.
func (r *Review) actions(waste api.Waste, first money.Currency) {
	r.Actions = []Action{}
	for _, f := range waste.Findings {
		if f.Saving != nil && f.Saving.Sign() > 0 {
			r.Actions = append(r.Actions, Action{f.Action + " " + f.About + ": " + f.Kind, f.Command, *f.Saving, f.Currency})
		}
	}
	for _, a := range r.Anomalies {
		if a.Until == nil && a.AtStake.Sign() > 0 {
			r.Actions = append(r.Actions, Action{"look into " + a.About + ": " + a.Kind, "scrimp anomalies", a.AtStake,
				a.Currency})
		}
	}
	slices.SortStableFunc(r.Actions, func(a, b Action) int {
		if (a.Currency == first) != (b.Currency == first) {
			return map[bool]int{true: -1, false: 1}[a.Currency == first]
		}
		return cmp.Or(strings.Compare(string(a.Currency), string(b.Currency)), b.Amount.Cmp(a.Amount))
	})
	r.Actions = r.Actions[:min(len(r.Actions), mostActions)]
}
