package waste

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// candidate is the rows that a finding may claim.
type candidate struct {
	about, team string
	currency    money.Currency
	rows        []int
	cost        money.Amount
	time        time.Duration
	jobs        []string
	first       time.Time // when it was first seen, within the span
}

// search holds the rows while the kinds claim them, one kind after the other.
type search struct {
	*Input
	rows  []Row
	taken []bool
	begin time.Time // of the span
	list  []Finding
}

// Find returns the findings. The same input gives the same report.
func Find(in Input) Report {
	r := Report{Since: in.Since, Until: in.Until, Measured: len(in.Runs), Findings: []Finding{}, Totals: []Total{}}
	if in.Began.IsZero() {
		return r
	}
	if r.Short = in.Began.After(in.Since); r.Short {
		r.Since = in.Began
	}
	s := &search{Input: &in, begin: r.Since}
	s.rows = s.cut()
	s.taken = make([]bool, len(s.rows))
	s.reservations()
	s.volumes()
	s.machines()
	s.idle()
	s.schedules()
	s.oversized()
	s.untagged()
	for i := range s.list {
		f := &s.list[i]
		if least, ok := f.least(); ok {
			f.Monthly = monthly(f.Cost, in.Until.Sub(f.first), least)
			if f.saved != nil {
				f.Saving = monthly(*f.saved, in.Until.Sub(f.first), least)
			}
		}
		if in.Team == "" || f.Team == in.Team {
			r.Findings = append(r.Findings, *f)
		}
	}
	Sort(r.Findings)
	r.Totals = Sum(r.Findings)
	return r
}

// Sort puts the findings in the order of the report: the largest saving first, those with an unknown saving last.
func Sort(list []Finding) {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(-known(a.Saving).Cmp(known(b.Saving)), -a.Cost.Cmp(b.Cost), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Team, b.Team), cmp.Compare(a.About, b.About), cmp.Compare(a.Currency, b.Currency))
	})
}

// known returns the amount for a comparison: less than every saving where it is unknown.
func known(a *money.Amount) money.Amount {
	if a == nil {
		return money.Picos(-1)
	}
	return *a
}

// Sum returns the totals of the findings by currency.
func Sum(list []Finding) []Total {
	by := map[money.Currency]*Total{}
	for _, f := range list {
		t := by[f.Currency]
		if t == nil {
			t = &Total{Currency: f.Currency}
			by[f.Currency] = t
		}
		t.Findings++
		t.Cost = t.Cost.Add(f.Cost)
		t.Needless, t.Monthly, t.Saving = plus(t.Needless, f.Needless), plus(t.Monthly, f.Monthly), plus(t.Saving, f.Saving)
		if f.Saving == nil {
			t.Unknown++
		}
	}
	totals := []Total{}
	for _, c := range slices.Sorted(maps.Keys(by)) {
		totals = append(totals, *by[c])
	}
	return totals
}

// plus returns the sum of what is known of two amounts; nil: neither is.
func plus(a, b *money.Amount) *money.Amount {
	switch {
	case b == nil:
		return a
	case a == nil:
		return new(*b)
	}
	return new(a.Add(*b))
}

// cut returns the rows, cut where an agent fell silent, since only what comes after belongs to the finding, and where
// the minimum charge of a machine without a task ends. The parts of a row add up to it exactly.
func (s *search) cut() (list []Row) {
	silent := map[string]time.Time{}
	for _, m := range s.Machines {
		if !m.Silent.IsZero() {
			silent[m.Instance] = m.Silent
		}
	}
	for _, r := range s.Rows {
		at, ok := silent[r.Instance]
		if paid, due := s.Paid[r.Instance]; due && r.Idle {
			at, ok = paid, true
		}
		if !ok || !r.Begin.Before(at) || !r.End.After(at) {
			list = append(list, s.due(r))
			continue
		}
		before, _ := r.Between(r.Begin, at)
		after, _ := r.Between(at, r.End)
		list = append(list, s.due(before), s.due(after))
	}
	return list
}

// due returns a row with its mark if it is time without a task that a minimum charge makes due in any case.
func (s *search) due(r Row) Row {
	if paid, ok := s.Paid[r.Instance]; ok && r.Idle && !r.End.After(paid) {
		r.Due = true
	}
	return r
}

// gather returns the rows that nothing has claimed and that about names, by currency, in a fixed order.
func (s *search) gather(about func(r *Row) (name, team string, ok bool)) []*candidate {
	type key struct {
		name, team string
		currency   money.Currency
	}
	by := map[key]*candidate{}
	var list []*candidate
	for i := range s.rows {
		r := &s.rows[i]
		if s.taken[i] {
			continue
		}
		name, team, ok := about(r)
		if !ok {
			continue
		}
		k := key{name, team, r.Currency}
		p := by[k]
		if p == nil {
			p = &candidate{about: name, team: team, currency: r.Currency, first: r.Begin}
			by[k] = p
			list = append(list, p)
		}
		if r.Begin.Before(p.first) {
			p.first = r.Begin
		}
		p.rows, p.cost, p.time = append(p.rows, i), p.cost.Add(r.Amount), p.time+r.Time
		if r.Job != "" && !slices.Contains(p.jobs, r.Job) { // the newest five: rows come in order of time
			p.jobs = append(p.jobs, r.Job)
			p.jobs = p.jobs[max(0, len(p.jobs)-5):]
		}
	}
	for i := range s.Before {
		r := &s.Before[i]
		if name, team, ok := about(r); ok {
			if p := by[key{name, team, r.Currency}]; p != nil {
				p.first = s.begin
			}
		}
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(strings.Compare(a.team, b.team), strings.Compare(a.about, b.about),
			cmp.Compare(a.currency, b.currency))
	})
	return list
}

// claim adds a finding about the rows of a candidate, unless they cost nothing.
func (s *search) claim(p *candidate, f Finding) {
	if p.cost.Sign() <= 0 {
		return
	}
	for _, i := range p.rows {
		s.taken[i] = true
	}
	f.Team, f.About, f.Currency, f.Cost = p.team, cmp.Or(f.About, p.about), p.currency, p.cost
	f.ID = ID(f.Kind, f.Team, f.About, f.Currency)
	if f.first = p.first; f.first.Before(s.begin) {
		f.first = s.begin
	}
	if f.Jobs == nil {
		f.Jobs = p.jobs
	}
	s.list = append(s.list, f)
}

// whole says that the action saves all of the cost.
func whole(p *candidate) *money.Amount { return &p.cost }
