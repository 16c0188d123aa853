// Package reconcile compares a provider's bill with scrimp's accounts: it finds the machine of each line, splits the
// gap of each machine into parts that add up exactly, and lists what has no partner on either side.
package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
)

// Part is a reason for a difference.
type Part string

// Parts of a gap.
const (
	Price      Part = "price"    // an hour costs more or less than in scrimp's accounts
	Time       Part = "time"     // more or fewer hours are billed, at scrimp's price
	Rounding   Part = "rounding" // less than half the bill's last decimal per line
	Tax        Part = "tax"
	Credit     Part = "credit"     // and refunds
	Commitment Part = "commitment" // reservations and savings plans
	Other      Part = "other"      // not machine time: disks, addresses, transfer
	Duplicate  Part = "duplicate"  // lines that repeat an earlier one
)

// Parts lists all parts in table order.
var Parts = []Part{Price, Time, Rounding, Tax, Credit, Commitment, Other, Duplicate}

// mostListed bounds each list of an answer; the rest is counted and summed.
const mostListed = 1000

// mostLines bounds the lines that are remembered to find duplicates.
const mostLines = 2_000_000

// Machine is scrimp's account of an instance in one currency.
type Machine struct {
	Instance, Job, Attempt, Type, Region string
	Currency                             money.Currency
	Cost                                 decimal.Decimal // of machine time
	Plain                                decimal.Decimal // hourly part of Cost, without minimum charges and other rules
	OtherCost                            decimal.Decimal
	Hours                                decimal.Decimal
	Begin, End                           time.Time
}

// Gap is a machine with its bill. Parts add up to Gap, which is Billed minus Ours.
type Gap struct {
	Instance string                   `json:"instance"`
	Job      string                   `json:"job"`
	Currency money.Currency           `json:"currency"`
	Ours     decimal.Decimal          `json:"ours"`
	Billed   decimal.Decimal          `json:"billed"`
	Gap      decimal.Decimal          `json:"gap"`
	Parts    map[Part]decimal.Decimal `json:"parts"`
	Lines    int                      `json:"lines"`
	By       string                   `json:"by"` // how its lines were found: id, tag, time
	Notes    []string                 `json:"notes,omitempty"`
}

// Alone is a line or a machine without a partner.
type Alone struct {
	Line     int             `json:"line,omitempty"` // of the bill
	Resource string          `json:"resource"`
	Job      string          `json:"job,omitempty"`
	Amount   decimal.Decimal `json:"amount"`
	Currency money.Currency  `json:"currency"`
	Why      string          `json:"why"`
}

// Sum is an amount in a currency, and the number of its parts.
type Sum struct {
	Count  int             `json:"count"`
	Amount decimal.Decimal `json:"amount"`
}

func (s *Sum) add(a decimal.Decimal) { s.Count, s.Amount = s.Count+1, s.Amount.Add(a) }

// Total is the bill in one currency. File is the sum of Matched, NeverOurs, NotOurs, OtherMonths, Repeated and Unread.
type Total struct {
	Currency    money.Currency           `json:"currency"`
	File        decimal.Decimal          `json:"file_total"`
	Matched     Sum                      `json:"matched"`
	NeverOurs   Sum                      `json:"billed_but_never_ours"`
	NotOurs     Sum                      `json:"not_scrimps"`
	OtherMonths Sum                      `json:"of_other_months"`
	Repeated    Sum                      `json:"repeated"` // listed lines that say the same as an earlier one
	Unread      Sum                      `json:"not_read"`
	Ours        decimal.Decimal          `json:"ours"`
	NotBilled   Sum                      `json:"ours_not_billed_yet"`
	Gap         decimal.Decimal          `json:"gap"` // of the machines with a bill
	Parts       map[Part]decimal.Decimal `json:"parts"`
}

// Answer is the result.
type Answer struct {
	Month     string  `json:"month,omitempty"`
	Totals    []Total `json:"totals"`
	Gaps      []Gap   `json:"gaps"`                  // the largest first
	NeverOurs []Alone `json:"billed_but_never_ours"` // in bill order, the first 1,000
	NotBilled []Alone `json:"ours_not_billed_yet"`
	Others    []Alone `json:"of_other_months"`
	Unread    int     `json:"rows_without_amount"`
	AllUnread int     `json:"unread_rows"` // those without an amount included
}

type key struct {
	instance string
	currency money.Currency
}

