package state

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// sumOf adds up over the tasks.
func (a *Attempt) sumOf(of func(*Task) money.Amount) (sum money.Amount) {
	for _, t := range a.tasks {
		sum = sum.Add(of(t))
	}
	return sum
}

// Posted is what the ledger has of all its machines.
func (a *Attempt) Posted() money.Amount { return a.sumOf((*Task).Posted) }

// Rules are what the rules of its machines' prices came to.
func (a *Attempt) Rules() money.Amount { return a.sumOf((*Task).Rules) }

// Cost is what all its machines cost until t.
func (a *Attempt) Cost(t time.Time) money.Amount {
	return a.sumOf(func(k *Task) money.Amount { return k.Cost(t) })
}

// Uses are what its cost was for.
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

// Bill is what the newest bills of its machines say, by rule; nil: none has come.
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

// Billed reports whether all its machines are.
func (a *Attempt) Billed() bool {
	return !slices.ContainsFunc(a.tasks, func(t *Task) bool { return t.r.Bill == nil })
}

// LostTime is how much time was lost on the machine that lost most.
func (a *Attempt) LostTime() (d time.Duration) {
	for _, t := range a.tasks {
		d = max(d, t.r.LostTime)
	}
	return d
}

// Rate is the price of an hour of all its machines, or of its part of one: of now, or of its
// last hour; LaunchRate that when they were granted.
func (a *Attempt) Rate() (rate money.Rate) {
	for _, t := range a.tasks {
		if t.r.Until.IsZero() || len(a.tasks) == 1 || !a.Live() {
			rate = quantity.Add(rate, t.Rate())
		}
	}
	return rate
}

// LaunchRate is the price of an hour of its machines when they were granted.
func (a *Attempt) LaunchRate() (rate money.Rate) {
	for _, t := range a.tasks {
		rate = quantity.Add(rate, t.r.Rate)
	}
	return rate
}
