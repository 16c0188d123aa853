package state

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// sumOf adds up an amount over the tasks.
func (a *Attempt) sumOf(of func(*Task) money.Amount) (sum money.Amount) {
	for _, t := range a.tasks {
		sum = sum.Add(of(t))
	}
	return sum
}

// Posted returns the amount posted for all its machines.
func (a *Attempt) Posted() money.Amount { return a.sumOf((*Task).Posted) }

// Rules returns the amount from price rules of its machines.
func (a *Attempt) Rules() money.Amount { return a.sumOf((*Task).Rules) }

// Extras returns Reads and the tax, credits and commitments that bills add to its machines: the costs that are not part
// of a machine's price. Rules includes them.
func (a *Attempt) Extras() money.Amount {
	return a.sumOf(func(k *Task) money.Amount { return k.r.Extras })
}

// Cost returns the cost of all its machines up to t.
func (a *Attempt) Cost(t time.Time) money.Amount {
	return a.sumOf(func(k *Task) money.Amount { return k.Cost(t) })
}

// Uses returns what its cost was for.
func (a *Attempt) Uses() map[ledger.Use]money.Amount {
	if len(a.tasks) == 1 {
		return a.tasks[0].r.Uses
	}
	uses := map[ledger.Use]money.Amount{}
	for _, t := range a.tasks {
		for use, v := range t.r.Uses {
			uses[use] = uses[use].Add(v)
		}
	}
	return uses
}

// Bill returns the newest bills of its machines by rule, or nil if no bill has come.
func (a *Attempt) Bill() map[string]money.Amount {
	if len(a.tasks) == 1 {
		return a.tasks[0].r.Bill
	}
	var bill map[string]money.Amount
	for _, t := range a.tasks {
		for rule, v := range t.r.Bill {
			if bill == nil {
				bill = map[string]money.Amount{}
			}
			bill[rule] = bill[rule].Add(v)
		}
	}
	return bill
}

// Billed reports whether all its machines have a bill.
func (a *Attempt) Billed() bool {
	return !slices.ContainsFunc(a.tasks, func(t *Task) bool { return t.r.Bill == nil })
}

// LostTime returns the time lost on the machine that lost the most.
func (a *Attempt) LostTime() (d time.Duration) {
	for _, t := range a.tasks {
		d = max(d, t.r.LostTime)
	}
	return d
}

// Rate returns the hourly price of all its machines, or of its portion of one: the current price, or that of the
// last hour.
func (a *Attempt) Rate() (rate money.Rate) {
	for _, t := range a.tasks {
		if t.r.Until.IsZero() || len(a.tasks) == 1 || !a.Live() {
			rate = quantity.Add(rate, t.Rate())
		}
	}
	return rate
}

// LaunchRate returns the hourly price of its machines when they were granted.
func (a *Attempt) LaunchRate() (rate money.Rate) {
	for _, t := range a.tasks {
		rate = quantity.Add(rate, t.r.Rate)
	}
	return rate
}

// Priced reports whether Spent is what the job costs for good: it is over, and all its machines are billed.
func (j *Job) Priced() bool { return j.State().Over() && !j.Costs() }
