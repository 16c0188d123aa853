package charge

import (
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Stream turns postings into charges, in ledger order. It keeps only open costs: the hours of running tasks that no
// checkpoint covers yet. So its memory does not grow with the ledger.
type Stream struct {
	span  Span
	emit  func(Charge)
	tasks map[taskKey]*task
	seen  int
}

type taskKey struct {
	team, project, job, attempt, task, instance string

	category ledger.Category
	currency money.Currency
}

func keyOf(c *Charge) taskKey {
	o := &c.Owner
	return taskKey{o.Team, o.Project, o.Job, o.Attempt, o.Task, o.Instance, c.Category, c.Currency}
}

// task holds the open costs of a task.
type task struct {
	number int // in order of first sight
	pieces []Charge
	// off is the open amount beyond the pieces: late prices and the rounding of cuts.
	off  money.Amount
	last Charge // template for a charge of off
}

// spare is the largest off that goes into the last piece, in 1e-12: below what any invoice shows.
const spare = 1000

// NewStream returns a stream of the charges within the span. It calls emit with each.
func NewStream(span Span, emit func(Charge)) *Stream {
	return &Stream{span: span, emit: emit, tasks: map[taskKey]*task{}}
}

// Add adds the next posting.
func (s *Stream) Add(p *ledger.Posting, of Source) {
	to, toUse, toCost := p.To.IsCost()
	from, fromUse, fromCost := p.From.IsCost()
	if !toCost && !fromCost {
		return // a move from owed to billed costs nothing
	}
	parts, timed := s.span.cut(p)
	for _, at := range parts {
		c := chargeOf(p, of, at, timed)
		if c.Category = from; fromCost && toCost && fromUse == ledger.Open && s.closes(&c, toUse) {
			continue
		}
		if fromCost {
			c.Category = from
			s.take(c, fromUse, toCost)
		}
		if toCost {
			c.Category = to
			s.give(c, toUse, fromCost)
		}
	}
}

func chargeOf(p *ledger.Posting, of Source, at part, timed bool) Charge {
	c := Charge{Begin: at.begin, End: at.end, Amount: at.amount, Currency: p.Currency, Phase: p.Phase, Rule: p.Rule,
		Provider: p.Provider, Region: p.Region, Zone: p.Zone, SKU: p.SKU, Owner: p.Owner, Source: of,
		Booked: p.At}
	if c.Provider == "" {
		c.Provider = creditor(p)
	}
	if timed && p.Unit == ledger.SecondUnit {
		c.Timed, c.Time = true, at.end.Sub(at.begin)
		c.Price, c.ListPrice = p.Price, p.ListPrice
	}
	return c
}

// give adds a cost of a use; moved is set if it comes from another use.
func (s *Stream) give(c Charge, use ledger.Use, moved bool) {
	c.Use = use
	switch {
	case use == ledger.Open && c.Timed && !moved:
		t := s.task(&c)
		t.pieces = append(t.pieces, c)
	case use == ledger.Open:
		t := s.task(&c)
		t.off, t.last = t.off.Add(c.Amount), c
		s.drop(&c, t)
	default:
		c.Corrects = !c.Timed && (moved || corrects(c.Rule))
		s.send(c)
	}
}

// take removes a cost from a use; moved is set if it goes to another use.
func (s *Stream) take(c Charge, use ledger.Use, moved bool) {
	c.Use = use
	if use != ledger.Open {
		c.Amount, c.Corrects = c.Amount.Neg(), true
		s.send(c)
		return
	}
	t := s.task(&c)
	if t.off = t.off.Sub(c.Amount); c.Timed {
		t.off = t.off.Add(t.remove(c.Begin, c.End))
	}
	if t.last.Begin.IsZero() || !moved {
		t.last = c
	}
	s.drop(&c, t)
}

// corrects reports whether a billing rule corrects time charged before.
func corrects(rule string) bool {
	return slices.Contains([]string{"priced_later", "settled_too_far", "reconciled"}, rule) || ledger.Reconciles(rule)
}

func (s *Stream) task(c *Charge) *task {
	k := keyOf(c)
	t := s.tasks[k]
	if t == nil {
		s.seen++
		t = &task{number: s.seen}
		s.tasks[k] = t
	}
	return t
}

// drop deletes a task without open costs.
func (s *Stream) drop(c *Charge, t *task) {
	if len(t.pieces) == 0 && t.off.IsZero() {
		delete(s.tasks, keyOf(c))
	}
}

// closes handles a posting without a period that moves all open costs of a task, as the end of a task does. It
// reports whether the posting is one. The pieces keep their periods.
func (s *Stream) closes(c *Charge, use ledger.Use) bool {
	t := s.tasks[keyOf(c)]
	if t == nil || c.Timed || len(t.pieces) == 0 {
		return false
	}
	open := t.off
	for i := range t.pieces {
		open = open.Add(t.pieces[i].Amount)
	}
	if open != c.Amount {
		return false
	}
	s.settle(t, use)
	delete(s.tasks, keyOf(c))
	return true
}

// settle emits the open costs of a task under the given use.
func (s *Stream) settle(t *task, use ledger.Use) {
	if n := len(t.pieces) - 1; n >= 0 && t.off.Cmp(money.Picos(spare)) < 0 && t.off.Cmp(money.Picos(-spare)) > 0 {
		t.pieces[n].Amount, t.off = t.pieces[n].Amount.Add(t.off), money.Amount{}
	}
	for _, c := range t.pieces {
		c.Use, c.Corrects = use, c.Amount.Sign() < 0
		s.send(c)
	}
	c := t.last
	c.Amount, c.Use, c.Corrects, c.Timed, c.Time = t.off, use, true, false, 0
	c.Price, c.ListPrice = ledger.Price{}, ledger.Price{}
	s.send(c)
}

// remove removes a span from the pieces and returns its cost, pro rata by time.
func (t *task) remove(begin, end time.Time) (removed money.Amount) {
	var left []Charge
	for i := range t.pieces {
		p := t.pieces[i]
		from, until := later(begin, p.Begin), earlier(end, p.End)
		if !from.Before(until) {
			left = append(left, p)
			continue
		}
		upTo := func(at time.Time) money.Amount { return share(p.Amount, at.Sub(p.Begin), p.End.Sub(p.Begin)) }
		removed = removed.Add(upTo(until).Sub(upTo(from)))
		if p.Begin.Before(from) {
			left = append(left, p.between(p.Begin, from, upTo(from)))
		}
		if until.Before(p.End) {
			left = append(left, p.between(until, p.End, p.Amount.Sub(upTo(until))))
		}
	}
	t.pieces = left
	return removed
}

func (c Charge) between(begin, end time.Time, amount money.Amount) Charge {
	c.Begin, c.End, c.Amount, c.Time = begin, end, amount, end.Sub(begin)
	return c
}

// End emits the open costs. The caller adds nothing after it.
func (s *Stream) End() {
	list := slices.SortedFunc(maps.Values(s.tasks), func(a, b *task) int { return a.number - b.number })
	for _, t := range list {
		s.settle(t, ledger.Open)
	}
	s.tasks = nil
}

// send emits a charge unless its amount is zero.
func (s *Stream) send(c Charge) {
	if !c.Amount.IsZero() {
		s.emit(c)
	}
}

// creditor returns the creditor of a posting without a provider; empty if there is none.
func creditor(p *ledger.Posting) string {
	for _, a := range []ledger.Account{p.From, p.To} {
		if name, ok := a.Creditor(); ok {
			return name
		}
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
