package state

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Instance is a rented machine with seats. Its cost accrues on it and is split over its seats. Its bill may arrive
// at any time.
type Instance struct {
	r      instanceRecord
	series *Series // prices of its offer; nil: the price never changes
	user   Sharer  // key of PartlyOf that lists it; zero: none
	team   Sharer
}

type instanceRecord struct {
	ID         string        `json:"id"`
	Allocation string        `json:"allocation"` // empty: scrimp did not request it
	Job        string        `json:"job,omitempty"`
	Phase      InstancePhase `json:"phase"`
	Machine    Machine       `json:"machine"`
	Rate       money.Rate    `json:"rate"`           // per hour, when granted
	From       time.Time     `json:"from"`           // start of billing
	Until      time.Time     `json:"until,omitzero"` // end of billing
	Cause      string        `json:"cause,omitempty"`
	Release    string        `json:"release,omitempty"` // why it is being terminated
	Seats      []Seat        `json:"seats,omitempty"`
	// Keeps are parts kept for jobs that leave other machines for it.
	Keeps []Keep `json:"keeps,omitempty"`
	// Spans are the times during which the same tasks had it, from when it first had several at once. Several is
	// set from then on: its bill is split.
	Spans     []span       `json:"spans,omitempty"`
	Several   bool         `json:"several,omitempty"`
	Posted    money.Amount `json:"posted,omitzero"`    // accrued at plain seconds, over all seats
	Agent     *Agent       `json:"agent,omitempty"`    // nil: none has registered
	Noticed   time.Time    `json:"noticed,omitzero"`   // when an agent on it announced an interruption
	Announced time.Time    `json:"announced,omitzero"` // interruption time that its provider announced
	Missing   time.Time    `json:"missing,omitzero"`   // time since which its provider's list lacks it
	// given up because it is missing; its actual end may still arrive
	Lost bool `json:"lost,omitempty"`
	// from an earlier incarnation, and nobody has adopted or released it
	Disowned bool `json:"disowned,omitempty"`
	// Paid is set if it ended once and was paid for, but still runs: scrimp terminates it and does not pay for it
	// again.
	Paid bool `json:"paid,omitempty"`
	// Bill is the newest bill, by rule, of a machine that scrimp did not request; nil: no bill yet. The bill of any
	// other machine is kept with its tasks.
	Bill map[string]money.Amount `json:"bill,omitempty"`
	// BillLines are the lines of that bill while the allocation of the instance is incomplete.
	BillLines []BillLine `json:"bill_lines,omitempty"`
	// Served lists the attempts that left it, in order, and Idles its spans without a task. An instance with idle
	// spans is kept forever, for its bill. Billed is set once a bill was split.
	Served []string `json:"served,omitempty"`
	Idles  []Idle   `json:"idles,omitempty"`
	Billed bool     `json:"billed,omitempty"`
}

// Agent is the agent of an instance, identified by the key it generated. It never changes.
type Agent struct {
	Key      string    `json:"key"` // Ed25519 public key, base64
	At       time.Time `json:"at"`  // time of registration
	Version  string    `json:"version,omitempty"`
	Isolated bool      `json:"isolated,omitempty"` // its programs run as another user
	Address  string    `json:"address,omitempty"`  // address that other machines reach it at
}

// Identity and state of an instance.
func (i *Instance) ID() string             { return i.r.ID }
func (i *Instance) Allocation() string     { return i.r.Allocation }
func (i *Instance) Phase() InstancePhase   { return i.r.Phase }
func (i *Instance) Machine() *Machine      { return &i.r.Machine }
func (i *Instance) LaunchRate() money.Rate { return i.r.Rate }
func (i *Instance) From() time.Time        { return i.r.From }
func (i *Instance) Until() time.Time       { return i.r.Until }
func (i *Instance) Cause() string          { return i.r.Cause }
func (i *Instance) Seats() []Seat          { return i.r.Seats }
func (i *Instance) Missing() time.Time     { return i.r.Missing }
func (i *Instance) Lost() bool             { return i.r.Lost }
func (i *Instance) Disowned() bool         { return i.r.Disowned }

// Job is the job of its first seat, or "" if it has none.
func (i *Instance) Job() string { return i.r.Job }

