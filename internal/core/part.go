package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/plan"
)

// A snapshot is a head and parts, each of which holds so many jobs in the order of
// their submission. Most jobs have waited or have been over for long, so that a
// later snapshot needs few parts anew and takes the others from the one before.

// partJobs is how many jobs are in a part: about 2 ms to encode.
const partJobs = 512

// head is the state without its jobs. Derived indexes are made again from it.
type head struct {
	Version int                    `json:"version"`
	Config  Config                 `json:"config"`
	Now     time.Time              `json:"now"`
	Seq     uint64                 `json:"seq"`
	Order   uint64                 `json:"order"`
	Offers  []*offer               `json:"offers"`
	Orphans map[string]Rented      `json:"orphans,omitempty"`
	Buried  map[string]time.Time   `json:"buried,omitempty"`
	Heads   map[string]ledger.Hash `json:"heads,omitempty"`
	Fresh   int                    `json:"fresh,omitempty"` // which side of the queue is to be tried
	Again   bool                   `json:"again,omitempty"`
	Kinds   []storedKind           `json:"kinds,omitempty"` // that the market had nothing for
	Rules   *budget.Rules          `json:"rules,omitempty"`
	Part    int                    `json:"part"` // jobs in a part
	Jobs    int                    `json:"jobs"`
}

// storedJob is a job with its place in the queue: 0 not there, else the number of its side, from 1.
type storedJob struct {
	*Job
	Order uint64 `json:"order"`
	Queue int    `json:"queue,omitempty"`
	Loose bool   `json:"loose,omitempty"` // of what it asks for the queue knows nothing in common
	// Rejected is the number, from 1, of the list of what its last decision rejected;
	// 0: the list is empty.
	Rejected int `json:"rejected,omitempty"`
}

// storedPart is a part. Jobs that wait were mostly refused the same offers for the
// same reasons, so such a list stands there once.
type storedPart struct {
	Rejected [][]plan.Rejection `json:"rejected,omitempty"`
	Jobs     []storedJob        `json:"jobs"`
}

// whole is a snapshot as one value.
type whole struct {
	Head  json.RawMessage   `json:"head"`
	Parts []json.RawMessage `json:"parts"`
}

// SnapshotVersion is the form that snapshots have. A snapshot of another version is
// not read: the log has all that it would say.
const SnapshotVersion = 6

// Snapshot returns the whole state as bytes; the same state gives the same bytes.
func (m *Machine) Snapshot() (json.RawMessage, error) {
	f := m.Freeze(0)
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

// Restore returns the machine whose Snapshot gave b.
func Restore(b json.RawMessage) (*Machine, error) {
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
	return r.Machine()
}

// Part is a part of a snapshot, read.
type Part struct{ jobs []storedJob }

// ReadPart reads a part. Parts can be read at the same time.
func ReadPart(b json.RawMessage) (Part, error) {
	var p storedPart
	if err := json.Unmarshal(b, &p); err != nil {
		return Part{}, fmt.Errorf("read snapshot: %w", err)
	}
	for _, stored := range p.Jobs {
		switch n := stored.Rejected; {
		case n < 0 || n > len(p.Rejected):
			return Part{}, fmt.Errorf("read snapshot: job %s names list %d of %d", stored.ID, n, len(p.Rejected))
		case n > 0:
			stored.Last.Rejected = p.Rejected[n-1]
		}
	}
	return Part{p.Jobs}, nil
}

// Restorer puts a machine together from a snapshot.
type Restorer struct {
	m    *Machine
	jobs int // that the head names
}

// NewRestorer begins with the head.
func NewRestorer(b json.RawMessage) (*Restorer, error) {
	var h head
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if h.Version != SnapshotVersion || h.Part < 1 {
		return nil, fmt.Errorf("read snapshot: it has version %d, not %d", h.Version, SnapshotVersion)
	}
	m := New()
	m.cfg, m.now, m.seq, m.order, m.part = h.Config, h.Now, h.Seq, h.Order, h.Part
	if h.Rules != nil {
		m.setRules(h.Rules)
	}
	m.queue.fresh, m.queue.again = h.Fresh&1, h.Again
	m.queue.restore(h.Kinds)
	for _, o := range h.Offers {
		m.offers[o.Offer.ID] = o
		m.sale = append(m.sale, o)
	}
	m.list()
	m.findPrepaid()
	if h.Orphans != nil {
		m.orphans = h.Orphans
	}
	if h.Buried != nil {
		m.buried = h.Buried
	}
	if h.Heads != nil {
		m.heads = h.Heads
	}
	m.jobs = make(map[string]*Job, h.Jobs)
	return &Restorer{m: m, jobs: h.Jobs}, nil
}

// Add adds the next part, in order.
func (r *Restorer) Add(p Part) {
	m := r.m
	for _, stored := range p.jobs {
		j := stored.Job
		j.place.order = stored.Order
		m.jobs[j.ID] = j
		m.inOrder = append(m.inOrder, j)
		m.grow()
		if !j.State.Over() {
			m.classOf(j)
		}
		if stored.Queue > 0 {
			j.place.loose = stored.Loose
			kind := kindOf(j.Terms.Need)
			m.queue.count(j, kind, groupOf(kind, j))
			m.queue.seat(j, min(stored.Queue-1, stuck))
		}
		if !j.Wake.IsZero() {
			m.wakes.push(wake{j.Wake, j})
		}
		for _, a := range j.Attempts {
			if a.GivenUp {
				m.given[a.Instance] = a
			}
		}
		for _, a := range j.Attempts[min(j.Closed, len(j.Attempts)):] {
			if !a.Live() {
				continue
			}
			m.attempts[a.ID] = a
			if a.Instance != "" {
				m.rented[a.Instance] = a
			}
		}
		if j.live() != nil {
			m.hold(j)
		}
	}
}

// Machine is what came of all parts.
func (r *Restorer) Machine() (*Machine, error) {
	if len(r.m.inOrder) != r.jobs {
		return nil, errors.New("read snapshot: a part is missing")
	}
	r.m.sumUnder(r.m.seq + 1)
	r.m.recount()
	return r.m, nil
}
