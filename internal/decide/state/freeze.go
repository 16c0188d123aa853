package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"scrimp/internal/decide/plan"
	"scrimp/internal/market"
)

// Snapshot is the state at one event. A million jobs take seconds to encode, so it encodes only parts that changed,
// one at a time between steps. A step that changes a job before its part is encoded first saves a copy of the job.
type Snapshot struct {
	s    *State
	head head
	// archive is part of the head; it is sorted outside the steps.
	archive archive
	jobs    []*Job       // in the order of submission
	size    int          // number of parts, encoded or not
	parts   []int        // parts to encode, in order
	todo    map[int]bool // the same as a set, until encoded
	saved   map[*Job]*Job
}

// Freeze captures the current state until it is encoded or Freeze is called again. It omits parts that have not
// changed since the given event; 0 includes all parts.
func (s *State) Freeze(since uint64) *Snapshot {
	s.lent = true
	f := &Snapshot{
		s: s, jobs: s.inOrder[:len(s.inOrder):len(s.inOrder)], size: len(s.parts), todo: map[int]bool{},
		saved: map[*Job]*Job{}, archive: s.archive.clone(),
		head: head{
			Version: SnapshotVersion, Installation: s.installation, Incarnation: s.incarnation, Reconciled: s.reconciled,
			Undecided: s.AllUndecided(), Config: s.cfg, Now: s.now, Seq: s.seq,
			Order: s.order, Backoffs: maps.Clone(s.backoffs), Heads: maps.Clone(s.heads), Rules: s.rules, Part: s.part,
			Jobs: len(s.inOrder), Spending: s.spending.clone(), Gangs: s.gangs,
		},
	}
	for _, l := range s.sale {
		r := l.r
		r.Series = slices.Clone(l.series.list)
		f.head.Offers = append(f.head.Offers, r)
	}
	for _, i := range s.Instances() {
		f.head.Instances = append(f.head.Instances, i.r.clone())
	}
	for user, d := range s.demands {
		if f.head.Demands == nil {
			f.head.Demands = map[string]Demand{}
		}
		f.head.Demands[user] = *d
	}
	for _, h := range s.Groups() {
		g := *h
		g.Study, g.Stages = h.Study.clone(), slices.Clone(h.Stages)
		g.Begun = h.Begun[:len(h.Begun):len(h.Begun)]
		if h.Schedule != nil {
			y := *h.Schedule
			y.Runs = y.Runs[:len(y.Runs):len(y.Runs)]
			g.Schedule = &y
		}
		f.head.Groups = append(f.head.Groups, g)
	}
	if len(s.reserves) > 0 {
		f.head.Reserves = map[market.OfferID]*Stock{}
		for id, st := range s.reserves {
			c := *st
			f.head.Reserves[id] = &c
		}
	}
	for n, at := range s.parts {
		if since == 0 || at > since {
			f.parts, f.todo[n] = append(f.parts, n), true
		}
	}
	s.snapshot = f
	return f
}

// ChangedJobs estimates how many jobs a Freeze since that event would encode.
func (s *State) ChangedJobs(since uint64) int {
	n := 0
	for _, at := range s.parts {
		if at > since {
			n++
		}
	}
	return n * s.part
}

// spare saves a copy of j if it is frozen and its part is not encoded yet.
func (s *State) spare(j *Job) {
	f := s.snapshot
	if f == nil || j.order > f.head.Order || !f.todo[s.partOf(j)] || f.saved[j] != nil {
		return
	}
	f.saved[j] = j.clone()
}

// Seq is the sequence number of the last event in the state.
func (f *Snapshot) Seq() uint64 { return f.head.Seq }

// Parts is the number of parts, including those that are not encoded.
func (f *Snapshot) Parts() int { return f.size }

// part returns the jobs of a part.
func (f *Snapshot) part(number int) []*Job {
	first := uint64(number * f.head.Part) // order of the last job before the part
	jobs := After(f.jobs, first)
	return jobs[:len(jobs)-len(After(jobs, first+uint64(f.head.Part)))]
}

// Head encodes the state without its jobs.
func (f *Snapshot) Head() (json.RawMessage, error) {
	f.head.Archive = f.archive.record()
	b, err := json.Marshal(f.head)
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return b, nil
}

// errSnapshotAnew is returned once a later Freeze has taken over the saved copies.
var errSnapshotAnew = errors.New("write snapshot: another one started meanwhile")

// Encode returns the next changed part and its number; more is false if none is left. It must be called between
// steps.
func (f *Snapshot) Encode() (number int, part json.RawMessage, more bool, err error) {
	if f.s.snapshot != f {
		return 0, nil, false, errSnapshotAnew
	}
	if len(f.parts) == 0 {
		f.s.snapshot = nil
		return 0, nil, false, nil
	}
	number = f.parts[0]
	f.parts = f.parts[1:]
	delete(f.todo, number)
	jobs := f.part(number)
	var rejected [][]plan.Rejection
	b := append(make([]byte, 0, 500*len(jobs)), `{"jobs":[`...) // 500 is about the size of a waiting job
	for i, j := range jobs {
		if c := f.saved[j]; c != nil {
			delete(f.saved, j)
			j = c
		}
		stored := storedOf(j)
		if l := stored.Last; l != nil && len(l.Rejected) > 0 {
			rejected, stored.Rejected = listed(rejected, l.Rejected)
			c := *l
			c.Rejected = nil
			stored.Last = &c
		}
		text, err := json.Marshal(stored)
		if err != nil {
			return 0, nil, false, fmt.Errorf("write snapshot: job %s: %w", j.r.ID, err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	b = append(b, ']')
	if len(rejected) > 0 {
		text, err := json.Marshal(rejected)
		if err != nil {
			return 0, nil, false, fmt.Errorf("write snapshot: %w", err)
		}
		b = append(append(b, `,"rejected":`...), text...)
	}
	return number, append(b, '}'), true, nil
}
