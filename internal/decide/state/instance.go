package state

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Instance is a rented machine with seats. Its cost accrues on it and is split over
// its seats; its bill arrives on it, at any time.
type Instance struct {
	r      instanceRecord
	series *Series // of its offer; nil: its price never changes
}

type instanceRecord struct {
	ID         string        `json:"id"`
	Allocation string        `json:"allocation"` // "": nobody of ours asked for it
	Job        string        `json:"job,omitempty"`
	Phase      InstancePhase `json:"phase"`
	Machine    Machine       `json:"machine"`
	Rate       money.Rate    `json:"rate"`           // an hour, when it was granted
	From       time.Time     `json:"from"`           // billed from
	Until      time.Time     `json:"until,omitzero"` // billed until
	Cause      string        `json:"cause,omitempty"`
	Release    string        `json:"release,omitempty"` // why it is being given back
	Seats      []Seat        `json:"seats,omitempty"`
	// Spans are the times in which the same tasks had it, since it has had several at once;
	// Several says that it had, and so that its bill is split.
	Spans     []span       `json:"spans,omitempty"`
	Several   bool         `json:"several,omitempty"`
	Posted    money.Amount `json:"posted,omitzero"`    // accrued at plain seconds, over all seats
	Agent     *Agent       `json:"agent,omitempty"`    // nil: none has registered
	Noticed   time.Time    `json:"noticed,omitzero"`   // an agent on it said that it will be interrupted
	Announced time.Time    `json:"announced,omitzero"` // its provider said that it will be, for then
	Missing   time.Time    `json:"missing,omitzero"`   // since then its provider's list lacks it
	Lost      bool         `json:"lost,omitempty"`     // given up because of that: its true end may come yet
	Disowned  bool         `json:"disowned,omitempty"` // of an earlier incarnation, and nobody has decided whose it is
	// Paid says that it ended once and was paid for, and runs all the same: it is given back
	// and not paid again.
	Paid bool `json:"paid,omitempty"`
	// Bill is the newest bill of a machine that nobody asked for, by rule; nil: none has
	// come. That of any other is its tasks'.
	Bill map[string]money.Amount `json:"bill,omitempty"`
	// BillLines are those of that bill, while the instance is of an allocation that is not whole.
	BillLines []BillLine `json:"bill_lines,omitempty"`
	// Served are the attempts that left it, in order, and Idles its spans without a task, where
	// it had one: it is kept for ever then, for its bill. Billed says that one was split.
	Served []string `json:"served,omitempty"`
	Idles  []Idle   `json:"idles,omitempty"`
	Billed bool     `json:"billed,omitempty"`
}

// Agent is the agent of an instance, known by the key that it made. It never changes.
type Agent struct {
	Key      string    `json:"key"` // Ed25519, public, in base64
	At       time.Time `json:"at"`  // when it registered
	Version  string    `json:"version,omitempty"`
	Isolated bool      `json:"isolated,omitempty"` // its programs run as another user
	Address  string    `json:"address,omitempty"`  // by which other machines reach it
}

// What an instance is, and where it stands.
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

// Job is that of its first seat; "": nobody has one.
func (i *Instance) Job() string { return i.r.Job }

// Agent is the one that registered from it; nil: none has.
func (i *Instance) Agent() *Agent { return i.r.Agent }

// Announced is for when its provider said that it will interrupt it; zero: it has not.
func (i *Instance) Announced() time.Time { return i.r.Announced }

// Noticed is when an agent there said that it will be interrupted; zero: none has. It is the
// word of a machine on which a user's program runs, and counts for that machine only.
func (i *Instance) Noticed() time.Time { return i.r.Noticed }

// Release is why it is being given back; "": it is not.
func (i *Instance) Release() string { return i.r.Release }

// Bill is what its newest bill says, by rule; nil: none has come, or it has a task.
func (i *Instance) Bill() map[string]money.Amount { return i.r.Bill }

// BillLines are the lines of that bill, where they are kept: it comes before its machine is given to a task.
func (i *Instance) BillLines() []BillLine { return i.r.BillLines }

// Posted is what its seats were charged so far at plain seconds.
func (i *Instance) Posted() money.Amount { return i.r.Posted }

// Paid reports whether its end was paid for, and it is shown all the same.
func (i *Instance) Paid() bool { return i.r.Paid }

// Stray reports whether nobody of ours asked for it, or it is shown after its end was paid for.
func (i *Instance) Stray() bool { return len(i.r.Seats) == 0 && !i.Shared() }

// Live reports whether it may still cost something.
func (i *Instance) Live() bool { return i.r.Phase != Gone && i.r.Phase != Missing }

// Cost returns what it has cost by t at plain seconds: the cumulative cost over its
// price segments, so that any cut of the span has the same sum.
func (i *Instance) Cost(t time.Time) money.Amount {
	if !i.r.Until.IsZero() && t.After(i.r.Until) {
		t = i.r.Until
	}
	return market.Cost(i.Segments(), t)
}

// Rate is the price of an hour now.
func (i *Instance) PresentRate() money.Rate {
	if i.series != nil {
		if s := i.series.list; len(s) > 0 && !s[len(s)-1].From.Before(i.r.From) {
			return s[len(s)-1].Rate
		}
	}
	return i.r.Rate
}

// Segments are its prices since it is billed.
func (i *Instance) Segments() []market.Segment {
	first := market.Segment{From: i.r.From, Rate: i.r.Rate}
	if i.series == nil {
		return []market.Segment{first}
	}
	return i.series.since(first)
}

// Series is how the price of an offer of spot moved, as far back as a machine of it is
// billed. Instances refer to it, so that a new price is kept once.
type Series struct{ list []market.Segment }

// since are the prices from the first one on.
func (s *Series) since(first market.Segment) []market.Segment {
	list := append(make([]market.Segment, 0, 4), first)
	for _, seg := range s.list {
		switch last := &list[len(list)-1]; {
		case seg.From.Before(first.From), seg.Rate == last.Rate && !seg.From.Equal(last.From):
		case seg.From.Equal(last.From):
			last.Rate = seg.Rate
		default:
			list = append(list, seg)
		}
	}
	return list
}

// add keeps a price from a time on.
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

// forget drops what was before the time, but for the price that held then.
func (s *Series) forget(before time.Time) {
	n := 0
	for n+1 < len(s.list) && !s.list[n+1].From.After(before) {
		n++
	}
	s.list = append(s.list[:0:0], s.list[n:]...)
}
