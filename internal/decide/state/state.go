package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// State is all that is. It owns no goroutine and no clock.
type State struct {
	cfg Config
	now time.Time
	// before is the time of the event before
	before time.Time
	seq    uint64
	order  uint64

	installation string
	incarnation  int
	undecided    map[string]Undecided // by instance

	jobs        map[string]*Job
	inOrder     []*Job                 // all jobs but the archived, in the order of their submission
	lent        bool                   // a snapshot has that list too: it is copied before one is taken out
	running     []*Job                 // that hold or ask for a machine, sorted by ID
	allocations map[string]*Allocation // pending or being cancelled, by ID
	attempts    map[string]*Attempt    // all that are not over, by ID
	instances   map[string]*Instance   // that may cost something or be billed; strays and shared ones for ever
	waiting     []*Instance            // without a task, sorted by ID
	partly      []*Instance            // whose tasks all have a part of it, sorted by ID
	leaving     []*Task                // whose seats are taken from them, by attempt and rank
	demands     map[string]*Demand     // by user
	offers      map[market.OfferID]*Listing
	sale        []*Listing // sorted by ID
	repriced    []*Listing // those whose price the newest event changed, or what they offer
	backoffs    map[string]Backoff
	trials      int // of the backoffs, those that an allocation tries again
	reserves    map[market.OfferID]*Stock
	heads       map[string]ledger.Hash
	rules       *budget.Rules // nil: nobody has set any
	spending    spending
	groups      map[string]*Group // by name
	members     map[string][]*Job // that are not over, by group, in the order of submission
	stages      stageIndex
	decision    *plan.Decision // the newest of all; see shares
	archive     archive

	part     int       // jobs in a part of a snapshot, those that were archived since with them
	parts    []uint64  // by part: number of the last event that may have changed a job in it
	snapshot *Snapshot // the state of a while ago that is being encoded, or nil
	watch    func(*Job)
}

// Listing is an offer with what is known of it.
type Listing struct {
	r      listingRecord
	series Series // of its price, where it is spot
}

type listingRecord struct {
	plan.Listing
	Hazard policy.Hazard    `json:"hazard"`
	Series []market.Segment `json:"series,omitempty"`
}

// What is for sale.
func (l *Listing) Offer() *market.Offer  { return &l.r.Offer }
func (l *Listing) Quote() market.Quote   { return l.r.Quote }
func (l *Listing) Hazard() policy.Hazard { return l.r.Hazard }
func (l *Listing) Watch() *horizon.Watch { return &l.r.Watch }
func (l *Listing) Record() *plan.Record  { return &l.r.Record }
func (l *Listing) Low() plan.Low         { return l.r.Low }

// Plan is the listing as decisions read it.
func (l *Listing) Plan() *plan.Listing { return &l.r.Listing }

// Stock is what became of a reservation's money: what was booked to the attempts
// that ran there, and what to nobody, because nobody did.
type Stock struct {
	Used    money.Amount `json:"used"`
	Idle    money.Amount `json:"idle"`
	Settled time.Time    `json:"settled"`
}

// partJobs is how many jobs are in a part of a snapshot: about 2 ms to encode.
const partJobs = 512

// New returns a state in which nothing has happened.
func New() *State { return NewParts(partJobs) }

// NewParts is New with so many jobs in a part of a snapshot.
func NewParts(jobs int) *State {
	return &State{
		cfg: DefaultConfig(), jobs: map[string]*Job{}, allocations: map[string]*Allocation{}, attempts: map[string]*Attempt{},
		instances: map[string]*Instance{}, undecided: map[string]Undecided{}, offers: map[market.OfferID]*Listing{},
		demands: map[string]*Demand{}, backoffs: map[string]Backoff{}, groups: map[string]*Group{},
		stages: stageIndex{making: map[scopedKey]string{}, made: map[scopedKey]StageRef{},
			models: map[scopedName]*models{}},
		members:  map[string][]*Job{},
		reserves: map[market.OfferID]*Stock{}, heads: map[string]ledger.Hash{}, part: jobs,
	}
}

// Watch sets what is told of a job before it changes.
func (s *State) Watch(f func(*Job)) { s.watch = f }

// Where the log stands.
func (s *State) Now() time.Time       { return s.now }
func (s *State) Seq() uint64          { return s.seq }
func (s *State) Config() *Config      { return &s.cfg }
func (s *State) Installation() string { return s.installation }
func (s *State) Incarnation() int     { return s.incarnation }
func (s *State) Rules() *budget.Rules { return s.rules }

// Head returns the hash of the tenant's last posting.
func (s *State) Head(tenant string) ledger.Hash { return s.heads[tenant] }

// Job returns the job of that name, or nil.
func (s *State) Job(id string) *Job { return s.jobs[id] }

// Jobs are all in the order of their submission; Running are those that hold or ask for
// a machine, by name. Both are the state's own.
func (s *State) Jobs() []*Job    { return s.inOrder }
func (s *State) Running() []*Job { return s.running }

// Allocation returns one that is pending or being cancelled, or nil.
func (s *State) Allocation(id string) *Allocation { return s.allocations[id] }

// Attempt returns one that is not over, or nil.
func (s *State) Attempt(id string) *Attempt { return s.attempts[id] }

// Instance returns one that may cost something or be billed, or a stray; or nil.
func (s *State) Instance(id string) *Instance { return s.instances[id] }

