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
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// State is the whole state that replaying the log yields. It starts no goroutine and reads no clock.
type State struct {
	cfg Config
	now time.Time
	// before is the time of the previous event.
	before time.Time
	seq    uint64
	order  uint64

	installation string
	incarnation  int
	undecided    map[string]Undecided // by instance

	jobs        map[string]*Job
	inOrder     []*Job                 // all jobs except archived ones, in the order of submission
	lent        bool                   // a snapshot shares inOrder, so it must be copied before a job is removed
	running     []*Job                 // jobs that hold or request a machine, sorted by ID
	allocations map[string]*Allocation // pending or being cancelled, by ID
	attempts    map[string]*Attempt    // attempts that have not ended, by ID
	// instances that may still cost something or receive a bill; strays and shared ones stay forever
	instances map[string]*Instance
	waiting   []*Instance // instances without a task, sorted by ID
	partly    []*Instance // instances on which every task has only a portion, sorted by ID
	partlyOf  map[Sharer][]*Instance
	leaving   []*Task            // tasks that must leave their seats, by attempt and rank
	demands   map[string]*Demand // by user
	offers    map[market.OfferID]*Listing
	sale      []*Listing // sorted by ID
	repriced  []*Listing // listings whose price or terms the last event changed
	backoffs  map[string]Backoff
	trials    int // number of backoffs that an allocation is testing
	reserves  map[market.OfferID]*Stock
	heads     map[string]ledger.Hash
	// reconciled is the newest event that booked differences to bills; 0: none
	reconciled uint64
	rules      *budget.Rules // nil until somebody sets limits
	spending   spending
	groups     map[string]*Group // by name
	members    map[string][]*Job // jobs that have not ended, by group, in the order of submission
	stages     stageIndex
	decision   *plan.Decision // the newest decision of any job; see shares
	archive    archive
	gangs      policy.Gangs // how often attempts on several spot machines lost some

	part     int       // number of jobs in one part of a snapshot, including those archived since
	parts    []uint64  // by part: sequence number of the last event that may have changed a job in it
	snapshot *Snapshot // the older state that is being encoded, or nil
	watch    func(*Job)
}

// Listing is an offer with its quote and what scrimp has learned about it.
type Listing struct {
	r      listingRecord
	series Series // spot price history
}

type listingRecord struct {
	plan.Listing
	Hazard policy.Hazard    `json:"hazard"`
	Series []market.Segment `json:"series,omitempty"`
}

// The offer, its current quote, and what scrimp has learned about it.
func (l *Listing) Offer() *market.Offer  { return &l.r.Offer }
func (l *Listing) Quote() market.Quote   { return l.r.Quote }
func (l *Listing) Hazard() policy.Hazard { return l.r.Hazard }
func (l *Listing) Watch() *onezone.Watch { return &l.r.Watch }
func (l *Listing) Record() *plan.Record  { return &l.r.Record }
func (l *Listing) Low() plan.Low         { return l.r.Low }

// Plan returns the listing in the form that decisions read.
func (l *Listing) Plan() *plan.Listing { return &l.r.Listing }

// Stock divides the cost of a reservation: Used was posted to attempts that ran on it, Idle to nobody because the
// machines stood idle.
type Stock struct {
	Used    money.Amount `json:"used"`
	Idle    money.Amount `json:"idle"`
	Settled time.Time    `json:"settled"`
}

// partJobs is the number of jobs in one part of a snapshot. A part takes about 2 ms to encode.
const partJobs = 512

// New returns an empty state.
func New() *State { return NewParts(partJobs) }

// NewParts is New with the given number of jobs in each part of a snapshot.
func NewParts(jobs int) *State {
	return &State{
		cfg: DefaultConfig(), jobs: map[string]*Job{}, allocations: map[string]*Allocation{}, attempts: map[string]*Attempt{},
		instances: map[string]*Instance{}, partlyOf: map[Sharer][]*Instance{},
		undecided: map[string]Undecided{}, offers: map[market.OfferID]*Listing{},
		demands: map[string]*Demand{}, backoffs: map[string]Backoff{}, groups: map[string]*Group{},
		stages: stageIndex{making: map[scopedKey]string{}, made: map[scopedKey]StageRef{},
			models: map[scopedName]*models{}},
		members:  map[string][]*Job{},
		reserves: map[market.OfferID]*Stock{}, heads: map[string]ledger.Hash{}, part: jobs,
	}
}

// Watch sets a function that the state calls with a job before it changes the job.
func (s *State) Watch(f func(*Job)) { s.watch = f }