// Agent is the agent that registered from it, or nil.
func (i *Instance) Agent() *Agent { return i.r.Agent }

// Announced is the interruption time that its provider announced; zero: none.
func (i *Instance) Announced() time.Time { return i.r.Announced }

// Noticed is when an agent on it announced an interruption; zero: none has. User programs run on that machine and
// could forge the announcement, so it counts for that machine only.
func (i *Instance) Noticed() time.Time { return i.r.Noticed }

// Release is why it is being terminated, or "".
func (i *Instance) Release() string { return i.r.Release }

// Bill is its newest bill by rule; nil if no bill has come or a task has the machine.
func (i *Instance) Bill() map[string]money.Amount { return i.r.Bill }

// BillLines are the lines of that bill, if it came before a task got the machine.
func (i *Instance) BillLines() []BillLine { return i.r.BillLines }

// Posted is what its seats have been charged at plain seconds.
func (i *Instance) Posted() money.Amount { return i.r.Posted }

// Paid reports whether its end was booked although the provider still lists it.
func (i *Instance) Paid() bool { return i.r.Paid }

// Stray reports whether scrimp did not request it, or the provider lists it after its end was booked.
func (i *Instance) Stray() bool { return len(i.r.Seats) == 0 && !i.Shared() }

// Live reports whether it may still cost something.
func (i *Instance) Live() bool { return i.r.Phase != Gone && i.r.Phase != Missing }

// Cost returns what it has cost up to t at plain seconds. It is cumulative over the price segments, so the costs of
// any division of a span add up to the cost of the span.
func (i *Instance) Cost(t time.Time) money.Amount {
	if !i.r.Until.IsZero() && t.After(i.r.Until) {
		t = i.r.Until
	}
	var room [fewSegments]market.Segment
	return market.Cost(i.segments(room[:0]), t)
}

// costFrom returns the cost up to t for a task that took the machine at a time when it had cost before. A machine that
// had ended by then costs the task nothing.
func (i *Instance) costFrom(from time.Time, before money.Amount, t time.Time) money.Amount {
	if !i.r.Until.IsZero() && i.r.Until.Before(from) {
		return money.Amount{}
	}
	return i.Cost(t).Sub(before)
}

// PresentRate is the current price per hour.
func (i *Instance) PresentRate() money.Rate {
	if i.series != nil {
		if s := i.series.list; len(s) > 0 && !s[len(s)-1].From.Before(i.r.From) {
			return s[len(s)-1].Rate
		}
	}
	return i.r.Rate
}

// fewSegments is the room on the stack for prices of a machine: most have few.
const fewSegments = 4

// segments appends its prices since billing began to an empty list.
func (i *Instance) segments(list []market.Segment) []market.Segment {
	list = append(list, market.Segment{From: i.r.From, Rate: i.r.Rate})
	if i.series == nil {
		return list
	}
	return i.series.since(list)
}

// Series is the price history of a spot offer, as far back as any machine of the offer is billed. Instances share
// it, so a new price is stored once.
type Series struct{ list []market.Segment }

// since appends the prices that follow the only segment of the list.
func (s *Series) since(list []market.Segment) []market.Segment {
	first := list[0].From
	for _, seg := range s.list {
		switch last := &list[len(list)-1]; {
		case seg.From.Before(first), seg.Rate == last.Rate && !seg.From.Equal(last.From):
		case seg.From.Equal(last.From):
			last.Rate = seg.Rate
		default:
			list = append(list, seg)
		}
	}
	return list
}

// add records a price from the given time on.
func (s *Series) add(at time.Time, rate money.Rate) {
	n := len(s.list)
	switch {
	case n > 0 && at.Before(s.list[n-1].From):
	case n > 0 && at.Equal(s.list[n-1].From):
		s.list[n-1].Rate = rate
	case n > 0 && s.list[n-1].Rate == rate:
	default:
		s.list = append(s.list, market.Segment{From: at, Rate: rate})
	}
}

// forget drops prices before the given time, except the one in force then.
func (s *Series) forget(before time.Time) {
	n := 0
	for n+1 < len(s.list) && !s.list[n+1].From.After(before) {
		n++
	}
	s.list = append(s.list[:0:0], s.list[n:]...)
}
