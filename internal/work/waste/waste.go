// Package waste finds spending that buys nothing, and what to do about it: rows of the ledger and the state of the
// fleet in, findings with dollars, evidence and one action out.
//
// Each row of the ledger belongs to at most one finding, so costs and savings of findings add up.
package waste

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"time"

	"scrimp/internal/lib/money"
)

// Month is the month of "a month": 30 days.
const Month = 30 * 24 * time.Hour

// The thresholds. docs/waste.md and the help of scrimp waste state them.
const (
	// LeastSpan is how long costs of jobs must have been seen before they are scaled to a month.
	LeastSpan = 24 * time.Hour
	// LeastLife is the same for what goes on until somebody ends it: machines, volumes, reservations and schedules.
	LeastLife = time.Hour
	// IdleLeast is the least machine time without a task of a team.
	IdleLeast = time.Hour
	// IdleShare is the least share of a team's machine time without a task, in per cent.
	IdleShare = 10
	// SilentFor is how long an agent says nothing before its machine is a finding.
	SilentFor = 10 * time.Minute
	// RunsLeast is the fewest measured runs of a recurring job.
	RunsLeast = 3
	// TimeLeast is the least machine time of those runs.
	TimeLeast = time.Hour
	// UsedBelow is the used share of GPUs, processors or memory below which a machine is too large.
	UsedBelow = 0.5
	// UseOf is the highest expected used share of a smaller machine's GPUs and processors.
	UseOf = 0.8
	// MemoryRoom is the memory of a smaller machine per byte of the measured peak.
	MemoryRoom = 1.25
	// NoUse is the share of a GPU's time and of its memory below which a job does not need it.
	NoUse = 0.01
	// UnusedLeast is the unused share of a reservation, in per cent, below which it is no finding.
	UnusedLeast = 20
	// UnusedMost is the unused share from which on a reservation is too large, in per cent.
	UnusedMost = 50
	// FailedRuns is how many runs of a schedule must fail in a row.
	FailedRuns = 3
)

// Kind is the kind of a finding.
type Kind string

// The kinds, in the order in which they claim rows of the ledger.
const (
	UnusedReservation Kind = "unused reservation"
	OrphanVolume      Kind = "orphan volume"
	UnknownMachine    Kind = "unknown machine" // no job of this installation requested it
	SilentMachine     Kind = "silent machine"
	UnusedMachine     Kind = "unused machine"
	IdleTime          Kind = "idle time" // of machines that are gone
	FailingSchedule   Kind = "failing schedule"
	Oversized         Kind = "oversized job"
	Untagged          Kind = "untagged"
	BillLine          Kind = "bill line" // without a partner in the ledger
)

// Action is what to do about a finding.
type Action string

// The actions.
const (
	Keep     Action = "keep"
	Shrink   Action = "shrink"
	Schedule Action = "schedule"
	Stop     Action = "stop"
	Delete   Action = "delete"
)

// Row is a cost of the ledger over a span of time.
type Row struct {
	Begin, End time.Time
	Amount     money.Amount
	Currency   money.Currency
	// Time is machine time; 0: the row is no machine time.
	Time time.Duration
	// Idle is machine time without a task, Storage the cost of a volume, Reserved the unused time of a reservation.
	// Part is a part of a machine that several tasks shared.
	Idle, Storage, Reserved, Part bool
	// Due is a cost that a minimum charge makes due in any case.
	Due bool

	Team, Project, User, Group, Job, Instance string
	// Series is the name that the runs of a recurring job share; "": the job does not recur.
	Series                          string
	Provider, Region, SKU, Capacity string
}

// Leftover is a machine without a task, or a volume without a machine, that the rules for anomalies have found.
type Leftover struct {
	Instance     string
	Since, Until time.Time // zero Until: it goes on
}

// Machine is a rented machine, now.
type Machine struct {
	Instance, Job string
	Idle          bool // it has no task and may be terminated
	Unknown       bool // no job of this installation requested it
	Undecided     bool // it is of an earlier incarnation, and nobody has decided about it
	// Silent is when its agent was last heard, or when its engine stopped listing it; zero: neither.
	Silent  time.Time
	Missing bool // its engine no longer lists it
	// Keep is when a machine without a task is terminated; zero: unknown. Rate is its present price of an hour.
	Keep time.Time
	Rate money.Rate
}