// Position in the log and settings in force.
func (s *State) Now() time.Time       { return s.now }
func (s *State) Seq() uint64          { return s.seq }
func (s *State) Config() *Config      { return &s.cfg }
func (s *State) Installation() string { return s.installation }
func (s *State) Incarnation() int     { return s.incarnation }
func (s *State) Rules() *budget.Rules { return s.rules }

// Reconciled returns the newest event that booked differences between bills and the ledger, or 0.
func (s *State) Reconciled() uint64 { return s.reconciled }

// Head returns the hash of the tenant's last posting.
func (s *State) Head(tenant string) ledger.Hash { return s.heads[tenant] }

// Job returns the job with the given ID, or nil.
func (s *State) Job(id string) *Job { return s.jobs[id] }

// Jobs returns all jobs in the order of submission. Running returns those that hold or request a machine, sorted by
// ID. Callers must not change either slice.
func (s *State) Jobs() []*Job    { return s.inOrder }
func (s *State) Running() []*Job { return s.running }

// Allocation returns the allocation with the given ID while it is pending or being cancelled, or nil.
func (s *State) Allocation(id string) *Allocation { return s.allocations[id] }

// Attempt returns the attempt with the given ID until it ends, or nil.
func (s *State) Attempt(id string) *Attempt { return s.attempts[id] }

// Instance returns an instance that may still cost something or receive a bill, or a stray, or nil.
func (s *State) Instance(id string) *Instance { return s.instances[id] }

// Instances returns every instance that Instance finds, sorted by ID.
func (s *State) Instances() []*Instance {
	list := make([]*Instance, 0, len(s.instances))
	for _, i := range s.instances {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Instance) int { return strings.Compare(a.r.ID, b.r.ID) })
	return list
}

// Allocations yields every allocation that Allocation finds, in no order.
func (s *State) Allocations() iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for _, a := range s.allocations {
			if !yield(a) {
				return
			}
		}
	}
}

// Attempts yields every attempt that has not ended, in no order.
func (s *State) Attempts() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for _, a := range s.attempts {
			if !yield(a) {
				return
			}
		}
	}
}

// Quiet reports whether no machine is requested or rented.
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

// Listing returns the listing of an offer, or nil.
func (s *State) Listing(id market.OfferID) *Listing { return s.offers[id] }

// Sale returns all listings, sorted by ID. Callers must not change the slice.
func (s *State) Sale() []*Listing { return s.sale }

// Repriced returns the listings whose price or terms the last event changed.
func (s *State) Repriced() []*Listing { return s.repriced }

// Gangs returns how often attempts on several spot machines lost some of them.
func (s *State) Gangs() policy.Gangs { return s.gangs }

// Stock returns how the cost of a reservation was divided so far.
func (s *State) Stock(id market.OfferID) Stock {
	if st := s.reserves[id]; st != nil {
		return *st
	}
	return Stock{}
}

// JobOf returns the job that an allocation or attempt belongs to, or nil. The ID of the job is everything before
// the last dot of the name.
func (s *State) JobOf(name string) *Job {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	return s.jobs[name[:dot]]
}

// AttemptOf returns the attempt with the given ID, ended or not, or nil.
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

// MachineOf describes the machine that an offer sells.
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

// Undecided reports whether machines of an earlier incarnation wait for somebody to adopt or release them. Until
// then scrimp requests and terminates nothing. A machine that ends meanwhile keeps waiting, because what its job
// does next depends on the answer.
func (s *State) Undecided() bool { return len(s.undecided) > 0 }

// Undecided is a machine that an earlier incarnation had when the current one began.
type Undecided struct {
	Instance string         `json:"instance"`
	Offer    market.OfferID `json:"offer"`
	Job      string         `json:"job,omitempty"`
}

// AllUndecided returns those machines, sorted by instance.
func (s *State) AllUndecided() []Undecided {
	list := slices.Collect(maps.Values(s.undecided))
	slices.SortFunc(list, func(a, b Undecided) int { return cmp.Compare(a.Instance, b.Instance) })
	return list
}

// position returns the index of a job in the order of submission, or none if id is empty.
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

// JobsFrom yields the jobs submitted after the given order, oldest first.
func (s *State) JobsFrom(order uint64) iter.Seq[*Job] { return slices.Values(After(s.inOrder, order)) }

// JobsTo yields the jobs submitted before the given order, newest first; 0 yields all jobs.
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

// JobsAfter yields the jobs submitted after the given job, oldest first. An empty id yields all jobs. ok is false
// if the job is unknown.
func (s *State) JobsAfter(id string) (jobs iter.Seq[*Job], ok bool) {
	n, ok := s.position(id, -1)
	if !ok {
		return nil, false
	}
	return slices.Values(s.inOrder[n+1:]), true
}

// JobsBefore yields the jobs submitted before the given job, newest first. An empty id yields all jobs. ok is false
// if the job is unknown.
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
