package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Frozen is the state as it was at one event. A million jobs take seconds to
// encode, so that is done in pieces between the machine's steps. A step that
// changes a job whose turn has not come leaves a copy of it as it was.
type Frozen struct {
	m     *Machine
	head  snapshot // without the jobs
	jobs  []*Job   // in the order of submission
	fresh *urgency // who stood in it was to be tried
	next  int      // of jobs, to be encoded
	saved map[*Job]*Job
}

// Freeze keeps the state as it is now, until it is encoded or the next Freeze.
func (m *Machine) Freeze() *Frozen {
	f := &Frozen{
		m: m, jobs: m.inOrder[:len(m.inOrder):len(m.inOrder)], fresh: &m.queue.heaps[m.queue.fresh], saved: map[*Job]*Job{},
		head: snapshot{Version: SnapshotVersion, Config: m.cfg, Now: m.now, Seq: m.seq, Order: m.order, Orphans: maps.Clone(m.orphans), Buried: maps.Clone(m.buried), Heads: maps.Clone(m.heads), Again: m.queue.again, Rules: m.rules},
	}
	for _, o := range m.sale {
		c := *o
		f.head.Offers = append(f.head.Offers, &c)
	}
	m.frozen = f
	// What holds a machine, or may still be billed for one, changes from
	// everywhere. What is left is over for good, or waits.
	for _, a := range m.attempts {
		m.spare(m.jobs[a.Job])
	}
	for _, a := range m.given {
		m.spare(m.jobs[a.Job])
	}
	return f
}

// touch is called before a job that waits is changed.
func (m *Machine) touch(j *Job) {
	j.changed = m.seq
	m.spare(j)
}

// spare keeps a copy of j as it is, where it is frozen and its turn has not come.
func (m *Machine) spare(j *Job) {
	f := m.frozen
	if f == nil || f.next >= len(f.jobs) || j.place.order < f.jobs[f.next].place.order || j.place.order > f.head.Order || f.saved[j] != nil {
		return
	}
	c := *j
	c.Stands, c.Attempts = slices.Clone(c.Stands), slices.Clone(c.Attempts)
	for i, a := range c.Attempts {
		b := *a
		b.Rates, b.Uses = slices.Clone(b.Rates), maps.Clone(b.Uses)
		c.Attempts[i] = &b
	}
	f.saved[j] = &c
}

// Seq is how many events led to the state.
func (f *Frozen) Seq() uint64 { return f.head.Seq }

// Jobs is how many jobs the state has.
func (f *Frozen) Jobs() int { return len(f.jobs) }

// errFrozenAnew says that the copies were kept for a later Freeze.
var errFrozenAnew = errors.New("write snapshot: another was begun meanwhile")

// Encode adds at most that many jobs to b, which begins empty, and reports
// whether b is whole now. It is called between steps.
func (f *Frozen) Encode(b json.RawMessage, most int) (whole json.RawMessage, done bool, err error) {
	if f.m.frozen != f {
		return nil, false, errFrozenAnew
	}
	if f.next == 0 {
		head, err := json.Marshal(f.head)
		if err != nil {
			return nil, false, fmt.Errorf("write snapshot: %w", err)
		}
		b = append(slices.Grow(b, len(head)+600*len(f.jobs)), head[:len(head)-1]...) // about the size of a job that waits
		b = append(b, `,"jobs":[`...)
	}
	for range min(most, len(f.jobs)-f.next) {
		j := f.jobs[f.next]
		if c := f.saved[j]; c != nil {
			delete(f.saved, j)
			j = c
		}
		stored := storedJob{Job: j, Order: j.place.order}
		switch j.place.in {
		case nil:
		case f.fresh:
			stored.Queue = 1
		default:
			stored.Queue = 2
		}
		text, err := json.Marshal(stored)
		if err != nil {
			return nil, false, fmt.Errorf("write snapshot: job %s: %w", j.ID, err)
		}
		if f.next > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
		f.next++
	}
	if f.next < len(f.jobs) {
		return b, false, nil
	}
	f.m.frozen = nil
	return append(b, "]}"...), true, nil
}