// Reservation is capacity that is paid whether it is used or not.
type Reservation struct {
	Offer string
	Paid  money.Amount // within the span
	Until time.Time
	// Rate is what an hour of one machine costs, and OnDemand what it costs on demand; 0: unknown.
	Rate, OnDemand money.Rate
}

// Recurring is a schedule.
type Recurring struct {
	Name   string
	Open   bool
	Failed int             // runs in a row up to the newest
	Groups map[string]bool // the groups of its runs
	Bad    map[string]bool // the groups of the failed runs in a row
	Why    string          // of the newest failure
	// Pipeline is the identity of what it runs; other schedules may run the same. "": unknown.
	Pipeline string
}

// Group is what a group of jobs is a run of.
type Group struct {
	Schedule string // "": no schedule began it
	Pipeline string // identity of the pipeline; "": unknown
}

// Input is what is known.
type Input struct {
	Since, Until time.Time
	Began        time.Time // first moment of the ledger; zero: the ledger is empty
	Team         string    // findings of this team alone; "": all
	Rows         []Row     // within the span
	Before       []Row     // earlier rows, which say how long something has been going on
	// Paid is until when each machine with a minimum charge is paid for in any case.
	Paid         map[string]time.Time
	IdleMachines []Leftover
	Volumes      []Leftover
	Machines     []Machine
	Reservations []Reservation
	Schedules    []Recurring
	Runs         []Run
	Offers       []Offer
	HasTeams     bool // the installation has teams, so that a cost without one is an omission
}

// Finding is one thing that costs money for nothing.
type Finding struct {
	ID       string
	Kind     Kind
	Team     string
	About    string
	Currency money.Currency
	Cost     money.Amount  // within the span, of all that the finding concerns
	Waste    *money.Amount // the part of Cost that bought nothing; nil: unknown
	Monthly  *money.Amount // Cost at its pace since it was first seen; nil: unknown, or it does not recur
	Saving   *money.Amount // what the action saves in the coming month; nil: unknown
	Evidence string
	Action   Action
	Command  string // what does it
	// Effect is what scrimp waste apply does; "": it can do nothing.
	Effect string
	Jobs   []string // at most five
	// Begins and Ends bound the time in which a saving that comes once accrues; zero: it comes every month.
	Begins, Ends time.Time
	Pipeline     string // identity of what a schedule runs; "": unknown
	saved        *money.Amount
	first        time.Time // when it was first seen, within the span
}

// least returns how long a finding must have been seen before its pace means something; false: it does not recur.
func (f *Finding) least() (time.Duration, bool) {
	switch f.Kind {
	case UnusedMachine, BillLine:
		return 0, false
	case OrphanVolume:
		return LeastLife, f.Action != Keep // it is gone
	case FailingSchedule, UnknownMachine, SilentMachine, UnusedReservation:
		return LeastLife, true
	case IdleTime, Oversized, Untagged:
	}
	return LeastSpan, true
}

// Total is the sum of the findings of one currency.
type Total struct {
	Currency money.Currency
	Findings int
	Cost     money.Amount
	Waste    *money.Amount // of the findings where it is known; nil: of none
	Monthly  *money.Amount // of the findings where it is known; nil: of none
	Saving   *money.Amount // of the findings whose saving is known; nil: of none
	Unknown  int           // findings whose saving is unknown
}

// Report is what was found.
type Report struct {
	Since, Until time.Time // the span of the ledger that was read
	Short        bool      // the ledger begins after the requested start
	Measured     int       // runs with telemetry
	Findings     []Finding // the largest saving first
	Totals       []Total
}

// ID returns the stable name of a finding.
func ID(k Kind, team, about string, c money.Currency) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", k, team, about, c)
	return fmt.Sprintf("w-%010x", h.Sum64()&0xff_ffff_ffff)
}

// Scaled returns a · to / from, cut off at 1e-12: exact arithmetic on integers. It is false where the result has no
// meaning.
func Scaled(a money.Amount, to, from time.Duration) (money.Amount, bool) {
	if from <= 0 || to < 0 {
		return money.Amount{}, false
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(to)))
	return money.FromBig(n.Quo(n, big.NewInt(int64(from))))
}

// monthly returns an amount of a span as that of a month; nil: the span is too short to say.
func monthly(a money.Amount, span, least time.Duration) *money.Amount {
	if span < least {
		return nil
	}
	if m, ok := Scaled(a, Month, span); ok {
		return &m
	}
	return nil
}
