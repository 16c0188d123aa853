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

// Snapshot is the state as it was at one event. A million jobs take seconds to
// encode, so only those parts are that have changed, one at a time between the
// steps. A step that changes a job whose turn has not come leaves a copy of it as it was.
type Snapshot struct {
	s    *State
	head head
	// archive is what of the head is put in order outside the steps.
	archive archive
	jobs    []*Job       // in the order of submission
	size    int          // parts in all
	parts   []int        // to be encoded, in order
	todo    map[int]bool // the same, while they are
	saved   map[*Job]*Job
}

// Freeze keeps the state as it is now, until it is encoded or the next Freeze.
// Parts that have not changed since the event are left out; 0 is all.
func (s *State) Freeze(since uint64) *Snapshot {
	s.lent = true
	f := &Snapshot{
		s: s, jobs: s.inOrder[:len(s.inOrder):len(s.inOrder)], size: len(s.parts), todo: map[int]bool{},
		saved: map[*Job]*Job{}, archive: s.archive.clone(),
		head: head{
			Version: SnapshotVersion, Installation: s.installation, Incarnation: s.incarnation,
			Undecided: s.AllUndecided(), Config: s.cfg, Now: s.now, Seq: s.seq,
			Order: s.order, Backoffs: maps.Clone(s.backoffs), Heads: maps.Clone(s.heads), Rules: s.rules, Part: s.part,
			Jobs: len(s.inOrder), Spending: s.spending.clone(),
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

// ChangedJobs is how many jobs, about, a Freeze since that event would encode.
func (s *State) ChangedJobs(since uint64) int {
	n := 0
	for _, at := range s.parts {
		if at > since {
			n++
		}
	}
	return n * s.part
}

// spare keeps a copy of j as it is, where it is frozen and its turn has not come.
func (s *State) spare(j *Job) {
	f := s.snapshot
	if f == nil || j.order > f.head.Order || !f.todo[s.partOf(j)] || f.saved[j] != nil {
		return
	}
	f.saved[j] = j.clone()
}

// Seq is how many events led to the state.
func (f *Snapshot) Seq() uint64 { return f.head.Seq }

// Parts is how many parts the state has, those that are not encoded with them.
func (f *Snapshot) Parts() int { return f.size }

// part are the jobs of one.
func (f *Snapshot) part(number int) []*Job {
	first := uint64(number * f.head.Part) // the order of the last job before it
	jobs := After(f.jobs, first)
	return jobs[:len(jobs)-len(After(jobs, first+uint64(f.head.Part)))]
}

// Head is the state without its jobs.
func (f *Snapshot) Head() (json.RawMessage, error) {
	f.head.Archive = f.archive.record()
	b, err := json.Marshal(f.head)
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return b, nil
}

// errSnapshotAnew says that the copies were kept for a later Freeze.
var errSnapshotAnew = errors.New("write snapshot: another was begun meanwhile")

// Encode returns the next part that has changed, with its number; more is false
// where there is none. It is called between steps.
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
	b := append(make([]byte, 0, 500*len(jobs)), `{"jobs":[`...) // about the size of a job that waits
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
