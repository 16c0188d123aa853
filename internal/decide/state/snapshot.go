package state

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/market"
)

// A snapshot is a head and parts, each with a fixed number of jobs in the order of submission. Most jobs wait or
// ended long ago, so a later snapshot encodes few parts anew and reuses the others.

// head is the state without its jobs. Restore rebuilds the derived indexes.
type head struct {
	Version      int                       `json:"version"`
	Installation string                    `json:"installation,omitempty"`
	Incarnation  int                       `json:"incarnation,omitempty"`
	Undecided    []Undecided               `json:"undecided,omitempty"`
	Config       Config                    `json:"config"`
	Now          time.Time                 `json:"now"`
	Seq          uint64                    `json:"seq"`
	Order        uint64                    `json:"order"`
	Offers       []listingRecord           `json:"offers"`
	Instances    []instanceRecord          `json:"instances,omitempty"`
	Backoffs     map[string]Backoff        `json:"backoffs,omitempty"`
	Reserves     map[market.OfferID]*Stock `json:"reserves,omitempty"`
	Heads        map[string]ledger.Hash    `json:"heads,omitempty"`
	Reconciled   uint64                    `json:"reconciled,omitempty"`
	Rules        *budget.Rules             `json:"rules,omitempty"`
	Spending     spending                  `json:"spending"`
	Groups       []Group                   `json:"groups,omitempty"`
	Archive      *archiveRecord            `json:"archive,omitempty"`
	Demands      map[string]Demand         `json:"demands,omitempty"`
	Gangs        policy.Gangs              `json:"gangs,omitempty"`
	Part         int                       `json:"part"` // jobs in a part
	Jobs         int                       `json:"jobs"`
}

// storedJob is a job with the fields that its record does not encode.
type storedJob struct {
	*JobRecord
	Order    uint64              `json:"order"`
	Run      *runRecord          `json:"run,omitempty"`
	Attempts []storedAttempt     `json:"attempts,omitempty"`
	Asked    *allocationRecord   `json:"asked,omitempty"`
	Leaving  []*allocationRecord `json:"leaving,omitempty"`
	// Last replaces the record's decision. Rejected is the number, from 1, of the list of options that the decision
	// rejected; 0: the list is empty.
	Last     *plan.Decision `json:"last,omitempty"`
	Rejected int            `json:"rejected,omitempty"`
}

// storedPart is one part. Most waiting jobs reject the same offers for the same reasons, so each list of rejections
// is stored once.
type storedPart struct {
	Rejected [][]plan.Rejection `json:"rejected,omitempty"`
	Jobs     []storedJob        `json:"jobs"`
}

// whole is a snapshot as a single value.
type whole struct {
	Head  json.RawMessage   `json:"head"`
	Parts []json.RawMessage `json:"parts"`
}

// SnapshotVersion is the version of the snapshot format. Restore refuses other versions; the log can rebuild the
// state.
const SnapshotVersion = 23

