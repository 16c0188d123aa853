// Package totals sums the jobs of a list by one of their properties.
package totals

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/filter"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/search"
)

// maxLines bounds the lines of totals.
const maxLines = 1000

// scanAtOnce is the number of jobs in memory that are added up between two steps of the core.
const scanAtOnce = 4096

// Odds forecasts what jobs still cost.
type Odds interface {
	Outlook(job string) *client.JobOutlook
	Estimate(job string) *client.JobEstimate
	InTime(job string) *float64
}

// Service answers requests for totals.
type Service struct {
	Control *control.Control
	Odds    Odds
	Names   func() *identity.Names // of users
}

// selection selects jobs.
type selection struct {
	filter.Filter
	live      bool // those that are not closed
	attention bool // those that need a user's attention
}

// Get sums the jobs that a list would have.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	f, field, wrong := filter.Of(r.URL.Query(), d.Control.Clock().ToMarket)
	if wrong != "" {
		reply.FieldProblem(w, http.StatusBadRequest, field, wrong, "leave it out for all jobs", nil)
		return
	}
	by := cmp.Or(r.URL.Query().Get("by"), "team")
	if key, isTag := strings.CutPrefix(by, "tag:"); !slices.Contains(search.Properties, by) && (!isTag || key == "") {
		reply.FieldProblem(w, http.StatusBadRequest, "by", "jobs have no such property",
			"write "+strings.Join(search.Properties, ", ")+" or tag:KEY", nil)
		return
	}
	attention := r.URL.Query().Get("attention") != ""
	p := selection{Filter: f, live: attention || r.URL.Query().Get("live") != "", attention: attention}
	t, err := d.sum(r.Context(), auth.CallerOf(r), p, by)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived jobs", "try again", err)
		return
	}
	reply.JSON(w, t.list())
}

// totals sums jobs.
type totals struct {
	by    string
	names *identity.Names
	lines map[lineKey]*client.JobTotal
}

type lineKey struct {
	name     string
	currency money.Currency
}

// sum adds up the jobs in memory, and then those that are archived and were not in memory.
func (d *Service) sum(ctx context.Context, c identity.Caller, p selection, by string) (*totals, error) {
	t := &totals{by: by, names: d.Names(), lines: map[lineKey]*client.JobTotal{}}
	s := scan{Service: d, totals: t, selection: p, caller: c, now: d.Control.Now(), durable: d.Control.Durable()}
	for more := true; more; {
		d.Control.ReadUncommitted(func(m *core.Machine) { more = s.some(m) })
	}
	d.Control.ReadUpTo(func(*core.Machine) uint64 { return s.last })
	if p.live {
		return t, nil
	}
	return t, d.Control.Cards(ctx, func(card *search.Card) {
		_, present := slices.BinarySearch(s.present, card.Order)
		if !present && c.Role(card.Team) >= identity.Viewer && p.TakesCard(card) {
			t.add(card)
		}
	})
}

// scan adds up the jobs in memory.
type scan struct {
	*Service
	*totals
	selection
	caller  identity.Caller
	now     time.Time
	durable uint64
	next    uint64   // order of submission of the last job
	last    uint64   // newest event on which the sums depend
	present []uint64 // orders of submission of the jobs in memory
}

// some adds up the next jobs, and reports whether others remain.
func (s *scan) some(m *core.Machine) (more bool) {
	n := 0
	for j := range m.State().JobsFrom(s.next) {
		if n++; n > scanAtOnce {
			return true
		}
		s.next = j.Order()
		s.present = append(s.present, j.Order())
		if j.Event() > s.durable || !auth.Sees(s.caller, j) {
			continue
		}
		s.last = max(s.last, m.ChangedAt(j))
		if s.live && j.Priced() || s.attention && !filter.NeedsAttention(j, s.Odds.InTime, s.now) || !s.Takes(j) {
			continue
		}
		card := search.CardOf(j)
		card.Spent = j.Spent(s.now)
		line := s.add(&card)
		if j.State().Over() {
			continue
		}
		if a := j.Live(); a != nil && j.Asked() == nil {
			line.Rate = quantity.Add(line.Rate, a.Rate())
		}
		s.foresee(line, j, card.Spent)
	}
	return false
}

