// Package trueup computes the postings that make the ledger of a month equal to the providers' bills. It compares a
// bill with what the ledger holds without earlier corrections, so a revised bill gives what it would have given alone.
package trueup

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/reconcile"
)

// machine is an instance in one currency.
type machine struct {
	instance string
	currency money.Currency
}

// cell is an owner's cost of one use; the corrections of a bill have a category and a rule as well.
type cell struct {
	owner    string
	use      ledger.Use
	category ledger.Category
	rule     string
}

// account is what the ledger holds of a machine.
type account struct {
	template   state.ReconciledLine
	owners     map[string]ledger.Owner
	costs      map[cell]money.Amount // without corrections
	booked     map[cell]money.Amount // corrections
	begin, end time.Time
}

// Month compares the bills of a month with the ledger.
type Month struct {
	Bills *reconcile.Books
	of    map[machine]*account
}

// New returns a comparison for the span.
func New(since, until time.Time) *Month {
	return &Month{Bills: reconcile.New(since, until), of: map[machine]*account{}}
}

// Charge adds a charge of the ledger. All of them come before the bills.
func (m *Month) Charge(c *charge.Charge) error {
	if c.Owner.Instance == "" {
		return nil // no machine: unused reservations
	}
	k := machine{c.Owner.Instance, c.Currency}
	a := m.of[k]
	if a == nil {
		a = &account{owners: map[string]ledger.Owner{}, costs: map[cell]money.Amount{}, booked: map[cell]money.Amount{},
			begin: c.Begin, end: c.End, template: state.ReconciledLine{Currency: c.Currency}}
		m.of[k] = a
	}
	owner := ownerKey(&c.Owner)
	a.owners[owner] = c.Owner
	at := cell{owner: owner, use: c.Use}
	if ledger.Reconciles(c.Rule) {
		at.category, at.rule = c.Category, c.Rule
		a.booked[at] = a.booked[at].Add(c.Amount)
		return nil
	}
	t := &a.template
	t.Provider, t.Region, t.SKU = cmp.Or(t.Provider, c.Provider), cmp.Or(t.Region, c.Region), cmp.Or(t.SKU, c.SKU)
	a.costs[at] = a.costs[at].Add(c.Amount)
	if c.Begin.Before(a.begin) {
		a.begin = c.Begin
	}
	if c.End.After(a.end) {
		a.end = c.End
	}
	own, err := machineOf(c)
	if err == nil {
		m.Bills.Own(own)
	}
	return err
}

// machineOf returns a charge as the comparison with the bill reads it.
func machineOf(c *charge.Charge) (own reconcile.Machine, err error) {
	own = reconcile.Machine{Instance: c.Owner.Instance, Job: c.Owner.Job, Attempt: c.Owner.Attempt, Type: c.SKU,
		Region: c.Region, Currency: c.Currency, Begin: c.Begin, End: c.End}
	hours := c.Hours()
	switch cost := decimal.OfAmount(c.Amount); {
	case c.Category != ledger.Compute:
		own.OtherCost = cost
	case hours != "":
		own.Cost, own.Plain = cost, cost
	default:
		own.Cost = cost
	}
	if hours != "" {
		own.Hours, err = decimal.Parse(hours)
	}
	return own, err
}

// ownerKey identifies an owner.
func ownerKey(o *ledger.Owner) string {
	return strings.Join([]string{o.Team, o.Project, o.Environment, o.ModelVersion, o.Group, o.Part, o.Job, o.Attempt,
		o.Task, o.Instance, ledger.TagText(o.Tags)}, "\x00")
}

// Wait is a machine whose difference cannot be booked yet.
type Wait struct {
	Instance string `json:"instance"`
	Why      string `json:"why"`
}