// Snapshot encodes the whole state. Equal states give equal bytes.
func (s *State) Snapshot() (json.RawMessage, error) {
	f := s.Freeze(0)
	var w whole
	for {
		_, part, more, err := f.Encode()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		w.Parts = append(w.Parts, part)
	}
	var err error
	if w.Head, err = f.Head(); err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// Hash returns a hash of the whole state, including what was learned.
func (s *State) Hash() (ledger.Hash, error) {
	b, err := s.Snapshot()
	return sha256.Sum256(b), err
}

// Restore returns the state that Snapshot encoded as b.
func Restore(b json.RawMessage) (*State, error) {
	var w whole
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	r, err := NewRestorer(w.Head)
	if err != nil {
		return nil, err
	}
	for _, text := range w.Parts {
		p, err := ReadPart(text)
		if err != nil {
			return nil, err
		}
		r.Add(p)
	}
	return r.State()
}

// Part is a decoded part of a snapshot.
type Part struct{ jobs []storedJob }

// ReadPart decodes a part. Parts may be decoded concurrently.
func ReadPart(b json.RawMessage) (Part, error) {
	var p storedPart
	if err := decode(b, &p); err != nil {
		return Part{}, fmt.Errorf("read snapshot: %w", err)
	}
	for i := range p.Jobs {
		stored := &p.Jobs[i]
		stored.JobRecord.Last = stored.Last
		switch n := stored.Rejected; {
		case n < 0 || n > len(p.Rejected):
			return Part{}, fmt.Errorf("read snapshot: job %s names list %d of %d", stored.ID, n, len(p.Rejected))
		case n > 0 && stored.Last == nil:
			return Part{}, fmt.Errorf("read snapshot: job %s names list %d and no decision", stored.ID, n)
		case n > 0:
			stored.Last.Rejected = p.Rejected[n-1]
		}
	}
	return Part{p.Jobs}, nil
}

// Restorer builds a state from a snapshot.
type Restorer struct {
	s    *State
	jobs int // number of jobs that the head states
}

// NewRestorer starts with the head.
func NewRestorer(b json.RawMessage) (*Restorer, error) {
	var h head
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if h.Version != SnapshotVersion || h.Part < 1 {
		return nil, fmt.Errorf("read snapshot: it has version %d, not %d", h.Version, SnapshotVersion)
	}
	s := New()
	s.cfg, s.now, s.seq, s.order, s.part, s.rules = h.Config, h.Now, h.Seq, h.Order, h.Part, h.Rules
	s.spending, s.archive = h.Spending, h.Archive.restored()
	s.parts = make([]uint64, (s.order+uint64(s.part)-1)/uint64(s.part))
	for _, r := range h.Groups {
		s.groups[r.Name] = &r
		s.indexStages(&r)
	}
	s.numbersModels()
	for _, g := range s.Groups() { // a snapshot of an older version may have some
		if g.Phase == GroupOver {
			s.abandonsStages(g)
		}
	}
	s.installation, s.incarnation, s.reconciled = h.Installation, h.Incarnation, h.Reconciled
	s.gangs = h.Gangs
	for _, u := range h.Undecided {
		s.undecided[u.Instance] = u
	}
	for _, r := range h.Offers {
		l := &Listing{r: r, series: Series{r.Series}}
		l.r.Series = nil
		s.offers[r.Offer.ID] = l
		s.sale = append(s.sale, l)
	}
	for _, r := range h.Instances {
		i := &Instance{r: r}
		if len(r.Seats) > 0 || i.idle() != nil {
			s.joins(i)
		}
		s.instances[r.ID] = i
		s.lists(i)
	}
	for user, d := range h.Demands {
		s.demands[user] = &d
	}
	for k, v := range h.Backoffs {
		s.backoffs[k] = v
		if v.Trial != "" {
			s.trials++
		}
	}
	for k, v := range h.Reserves {
		s.reserves[k] = v
	}
	for k, v := range h.Heads {
		s.heads[k] = v
	}
	s.jobs = make(map[string]*Job, h.Jobs)
	return &Restorer{s: s, jobs: h.Jobs}, nil
}

// Add adds the next part, in order.
func (r *Restorer) Add(p Part) {
	s := r.s
	for i := range p.jobs {
		stored := &p.jobs[i]
		s.shares(stored.JobRecord)
		j := &Job{r: *stored.JobRecord, order: stored.Order}
		s.jobs[j.r.ID] = j
		s.inOrder = append(s.inOrder, j)
		if j.r.Terms.Group != "" && !j.r.State.Over() {
			s.listsMember(j)
		}
		if stored.Run == nil {
			continue
		}
		j.r.Run = stored.Run
		for i := range stored.Attempts {
			a := stored.Attempts[i].attempt()
			j.r.Run.Attempts = append(j.r.Run.Attempts, a)
			if a.Live() {
				s.attempts[a.r.ID] = a
			}
			s.seatAgain(a)
		}
		if stored.Asked != nil {
			j.r.Run.Asked = s.adds(*stored.Asked)
		}
		for _, a := range stored.Leaving {
			j.r.Run.Leaving = append(j.r.Run.Leaving, s.adds(*a))
		}
		s.index(j)
	}
}

// seatAgain links the tasks of an attempt to the machines on which they have seats.
func (s *State) seatAgain(a *Attempt) {
	for _, t := range a.tasks {
		// Without a seat, the task has left, or a later machine has the same name.
		if i := s.instances[t.r.Instance]; i != nil && i.seats(a.r.ID) {
			t.instance = i
			if t.r.Leaving != "" && t.Live() {
				s.isLeaving(t)
			}
		}
	}
}

func (s *State) adds(r allocationRecord) *Allocation {
	a := &Allocation{r: r}
	for _, g := range r.Granted {
		a.machines = append(a.machines, s.instances[g.Instance])
	}
	s.allocations[r.ID] = a
	return a
}

// State returns the complete state, or an error if a part is missing.
func (r *Restorer) State() (*State, error) {
	if len(r.s.inOrder) != r.jobs {
		return nil, errors.New("read snapshot: a part is missing")
	}
	for _, i := range r.s.partly { // their jobs are known now
		r.s.lists(i)
	}
	return r.s, nil
}

// partOf returns the index of the snapshot part that has j.
func (s *State) partOf(j *Job) int { return int(j.order-1) / s.part }

// grow makes room for the part of the newest job.
func (s *State) grow() {
	if s.order > uint64(len(s.parts)*s.part) {
		s.parts = append(s.parts, 0)
	}
}

// ChangedAt returns the sequence number of the last event that may have changed j; 0 if none has since the state
// was restored. A shell that shows only durable state need not wait for pending events that do not touch j.
func (j *Job) ChangedAt() uint64 { return j.changed }

// storedOf returns the form of a job in a part.
func storedOf(j *Job) storedJob {
	stored := storedJob{JobRecord: &j.r, Order: j.order, Run: j.r.Run, Last: j.r.Last}
	if j.r.Run == nil {
		return stored
	}
	for _, a := range j.r.Run.Attempts {
		stored.Attempts = append(stored.Attempts, a.stored())
	}
	if a := j.r.Run.Asked; a != nil {
		stored.Asked = &a.r
	}
	for _, a := range j.r.Run.Leaving {
		stored.Leaving = append(stored.Leaving, &a.r)
	}
	return stored
}

// listed returns the number, from 1, of a list among the newest 16, or adds it.
func listed(all [][]plan.Rejection, list []plan.Rejection) ([][]plan.Rejection, int) {
	for n := len(all); n > max(0, len(all)-16); n-- {
		if slices.Equal(all[n-1], list) {
			return all, n
		}
	}
	return append(all, list), len(all) + 1
}

// EncodeJob encodes a job as a snapshot does.
func EncodeJob(j *Job) (json.RawMessage, error) { return json.Marshal(storedOf(j)) }