// found is a machine with its part of the bill.
type found struct {
	Machine
	lines   int
	usage   decimal.Decimal
	hours   decimal.Decimal
	timed   bool
	parts   map[Part]decimal.Decimal
	by      map[string]bool
	notes   []string
	billed  decimal.Decimal
	untimed int
}

// Books collects both sides.
type Books struct {
	since, until time.Time // of the month; zero for any time
	machines     map[key]*found
	instances    map[string]bool
	foreign      map[string]money.Currency // machines with lines in another currency, and that currency
	jobs         map[string][]*found       // by job, and by attempt
	types        map[string][]*found
	seen         map[string]int
	unread       unread
	places       int
	answer       Answer
	// Stranger receives each line of NeverOurs, also those beyond the listed ones; nil: nobody does.
	Stranger func(Alone)
	totals   map[money.Currency]*Total
}

// New compares the given span; zero times mean any time.
func New(since, until time.Time) *Books {
	b := &Books{since: since, until: until, machines: map[key]*found{}, instances: map[string]bool{},
		foreign: map[string]money.Currency{},
		jobs:    map[string][]*found{}, types: map[string][]*found{}, seen: map[string]int{}, places: 2,
		totals: map[money.Currency]*Total{}, unread: newUnread()}
	b.answer = Answer{Totals: []Total{}, Gaps: []Gap{}, NeverOurs: []Alone{}, NotBilled: []Alone{},
		Others: []Alone{}}
	if !since.IsZero() {
		b.answer.Month = since.Format("2006-01")
	}
	return b
}

func (b *Books) total(c money.Currency) *Total {
	if b.totals[c] == nil {
		b.totals[c] = &Total{Currency: c, Parts: map[Part]decimal.Decimal{}}
	}
	return b.totals[c]
}

// Own adds scrimp's account of a machine. All of them come before the bill.
func (b *Books) Own(m Machine) {
	b.total(m.Currency).Ours = b.total(m.Currency).Ours.Add(m.Cost).Add(m.OtherCost)
	k := key{m.Instance, m.Currency}
	f := b.machines[k]
	if f == nil {
		f = &found{Machine: Machine{Instance: m.Instance, Currency: m.Currency, Begin: m.Begin, End: m.End},
			parts: map[Part]decimal.Decimal{}, by: map[string]bool{}}
		b.machines[k] = f
		b.instances[m.Instance] = true
	}
	f.Plain = f.Plain.Add(m.Plain)
	f.Cost, f.OtherCost, f.Hours = f.Cost.Add(m.Cost), f.OtherCost.Add(m.OtherCost), f.Hours.Add(m.Hours)
	f.Job, f.Type, f.Region = cmp.Or(f.Job, m.Job), cmp.Or(f.Type, m.Type), cmp.Or(f.Region, m.Region)
	if m.Begin.Before(f.Begin) {
		f.Begin = m.Begin
	}
	if m.End.After(f.End) {
		f.End = m.End
	}
	for _, name := range []string{m.Job, m.Attempt} {
		if name != "" && !slices.Contains(b.jobs[name], f) {
			b.jobs[name] = append(b.jobs[name], f)
		}
	}
	if t := strings.ToLower(m.Type); t != "" && !slices.Contains(b.types[t], f) {
		b.types[t] = append(b.types[t], f)
	}
}

// Row adds a row of the bill.
func (b *Books) Row(r bill.Row) {
	if p := r.Problem; p != nil {
		b.Unread(p)
		if b.answer.AllUnread++; !p.Amount.Known {
			b.answer.Unread++
			return
		}
		t := b.total(p.Currency)
		t.Unread.add(p.Amount.Value)
		t.File = t.File.Add(p.Amount.Value)
	}
	for i := range r.Lines {
		b.line(&r.Lines[i])
	}
}

func alone(l *bill.Line, why string) Alone {
	return Alone{Line: l.At, Resource: cmp.Or(l.Resource, l.Description), Job: l.Job, Amount: l.Billed,
		Currency: l.Currency, Why: why}
}

func listed(list []Alone, a Alone) []Alone {
	if len(list) < mostListed {
		list = append(list, a)
	}
	return list
}

