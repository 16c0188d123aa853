package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/money"
)

// admission lets jobs in under the limits and tags in force. While it is open nobody
// else lets jobs in, so that two submissions never take the same money. It is
// closed before what it let in is written, so that submissions share transactions:
// until the core has taken them, or refused, the holds stand in s.pending.
type admission struct {
	s     *Server
	rules budget.Rules
	books *budget.Accounts // folded; nil: not summed yet
	let   []string         // jobs whose holds stand
	open  bool
}

// openAdmission waits until nobody else lets jobs in. The caller closes it.
func (s *Server) openAdmission(ctx context.Context) (*admission, *refusal) {
	s.ledgers.Lock()
	rules, err := s.readRules(ctx)
	if err != nil {
		s.ledgers.Unlock()
		return nil, &refusal{status: http.StatusServiceUnavailable, title: "the budgets were not read",
			fix: "submit it again with the same key", err: err}
	}
	d := &admission{s: s, rules: rules, open: true}
	if len(rules.Limits) == 0 { // there is nothing to take twice
		d.close()
	}
	return d, nil
}

func (d *admission) close() {
	if d.open {
		d.open = false
		d.s.ledgers.Unlock()
	}
}

// hold sets aside what the job can take until the core has it.
func (d *admission) hold(j budget.Job) {
	d.books.Take(j)
	if d.s.pending == nil {
		d.s.pending = map[string]admitted{}
	}
	d.s.pending[j.ID] = admitted{job: j}
	d.let = append(d.let, j.ID)
}

// end closes it and gives up its holds: the core has the jobs, or will never
// have them. Only where whoever sent them has left may either be so.
func (d *admission) end(ctx context.Context) {
	d.close()
	if len(d.let) == 0 {
		return
	}
	d.s.ledgers.Lock()
	defer d.s.ledgers.Unlock()
	for _, id := range d.let {
		a, ok := d.s.pending[id]
		if ok && ctx.Err() != nil {
			a.till = time.Now().Add(unsure)
			d.s.pending[id] = a
			continue
		}
		delete(d.s.pending, id)
	}
}

// admit says why a job is not let in, or counts it. A job that is let in under a
// limit of dollars, or above one that asks for approval, without a budget of its
// own gets one. One that waits for approval takes nothing: asking says what for.
func (d *admission) admit(ctx context.Context, c identity.Caller, id string,
	t *core.Terms) (asking *budget.PendingApproval, no *refusal) {
	if err := d.rules.Tags.Check(t.Owner.Tags); err != nil {
		return nil, &refusal{status: http.StatusUnprocessableEntity, field: "tags", title: "a tag is required here",
			fix: "write tags in the job file; scrimp budgets lists what is required", err: err}
	}
	limits := d.rules.Limits
	if len(limits) == 0 {
		return nil, nil
	}
	if !t.HasBudget && budget.Capped(limits, t.Owner, c.User) {
		if most, known := budget.Bound(t.Work, d.s.highest(t)); known {
			t.Budget, t.HasBudget = most, true
		}
	}
	j := core.Weighed(id, c.User, t)
	if no := d.weigh(ctx, c, j, t); no != nil {
		return nil, no
	}
	if a, asks := budget.Approval(limits, j, d.s.control.Now(), d.s.control.Clock().Stretch); asks {
		return &a, nil
	}
	d.hold(j)
	return nil, nil
}

// weigh says which limit does not let a job in.
func (d *admission) weigh(ctx context.Context, c identity.Caller, j budget.Job, t *core.Terms) *refusal {
	if len(d.rules.Limits) == 0 {
		return nil
	}
	if d.books == nil {
		b, _, _, err := d.s.books(ctx)
		if err != nil {
			return &refusal{status: http.StatusServiceUnavailable, title: "the ledger was not read", fix: "ask again", err: err}
		}
		b = b.Folded()
		d.books = &b
	}
	no := d.books.Admit(j)
	if no == nil {
		return nil
	}
	if t.HasBudget && t.DeadlineFirst && no.Why == budget.NoBudget {
		no.Fix = "write first: budget in the job file, so that its budget holds"
	}
	return overLimit(c, no)
}

// overLimit is how a limit refuses. What others have spent and which jobs they have
// is told to those alone who see the limit.
func overLimit(c identity.Caller, no *budget.Refusal) *refusal {
	r := &refusal{status: http.StatusPaymentRequired, field: "budget", title: "a budget does not let the job in",
		fix: no.Fix, err: no, limit: no}
	switch no.Why {
	case budget.TooMany, budget.GPUHours, budget.GPUOpen, budget.NoGPUBudget, budget.TooLarge:
		r.status = http.StatusForbidden
	case budget.NoBudget, budget.OtherOpen, budget.Dollars:
	}
	if !shows(c, no.Limit.Scope) {
		r.err, r.limit = fmt.Errorf("budget %s has no room for it; what is used of it is shown to those who see all teams",
			no.Limit.Name()), nil
		switch no.Why {
		case budget.OtherOpen, budget.GPUOpen: // the fix names a job
			r.fix = "wait until jobs of other teams are over, or ask an admin for scrimp budgets set"
		case budget.NoBudget, budget.NoGPUBudget, budget.TooLarge: // what the job asks for is wrong, whatever others do
			r.err = no
		case budget.Dollars, budget.GPUHours, budget.TooMany:
		}
	}
	return r
}

// highest is the highest price at which a machine may be rented for the job, as
// far as is known now.
func (s *Server) highest(t *core.Terms) money.Rate {
	if t.Need.MaxRate > 0 {
		return t.Need.MaxRate
	}
	most := money.Rate(0)
	s.control.ReadUncommitted(func(m *core.Machine) {
		for _, l := range m.Sale() {
			if l.Quote.Priced {
				most = max(most, l.Quote.Rate)
			}
		}
	})
	return most
}
