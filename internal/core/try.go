package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

func (m *Machine) room() bool { return len(m.running) < m.cfg.MaxRunning }

// gone are the decisions that end a job which holds no machine.
var gone = map[plan.Reason]policy.Stop{plan.BudgetGone: policy.BudgetSpent, plan.OutOfMoney: policy.BudgetShort, plan.TimeGone: policy.WallClock, plan.HoursGone: policy.GPUHoursSpent}

// try decides about a job that holds no machine and launches what was taken.
func (m *Machine) try(out *Outcome, j *Job) {
	j.Wake = time.Time{} // every look says anew when the next one is due
	d, ok := m.decide(out, j)
	if !ok {
		m.queue.tried(j)
		return
	}
	j.Bound = ""
	if planted && d.Why == plan.Cheapest {
		d.Take = "" // never launches what is cheapest
	}
	if d.Probe != "" {
		m.queue.tried(j)
		m.look(out, j, d.Probe)
		return
	}
	if d.Take == "" {
		if why, ok := gone[d.Why]; ok {
			j.Detail = missing(d, j.Terms.Currency)
			m.finish(out, j, Stopped, string(why))
			return
		}
		j.Why = string(d.Why)
		m.queue.vain(j, d.Unschedulable, d.Retry)
		m.wakeAt(j, d.Again)
		m.wakeAt(j, d.Retry)
		m.overAt(j)
		m.rungAt(j)
		return
	}
	o := m.offers[d.Take]
	if o == nil { // a log that names an offer which its market never showed
		m.queue.tried(j)
		return
	}
	m.queue.leave(j)
	j.Epoch++
	a := &Attempt{
		ID: fmt.Sprintf("%s.%d", j.ID, j.Epoch), Job: j.ID, Epoch: j.Epoch, Phase: Asked, Offer: d.Take, Zone: o.Offer.Zone,
		Capacity: o.Offer.Capacity, Provider: o.Offer.Provider, Speed: o.Offer.Speed, GPUs: o.Offer.Accelerators, Asked: m.now, Currency: o.Offer.Currency,
		First: j.SavedStep, Step: j.SavedStep, Uses: map[ledger.Use]money.Amount{}, Region: o.Offer.Region,
	}
	a.Most = mostRate(j.Terms.Need.MaxRate, d.Rate)
	a.Variant, a.Rung = d.Variant, j.Terms.Need.RungOf(o.Offer, o.Quote.Rate, d.Variant)+1
	if d.Variant != "" {
		a.Speed = cmp.Or(max(a.Speed, 0), 1) * j.Terms.Need.Faster(d.Variant)
	}
	if j.Home != "" && j.Home != a.Region {
		a.Transfer = j.Terms.Transfer
	}
	j.Attempts = append(j.Attempts, a)
	j.State, j.Why, j.Detail = Running, string(d.Why), ""
	if j.Began.IsZero() {
		j.Began = m.now
	}
	m.attempts[a.ID] = a
	m.hold(j)
	m.pace(j, a)
	out.Actions = append(out.Actions, Launch{Job: j.ID, Attempt: a.ID, Offer: d.Take, MaxRate: a.Most})
}

func (m *Machine) hold(j *Job) {
	m.sums = nil
	m.classOf(j)
	i, found := slices.BinarySearchFunc(m.running, j.ID, func(a *Job, id string) int { return cmp.Compare(a.ID, id) })
	if !found {
		m.running = slices.Insert(m.running, i, j)
	}
}

// release takes j from those that hold a machine.
func (m *Machine) release(j *Job) {
	m.sums = nil
	i, found := slices.BinarySearchFunc(m.running, j.ID, func(a *Job, id string) int { return cmp.Compare(a.ID, id) })
	if found {
		m.running = slices.Delete(m.running, i, i+1)
		m.queue.changed()
	}
}