// add adds a job without a forecast to its line.
func (t *totals) add(c *search.Card) *client.JobTotal {
	key := lineKey{c.Property(t.by), c.Currency}
	if t.by == "user" {
		key.name = t.names.Of(key.name)
	}
	line := t.lines[key]
	if line == nil {
		key.name, key.currency = strings.Clone(key.name), money.Currency(strings.Clone(string(key.currency)))
		line = &client.JobTotal{Name: key.name, Currency: key.currency, States: map[string]int{}}
		t.lines[key] = line
	}
	state := string(c.State)
	if _, known := line.States[state]; !known {
		state = strings.Clone(state) // the text of a card is a part of a large one
	}
	line.Jobs++
	line.States[state]++
	line.Spent = line.Spent.Add(c.Spent)
	return line
}

// foresee adds what a job that has spent an amount still costs.
func (d *Service) foresee(line *client.JobTotal, j *core.Job, spent money.Amount) {
	var cost *[3]float64
	switch j.State() {
	case core.Running:
		if o := d.Odds.Outlook(j.ID()); o != nil {
			cost = &o.Cost
		}
	case core.Queued:
		if e := d.Odds.Estimate(j.ID()); e != nil {
			cost = &e.Cost
		}
	default: // nobody forecasts it
	}
	if cost == nil {
		line.Unknown++
		if j.Terms().HasBudget {
			line.Bounded++
			left := j.Terms().Budget.Sub(spent)
			if left.Sign() < 0 {
				left = money.Amount{}
			}
			addBound(line, left)
		}
		return
	}
	line.Foreseen++
	if line.WillCost == nil {
		line.WillCost = &[2]float64{}
	}
	line.WillCost[0] += cost[0]
	line.WillCost[1] += cost[2]
}

func addBound(line *client.JobTotal, most money.Amount) {
	if line.AtMost != nil {
		most = line.AtMost.Add(most)
	}
	line.AtMost = &most
}

// list returns the lines, those that spent most first, and their sums.
func (t *totals) list() client.JobTotals {
	all := client.JobTotals{By: t.by, Lines: []client.JobTotal{}, Total: []client.JobTotal{}}
	for _, line := range t.lines {
		all.Lines = append(all.Lines, *line)
	}
	slices.SortFunc(all.Lines, func(a, b client.JobTotal) int {
		return cmp.Or(strings.Compare(string(a.Currency), string(b.Currency)), b.Spent.Cmp(a.Spent),
			cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Name, b.Name))
	})
	for _, line := range all.Lines {
		if n := len(all.Total); n == 0 || all.Total[n-1].Currency != line.Currency {
			all.Total = append(all.Total, client.JobTotal{Currency: line.Currency, States: map[string]int{}})
		}
		plus(&all.Total[len(all.Total)-1], line)
	}
	all.More = max(0, len(all.Lines)-maxLines)
	all.Lines = all.Lines[:len(all.Lines)-all.More]
	return all
}

// plus adds a line to a sum.
func plus(sum *client.JobTotal, line client.JobTotal) {
	sum.Jobs += line.Jobs
	sum.Foreseen, sum.Unknown, sum.Bounded = sum.Foreseen+line.Foreseen, sum.Unknown+line.Unknown, sum.Bounded+line.Bounded
	if line.AtMost != nil {
		addBound(sum, *line.AtMost)
	}
	sum.Spent, sum.Rate = sum.Spent.Add(line.Spent), quantity.Add(sum.Rate, line.Rate)
	for _, state := range slices.Sorted(maps.Keys(line.States)) {
		sum.States[state] += line.States[state]
	}
	if line.WillCost != nil {
		if sum.WillCost == nil {
			sum.WillCost = &[2]float64{}
		}
		sum.WillCost[0] += line.WillCost[0]
		sum.WillCost[1] += line.WillCost[1]
	}
}