// Instances are those of Instance, by name.
func (s *State) Instances() []*Instance {
	list := make([]*Instance, 0, len(s.instances))
	for _, i := range s.instances {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Instance) int { return strings.Compare(a.r.ID, b.r.ID) })
	return list
}

// Allocations are those of Allocation, by name.
func (s *State) Allocations() iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for _, a := range s.allocations {
			if !yield(a) {
				return
			}
		}
	}
}

// Attempts are all that are not over, in no order; Live is how many.
func (s *State) Attempts() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for _, a := range s.attempts {
			if !yield(a) {
				return
			}
		}
	}
}

// Quiet reports whether nothing is asked for or rented.
func (s *State) Quiet() bool {
	if len(s.attempts) > 0 || len(s.allocations) > 0 {
		return false
	}
	for _, i := range s.instances {
		if i.Live() {
			return false
		}
	}
	return true
}

// Listing returns what is known of an offer, or nil.
func (s *State) Listing(id market.OfferID) *Listing { return s.offers[id] }

// Sale is what is for sale, by name. It is the state's own.
func (s *State) Sale() []*Listing { return s.sale }

// Repriced is what of it the newest event changed the price of, or what it offers.
func (s *State) Repriced() []*Listing { return s.repriced }

// Stock is what became of a reservation's money so far.
func (s *State) Stock(id market.OfferID) Stock {
	if st := s.reserves[id]; st != nil {
		return *st
	}
	return Stock{}
}

// JobOf is the job that an allocation's or attempt's name begins with, or nil.
func (s *State) JobOf(name string) *Job {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	return s.jobs[name[:dot]]
}

// AttemptOf is the attempt of that name, over or not, or nil.
func (s *State) AttemptOf(name string) *Attempt {
	if a := s.attempts[name]; a != nil {
		return a
	}
	if j := s.JobOf(name); j != nil {
		for _, a := range slices.Backward(j.Attempts()) {
			if a.r.ID == name {
				return a
			}
		}
	}
	return nil
}

// MachineOf is a machine of the offer.
func MachineOf(o *market.Offer) Machine {
	var terms *market.Reservation
	if o.Reserved.Marginal > 0 {
		kept := o.Reserved
		terms = &kept
	}
	return Machine{
		Terms: terms,
		Offer: o.ID, Provider: o.Provider, Region: o.Region, Zone: o.Zone, Type: o.Machine, Capacity: o.Capacity,
		Speed: o.Speed, GPUs: o.Accelerators, Currency: o.Currency, Prepaid: o.Reserved.Count > 0,
	}
}

// Undecided reports whether machines of an earlier incarnation wait for somebody to say
// whose they are: until then nothing is asked for and nothing ended. One that ends
// meanwhile waits on, since what its job does next depends on the answer.
func (s *State) Undecided() bool { return len(s.undecided) > 0 }

// Undecided is a machine that an earlier incarnation had when this one began.
type Undecided struct {
	Instance string         `json:"instance"`
	Offer    market.OfferID `json:"offer"`
	Job      string         `json:"job,omitempty"`
}

// AllUndecided are those machines, sorted by name.
func (s *State) AllUndecided() []Undecided {
	list := slices.Collect(maps.Values(s.undecided))
	slices.SortFunc(list, func(a, b Undecided) int { return cmp.Compare(a.Instance, b.Instance) })
	return list
}

// position is where the job stands in the order of submission; none for "".
func (s *State) position(id string, none int) (int, bool) {
	if id == "" {
		return none, true
	}
	j, ok := s.jobs[id]
	if !ok {
		return 0, false
	}
	return slices.BinarySearchFunc(s.inOrder, j.order, func(a *Job, order uint64) int {
		return cmp.Compare(a.order, order)
	})
}

// JobsFrom are the jobs that were submitted after the one of that order, oldest first;
// JobsTo those before it, newest first, of 0 all.
func (s *State) JobsFrom(order uint64) iter.Seq[*Job] { return slices.Values(After(s.inOrder, order)) }

// JobsTo are those before; see JobsFrom.
func (s *State) JobsTo(order uint64) iter.Seq[*Job] {
	jobs := s.inOrder
	if order > 0 {
		jobs = jobs[:len(jobs)-len(After(jobs, order-1))]
	}
	return func(yield func(*Job) bool) {
		for _, j := range slices.Backward(jobs) {
			if !yield(j) {
				return
			}
		}
	}
}

// JobsAfter returns the jobs that were submitted after the one of that name,
// oldest first; "" is all. ok is false where the job is not known.
func (s *State) JobsAfter(id string) (jobs iter.Seq[*Job], ok bool) {
	n, ok := s.position(id, -1)
	if !ok {
		return nil, false
	}
	return slices.Values(s.inOrder[n+1:]), true
}

// JobsBefore returns the jobs that were submitted before the one of that name,
// newest first; "" is all. ok is false where the job is not known.
func (s *State) JobsBefore(id string) (jobs iter.Seq[*Job], ok bool) {
	n, ok := s.position(id, len(s.inOrder))
	if !ok {
		return nil, false
	}
	return func(yield func(*Job) bool) {
		for _, j := range slices.Backward(s.inOrder[:n]) {
			if !yield(j) {
				return
			}
		}
	}, true
}
