// Package incident finds what goes wrong with the spending of a fleet: rows of the ledger in, alerts out, each with
// since when, what is at stake, and which job, machine or price it is about.
//
// Find replays the rows in slots of five minutes. A rule sees the slots up to now and what the same team did before,
// never what comes after, so an alert of the past is one that would have been sent then.
package incident

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Slot is the time from one look to the next.
const Slot = 5 * time.Minute

// Kind is what goes wrong.
type Kind string

// The kinds.
const (
	IdleMachine   Kind = "idle machine"           // a machine has no task and nobody releases it
	Interruptions Kind = "interruptions"          // attempts begin again and again
	RunawayTrials Kind = "runaway trials"         // a group begins more jobs than any before
	PriceJump     Kind = "price jump"             // the same machine, bought in the same way, costs more
	FallBack      Kind = "fall-back to on-demand" // jobs move from spot to on-demand
	TransferStorm Kind = "transfer storm"         // transfer or storage far above its usual
	OrphanVolume  Kind = "orphan volume"          // a volume whose machine is gone
	OtherMachine  Kind = "other machine"          // a recurring job runs on a dearer machine than before
	CostCreep     Kind = "cost creep"             // a recurring job costs more from run to run
	Stall         Kind = "stalled job"            // the accelerators wait, and are paid for
	Unpriced      Kind = "price data missing"     // machines run at a price that nobody knows
	LongRun       Kind = "long run"               // a recurring job runs far longer than before
	Spend         Kind = "spend"                  // a team spends far more than ever, and no other rule says why
)

// Row is what something cost over a span of time.
type Row struct {
	Begin, End time.Time
	Amount     money.Amount
	Currency   money.Currency
	Category   ledger.Category
	Use        ledger.Use   // Idle: the machine had no task
	Price      ledger.Price // of an hour; of machine time only
	Machine    bool         // it is machine time

	Team, Project, Group, Job, Attempt, Instance string
	// Series is the name that the runs of a recurring job share; "": the job does not recur.
	Series string

	Provider, Region, SKU, Capacity string

	// Busy is the share of time that accelerators worked, where BusyKnown.
	Busy      float64
	BusyKnown bool
	// Planned says that somebody approved this spending, or marked it as planned: it is compared with nothing.
	Planned bool
}

// Alert is an incident.
type Alert struct {
	Kind     Kind
	Team     string
	Project  string
	About    string // the job, machine, group, volume or SKU
	Since    time.Time
	Found    time.Time // when the rule could first say so
	Until    time.Time // when it ended; zero: it goes on
	AtFound  money.Amount
	AtStake  money.Amount // what it has cost beyond the usual, an estimate; up to Until
	Currency money.Currency
	Why      string
	Jobs     []string // at most five
}

// Find returns the incidents of the rows, in the order in which they were found. Rows may come in any order. Currencies
// do not mix: each is a fleet of its own.
func Find(rows []Row) (alerts []Alert) {
	byCurrency := map[money.Currency][]*Row{}
	for i := range rows {
		if r := &rows[i]; !r.End.Before(r.Begin) {
			byCurrency[r.Currency] = append(byCurrency[r.Currency], r)
		}
	}
	for currency, list := range byCurrency {
		w := newWatch(currency)
		w.replay(list)
		alerts = append(alerts, w.alerts()...)
	}
	slices.SortFunc(alerts, func(a, b Alert) int {
		return cmp.Or(a.Found.Compare(b.Found), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Team, b.Team),
			cmp.Compare(a.About, b.About), cmp.Compare(a.Currency, b.Currency))
	})
	return alerts
}

// piece is the part of a row in one slot.
type piece struct {
	*Row
	cost  float64
	hours float64 // of the slot that the row covers
}

// replay goes through the slots.
func (w *watch) replay(rows []*Row) {
	slices.SortStableFunc(rows, func(a, b *Row) int { return a.Begin.Compare(b.Begin) })
	if len(rows) == 0 {
		return
	}
	w.began = rows[0].Begin
	var open []*Row
	for at, next := rows[0].Begin.Truncate(Slot), 0; next < len(rows) || len(open) > 0; at = at.Add(Slot) {
		if len(open) == 0 && rows[next].Begin.Sub(at) > forget {
			at = rows[next].Begin.Truncate(Slot) // nothing for so long that nothing is left to compare with
		}
		end := at.Add(Slot)
		for ; next < len(rows) && rows[next].Begin.Before(end); next++ {
			open = append(open, rows[next])
		}
		var list []piece
		left := open[:0]
		for _, r := range open {
			list = append(list, r.within(at, end))
			if r.End.After(end) {
				left = append(left, r)
			}
		}
		open = left
		w.now = end
		w.slot(list)
	}
}

// within is the part of a row between two times. A row without a length is where it begins.
func (r *Row) within(from, until time.Time) piece {
	whole := r.End.Sub(r.Begin)
	if whole <= 0 {
		return piece{Row: r, cost: r.Amount.Float()}
	}
	if r.Begin.After(from) {
		from = r.Begin
	}
	if r.End.Before(until) {
		until = r.End
	}
	part := until.Sub(from)
	return piece{Row: r, cost: r.Amount.Float() * part.Seconds() / whole.Seconds(), hours: part.Hours()}
}