// Lines returns the postings that are missing, in a fixed order: for each machine and part of its gap, what the bill
// asks for beyond the corrections that are booked already. A machine that a revised bill no longer has loses its
// corrections. One that an unread row of the bill may be of keeps those it has, and waits. The amounts end at the
// ledger's last digit, 1e-12.
func (m *Month) Lines(gaps []reconcile.Gap) (lines []state.ReconciledLine, waits []Wait) {
	byMachine := map[machine]*reconcile.Gap{}
	for i := range gaps {
		byMachine[machine{gaps[i].Instance, gaps[i].Currency}] = &gaps[i]
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.of), func(a, b machine) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.currency, b.currency))
	}) {
		a, g := m.of[k], byMachine[k]
		why, named := m.Bills.Waits(k.instance)
		switch open := len(a.booked) > 0 || g != nil && g.Gap.Sign() != 0; {
		case why != "" && (open || named):
			waits = append(waits, Wait{k.instance, why})
			continue
		case g == nil && !open:
			continue
		}
		wanted := map[cell]money.Amount{}
		if g != nil && g.Gap.Sign() != 0 {
			var why string
			if wanted, why = a.wanted(g); why != "" {
				waits = append(waits, Wait{k.instance, why})
				continue
			}
		}
		lines = append(lines, a.missing(wanted)...)
	}
	return lines, waits
}

// wanted spreads the gap over the owners and uses of the machine, in proportion to their cost. Why says what stands
// against it.
func (a *account) wanted(g *reconcile.Gap) (wanted map[cell]money.Amount, why string) {
	cells, weights := a.payers()
	switch {
	case len(cells) == 0:
		return nil, "it still runs, and no checkpoint has settled its time: book it again later"
	case a.template.Provider == "":
		return nil, "the ledger does not know its provider"
	}
	parts, ok := partsOf(g)
	if !ok {
		return nil, "the difference is too large for the ledger"
	}
	wanted = map[cell]money.Amount{}
	for part, amount := range parts {
		shares, ok := ledger.Allocate(amount, weights)
		if !ok { // it cost nothing so far: the first pays
			shares = make([]money.Amount, len(cells))
			shares[0] = amount
		}
		for i, c := range cells {
			c.category, c.rule = categoryOf(part), ledger.ReconciledRule(string(part))
			wanted[c] = wanted[c].Add(shares[i])
		}
	}
	return wanted, ""
}

// payers returns the owners and uses that share a difference, with their weights. Time whose use is still open is not
// among them: the ledger moves it later.
func (a *account) payers() (cells []cell, weights []*big.Int) {
	for _, c := range slices.SortedFunc(maps.Keys(a.costs), compare) {
		if c.use == ledger.Open {
			continue
		}
		w := a.costs[c].Big()
		if w.Sign() < 0 {
			w = new(big.Int)
		}
		cells, weights = append(cells, c), append(weights, w)
	}
	return cells, weights
}

func compare(a, b cell) int {
	return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.use, b.use), cmp.Compare(a.category, b.category),
		cmp.Compare(a.rule, b.rule))
}

// partsOf returns the parts of a gap in the ledger's digits. Their sum is the gap's: what the cut leaves over goes to
// rounding.
func partsOf(g *reconcile.Gap) (parts map[reconcile.Part]money.Amount, ok bool) {
	rest, ok := g.Gap.Amount()
	if !ok {
		return nil, false
	}
	parts = map[reconcile.Part]money.Amount{}
	for part, d := range g.Parts {
		amount, ok := d.Amount()
		if !ok {
			return nil, false
		}
		parts[part], rest = amount, rest.Sub(amount)
	}
	if !rest.IsZero() {
		parts[reconcile.Rounding] = parts[reconcile.Rounding].Add(rest)
	}
	return parts, true
}

// categoryOf returns the category of cost that a part is booked under.
func categoryOf(part reconcile.Part) ledger.Category {
	if part == reconcile.Tax || part == reconcile.Other {
		return ledger.Overhead
	}
	return ledger.Compute
}

// missing returns the lines that lead from the booked corrections to the wanted ones.
func (a *account) missing(wanted map[cell]money.Amount) (lines []state.ReconciledLine) {
	all := maps.Clone(wanted)
	for c, amount := range a.booked {
		all[c] = all[c].Sub(amount)
	}
	for _, c := range slices.SortedFunc(maps.Keys(all), compare) {
		if all[c].IsZero() {
			continue
		}
		l := a.template
		l.Owner, l.Rule, l.Category, l.Use, l.Amount = a.owners[c.owner], c.rule, c.category, c.use, all[c]
		l.From, l.To = a.begin, a.end
		lines = append(lines, l)
	}
	return lines
}
