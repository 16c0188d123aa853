// Package incident detects problems in the spending of a fleet. It reads rows of the ledger and returns alerts;
// each alert gives its start, the amount at stake, and the job, machine or price that it concerns.
//
// Find replays the rows in slots of five minutes. A rule sees the slots up to now and the team's own past, never
// the future, so an alert of the past is one that Find would have raised at that time.
package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Slot is the length of one replay step.
const Slot = 5 * time.Minute

// Kind is the type of an incident.
type Kind string

// The kinds.
const (
	IdleMachine   Kind = "idle machine"           // a machine has no task and nobody releases it
	Interruptions Kind = "interruptions"          // attempts restart again and again
	RunawayTrials Kind = "runaway trials"         // a group starts more jobs than any group before
	PriceJump     Kind = "price jump"             // the same machine, bought in the same way, costs more
	FallBack      Kind = "fall-back to on-demand" // jobs move from spot to on-demand
	TransferStorm Kind = "transfer storm"         // transfer or storage far above its usual
	OrphanVolume  Kind = "orphan volume"          // a volume outlives its machine
	OtherMachine  Kind = "other machine"          // a recurring job runs on a dearer machine than before
	CostCreep     Kind = "cost creep"             // a recurring job costs more from run to run
	Stall         Kind = "stalled job"            // accelerators wait while they are paid for
	Unpriced      Kind = "price data missing"     // machines run at an unknown price
	LongRun       Kind = "long run"               // a recurring job runs far longer than before
	Spend         Kind = "spend"                  // a team spends far more than ever, and no other rule explains it
)

// Kinds lists the kinds.
var Kinds = []Kind{IdleMachine, Interruptions, RunawayTrials, PriceJump, FallBack, TransferStorm, OrphanVolume,
	OtherMachine, LongRun, CostCreep, Stall, Unpriced, Spend}

// KindOf returns the kind that a text names. The text may have hyphens instead of spaces.
func KindOf(text string) (Kind, bool) {
	plain := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "-", " ") }
	for _, k := range Kinds {
		if strings.EqualFold(plain(string(k)), plain(text)) {
			return k, true
		}
	}
	return "", false
}

// Row is the cost of one thing over a span of time.
type Row struct {
	Begin, End time.Time
	Amount     money.Amount
	Currency   money.Currency
	Category   ledger.Category
	Use        ledger.Use   // Idle: the machine had no task
	Price      ledger.Price // per hour; of machine time only
	Machine    bool         // the row is machine time

	Team, Project, Group, Job, Attempt, Instance string
	// Series is the name that the runs of a recurring job share; empty if the job does not recur.
	Series string

	Provider, Region, SKU, Capacity string

	// Busy is the share of time in which accelerators worked; valid if BusyKnown.
	Busy      float64
	BusyKnown bool
	// Planned is set if somebody approved this spending or tagged it as planned. No rule compares it with anything.
	Planned bool
}

// Alert is an incident.
type Alert struct {
	Kind     Kind
	Team     string
	Project  string
	About    string // the job, machine, group, volume or SKU
	Since    time.Time
	Found    time.Time // when the rule could first report it
	Until    time.Time // when it ended; zero while it continues
	AtFound  money.Amount
	AtStake  money.Amount // the estimated cost beyond the usual, up to Until
	Currency money.Currency
	Why      string
	Jobs     []string // at most five
	Factor   float64  // of the threshold that it exceeded; 1 is the standard
	Planned  bool     // a plan covers it
}

// Find returns the incidents of the rows in the order of Found, by the standard thresholds. Rows may come in any
// order. Find treats each currency as a fleet of its own.
func Find(rows []Row) []Alert { return FindWith(rows, &Settings{}) }

// FindWith is Find with what people have said. An answer counts from its time on, a plan for all of its span.
func FindWith(rows []Row, s *Settings) (alerts []Alert) {
	byCurrency := map[money.Currency][]*Row{}
	for i := range rows {
		if r := &rows[i]; !r.End.Before(r.Begin) {
			byCurrency[r.Currency] = append(byCurrency[r.Currency], r)
		}
	}
	for currency, list := range byCurrency {
		w := newWatch(currency)
		w.turns, w.plans, w.until = s.turns(), s.Plans, s.Until
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
	hours float64 // the part of the slot that the row covers
	// Planned is that of the row, or set by a plan.
	Planned bool
}

// replay runs the rules over every slot from the first row to the last, and on while an alert is open. A slot that is
// not over at until waits: its part of a slot would count as a whole one.
func (w *watch) replay(rows []*Row) {
	slices.SortStableFunc(rows, func(a, b *Row) int { return a.Begin.Compare(b.Begin) })
	if len(rows) == 0 {
		return
	}
	w.began = rows[0].Begin
	var open []*Row
	more := func() bool { return len(w.open) > 0 && !w.until.IsZero() }
	for at, next := rows[0].Begin.Truncate(Slot), 0; next < len(rows) || len(open) > 0 || more(); at = at.Add(Slot) {
		if len(open) == 0 && next < len(rows) && rows[next].Begin.Sub(at) > forget {
			// the gap is so long that the rules have no past left to compare with
			at = rows[next].Begin.Truncate(Slot)
		}
		end := at.Add(Slot)
		if !w.until.IsZero() && end.After(w.until) {
			return
		}
		for ; next < len(rows) && rows[next].Begin.Before(end); next++ {
			open = append(open, rows[next])
		}
		var list []piece
		left := open[:0]
		for _, r := range open {
			p := r.within(at, end)
			p.Planned = r.Planned || w.planned(r, at)
			list = append(list, p)
			if r.End.After(end) {
				left = append(left, r)
			}
		}
		open = left
		w.now = end
		w.slot(list)
	}
}

// within returns the part of a row between two times. A row without a length belongs to the slot of its Begin.
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
