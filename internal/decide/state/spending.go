package state

import (
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Spent is the booked amount in a limit's scope in one window of the limit.
type Spent struct {
	Begin  time.Time    `json:"begin"` // start of the window; the zero time if the window has none
	Amount money.Amount `json:"amount"`
	// From is the first event whose postings are included; 0: all postings of the window are.
	From uint64 `json:"from,omitempty"`
	// Reached is set once the limit is spent in the window and its jobs were stopped.
	Reached bool `json:"reached,omitempty"`
}

// newestCosts is the smallest number of recent costs kept, for limits set later. Whoever sets a limit has summed
// the postings a moment before.
const newestCosts = 256

// spending holds the spent amounts of the limits in force, and recent costs.
type spending struct {
	Limits map[string]Spent `json:"limits,omitempty"` // by name
	Newest []cost           `json:"newest,omitempty"` // in the order of their events
	// Dropped is the last event with a cost that Newest no longer has.
	Dropped uint64 `json:"dropped,omitempty"`
	// Teams is what each team, by its key in package fair, has spent since the queue is shared among teams, with decay.
	Teams map[string]fair.Spent `json:"teams,omitempty"`
	// Deadlines counts the jobs that met and missed their deadline, by team as Teams.
	Deadlines map[string]fair.Deadlines `json:"deadlines,omitempty"`
}

// cost is what an event added to the cost of a job, or of nobody if Job is empty.
type cost struct {
	Event  uint64       `json:"event"`
	At     time.Time    `json:"at"`
	Job    string       `json:"job,omitempty"`
	Idle   string       `json:"idle,omitempty"` // idle span that caused the cost
	Amount money.Amount `json:"amount"`
	// Owner and User are those of an archived job.
	Owner *ledger.Owner `json:"owner,omitempty"`
	User  string        `json:"user,omitempty"`
}

// clone returns a copy that later postings do not affect.
func (s spending) clone() spending {
	return spending{Limits: maps.Clone(s.Limits), Newest: slices.Clone(s.Newest), Dropped: s.Dropped,
		Teams: maps.Clone(s.Teams), Deadlines: maps.Clone(s.Deadlines)}
}

// spend counts the cost of a posting.
func (s *State) spend(p *ledger.Posting) {
	amount := costOf(p)
	if amount.IsZero() {
		return
	}
	v := &s.spending
	if n := len(v.Newest); n > 0 && v.Newest[n-1].Event == s.seq && v.Newest[n-1].Job == p.Owner.Job &&
		v.Newest[n-1].Idle == s.idleTask(p) {
		v.Newest[n-1].Amount = v.Newest[n-1].Amount.Add(amount)
	} else {
		v.Newest = append(v.Newest, cost{Event: s.seq, At: p.At, Job: p.Owner.Job, Idle: s.idleTask(p), Amount: amount})
	}
	if n := len(v.Newest) - newestCosts; n >= newestCosts {
		v.Dropped = v.Newest[n-1].Event
		v.Newest = append(v.Newest[:0], v.Newest[n:]...)
	}
	if s.rules == nil {
		return
	}
	s.spendTeam(p.Owner.Team, amount, p.At)
	user := ""
	if j := s.jobs[p.Owner.Job]; j != nil {
		user = j.User()
	} else if _, idle := s.idleOf(p.Owner.Task); idle != nil {
		user = idle.User
	}
	for _, l := range s.rules.Limits {
		if l.Scope.Holds(p.Owner, user) {
			sum := v.Limits[l.Name()].in(l, p.At)
			sum.Amount = sum.Amount.Add(amount)
			v.Limits[l.Name()] = sum
		}
	}
}

// in returns the amount spent in the window of t, which is zero if that window is a later one.
func (s Spent) in(l budget.Limit, t time.Time) Spent {
	if begin := l.Window.Begin(t); !s.Begin.Equal(begin) {
		return Spent{Begin: begin}
	}
	return s
}

// Spent returns what was booked in the scope of a limit in force, in its window at t. t must not be before the last
// event.
func (s *State) Spent(l budget.Limit, t time.Time) Spent { return s.spending.Limits[l.Name()].in(l, t) }

// Partial names the limits in force whose spending in their window is incomplete, because whoever set them did not
// state it.
func (s *State) Partial() (names []string) {
	if s.rules == nil {
		return nil
	}
	for _, l := range s.rules.Limits {
		if s.Spent(l, s.now).From > 0 {
			names = append(names, l.Name())
		}
	}
	return names
}

// Stale reports whether the base sums of b are too old: the state has dropped costs that were booked after them.
func (s *State) Stale(b BudgetsSet) bool {
	if b.AsOf == 0 || b.AsOf >= s.spending.Dropped {
		return false
	}
	return slices.ContainsFunc(b.Rules.Limits, func(l budget.Limit) bool { return !s.counted(l) })
}

// counted reports whether a limit's spending is fully known.
func (s *State) counted(l budget.Limit) bool {
	sum, known := s.spending.Limits[l.Name()]
	return known && sum.in(l, s.now).From == 0
}

// setRules replaces the limits. A new limit starts from the base sums of b plus what was booked since.
func (s *State) setRules(b BudgetsSet) {
	sums := make(map[string]Spent, len(b.Rules.Limits))
	for _, l := range b.Rules.Limits {
		if s.counted(l) {
			sum := s.Spent(l, s.now)
			sum.Reached = false // the new limit may be higher
			sums[l.Name()] = sum
			continue
		}
		sum := Spent{Begin: l.Window.Begin(s.now), From: s.seq}
		if b.AsOf > 0 {
			sum = b.Base[l.Name()].in(l, s.now)
			sum.Amount, sum.From = sum.Amount.Add(s.since(l, b.AsOf)), 0
		}
		sums[l.Name()] = sum
	}
	s.shareQueue(b.Rules.Fair)
	rules := b.Rules
	s.rules, s.spending.Limits = &rules, sums
}

// since returns the amount booked for a limit after an event, within its window.
func (s *State) since(l budget.Limit, event uint64) (sum money.Amount) {
	for _, c := range s.spending.Newest {
		owner, user := ledger.Owner{}, ""
		if j := s.jobs[c.Job]; j != nil {
			owner, user = j.r.Terms.Owner, j.User()
		} else if c.Owner != nil {
			owner, user = *c.Owner, c.User
		} else if _, idle := s.idleOf(c.Idle); idle != nil {
			owner, user = idle.Owner, idle.User
		}
		if c.Event > event && !c.At.Before(l.Window.Begin(s.now)) && l.Scope.Holds(owner, user) {
			sum = sum.Add(c.Amount)
		}
	}
	return sum
}

// reached records that a limit is spent.
func (s *State) reached(limit string) {
	for _, l := range s.rules.Limits {
		if l.Name() == limit {
			sum := s.Spent(l, s.now)
			sum.Reached = true
			s.spending.Limits[limit] = sum
		}
	}
}

// postStray adds the cost of a machine that scrimp did not request, and counts it as use of a reservation if it is
// one.
func (s *State) postStray(i *Instance, cost money.Amount) {
	i.r.Posted = i.r.Posted.Add(cost)
	if i.r.Machine.Prepaid {
		st := s.stock(i.r.Machine.Offer)
		st.Used = st.Used.Add(i.r.Machine.Owned(cost))
	}
}

// ReservedRule marks the unused cost of a reservation.
const ReservedRule = "reserved"

func isCost(a ledger.Account) bool { _, _, ok := a.IsCost(); return ok }

// costOf returns the contribution of a posting to the amount spent. A posting that only reclassifies a cost adds
// nothing.
func costOf(p *ledger.Posting) money.Amount {
	part := money.Amount{}
	if isCost(p.To) {
		part = part.Add(p.Amount)
	}
	if isCost(p.From) {
		part = part.Sub(p.Amount)
	}
	return part
}

// CostOf returns the contribution of a posting to the amount spent.
func CostOf(p ledger.Posting) money.Amount { return costOf(&p) }