func (b *Books) line(l *bill.Line) {
	t := b.total(l.Currency)
	t.File = t.File.Add(l.Billed)
	if _, part, ok := strings.Cut(l.Billed.String(), "."); ok {
		b.places = max(b.places, len(strings.TrimRight(part, "0")))
	}
	f, by, why := b.partner(l)
	ours := f != nil || why != ""
	other := !b.has(l)
	if ours && (f == nil || other) && b.repeats(cmp.Or(l.Resource, l.Attempt, l.Job), l) > 0 {
		t.Repeated.add(l.Billed)
		return
	}
	if other {
		t.OtherMonths.add(l.Billed)
		if ours {
			why = "late or early: the charge is of " + l.Start.Format("2006-01")
			b.answer.Others = listed(b.answer.Others, alone(l, why))
		}
		return
	}
	switch {
	case f != nil:
		t.Matched.add(l.Billed)
		b.match(f, l, by)
	case ours:
		t.NeverOurs.add(l.Billed)
		if b.Stranger != nil {
			b.Stranger(alone(l, why))
		}
		b.answer.NeverOurs = listed(b.answer.NeverOurs, alone(l, why))
	default:
		t.NotOurs.add(l.Billed)
	}
}

// repeats returns the earlier line that says the same about the same thing, or 0 if there is none. A bill that
// is read twice, or two bills that share lines, ask for an amount once.
func (b *Books) repeats(about string, l *bill.Line) (at int) {
	if l.Billed.Sign() == 0 {
		return 0
	}
	same := fmt.Sprintf("%q %q %q %q %q %d %d %v %v", about, l.Category, l.SKU, l.Description, l.Currency, l.Start.Unix(),
		l.End.Unix(), l.Quantity, l.Billed)
	if at = b.seen[same]; at == 0 && len(b.seen) < mostLines {
		b.seen[same] = l.At
	}
	return at
}

// has reports whether a line is of the month.
func (b *Books) has(l *bill.Line) bool {
	return b.since.IsZero() || !l.Start.Before(b.since) && l.Start.Before(b.until)
}

func (b *Books) match(f *found, l *bill.Line, by string) {
	b.unread.lineOf(f.Instance)
	f.lines, f.billed, f.by[by] = f.lines+1, f.billed.Add(l.Billed), true
	add := func(p Part) { f.parts[p] = f.parts[p].Add(l.Billed) }
	if at := b.repeats(f.Instance, l); at > 0 {
		add(Duplicate)
		if len(f.notes) < 10 {
			f.notes = append(f.notes, fmt.Sprintf("line %d says the same as line %d", l.At, at))
		}
		return
	}
	switch l.Category {
	case bill.Tax:
		add(Tax)
	case bill.Credit, bill.Refund:
		add(Credit)
	case bill.Commitment:
		add(Commitment)
	case bill.Compute:
		f.usage = f.usage.Add(l.Billed)
		if l.Quantity.Known && hourly(l.Unit) {
			f.hours, f.timed = f.hours.Add(l.Quantity.Value), true
		} else {
			f.untimed++
		}
	default:
		add(Other)
	}
}

// hourly reports whether a unit is hours: Hrs, Hours, 1 Hour, h.
func hourly(unit string) bool {
	unit = strings.ToLower(unit)
	return unit == "h" || strings.Contains(unit, "hr") || strings.Contains(unit, "hour")
}

// Finish compares both sides.
func (b *Books) Finish() Answer {
	for _, f := range slices.SortedFunc(maps.Values(b.machines), func(x, y *found) int {
		return cmp.Or(cmp.Compare(x.Instance, y.Instance), cmp.Compare(x.Currency, y.Currency))
	}) {
		t, ours := b.total(f.Currency), f.Cost.Add(f.OtherCost)
		if f.lines == 0 {
			if ours.Sign() != 0 {
				why := "no line of the bill is of this machine"
				if wait, named := b.Waits(f.Instance); named {
					why = wait
				}
				t.NotBilled.add(ours)
				b.answer.NotBilled = listed(b.answer.NotBilled, Alone{Resource: f.Instance, Job: f.Job, Amount: ours,
					Currency: f.Currency, Why: why})
			}
			continue
		}
		g := b.gap(f, ours)
		if wait, _ := b.Waits(f.Instance); wait != "" {
			g.Notes = append(g.Notes, wait)
		}
		for p, a := range g.Parts {
			t.Parts[p] = t.Parts[p].Add(a)
		}
		t.Gap = t.Gap.Add(g.Gap)
		b.answer.Gaps = append(b.answer.Gaps, g)
	}
	slices.SortStableFunc(b.answer.Gaps, func(x, y Gap) int { return size(y.Gap).Cmp(size(x.Gap)) })
	for _, c := range slices.Sorted(maps.Keys(b.totals)) {
		b.answer.Totals = append(b.answer.Totals, *b.totals[c])
	}
	return b.answer
}

func size(d decimal.Decimal) decimal.Decimal {
	if d.Sign() < 0 {
		return d.Neg()
	}
	return d
}
