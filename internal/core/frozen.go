package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"scrimp/internal/plan"
)

// Frozen is the state as it was at one event. A million jobs take seconds to
// encode, so only those parts are that have changed, one at a time between the
// machine's steps. A step that changes a job whose turn has not come leaves a copy
// of it as it was.
type Frozen struct {
	m     *Machine
	head  head
	jobs  []*Job       // in the order of submission
	parts []int        // to be encoded, in order
	todo  map[int]bool // the same, while they are
	saved map[*Job]*Job
}

// Freeze keeps the state as it is now, until it is encoded or the next Freeze.
// Parts that have not changed since the event are left out; 0 is all.
func (m *Machine) Freeze(since uint64) *Frozen {
	f := &Frozen{
		m: m, jobs: m.inOrder[:len(m.inOrder):len(m.inOrder)], todo: map[int]bool{}, saved: map[*Job]*Job{},
		head: head{Version: SnapshotVersion, Config: m.cfg, Now: m.now, Seq: m.seq, Order: m.order, Orphans: maps.Clone(m.orphans), Buried: maps.Clone(m.buried), Heads: maps.Clone(m.heads),
			Fresh: m.queue.fresh, Again: m.queue.again, Kinds: m.queue.stored(), Rules: m.rules, Part: m.part, Jobs: len(m.inOrder)},
	}
	for _, o := range m.sale {
		c := *o
		f.head.Offers = append(f.head.Offers, &c)
	}
	for n, at := range m.parts {
		if since == 0 || at > since {
			f.parts, f.todo[n] = append(f.parts, n), true
		}
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

// ChangedJobs is how many jobs, about, a Freeze since that event would encode.
func (m *Machine) ChangedJobs(since uint64) int {
	n := 0
	for _, at := range m.parts {
		if at > since {
			n++
		}
	}
	return n * m.part
}

// touch is called before a job that waits is changed.
func (m *Machine) touch(j *Job) {
	m.mark(j)
	m.spare(j)
}

// spare keeps a copy of j as it is, where it is frozen and its turn has not come.
func (m *Machine) spare(j *Job) {
	f := m.frozen
	if f == nil || j.place.order > f.head.Order || !f.todo[m.partOf(j)] || f.saved[j] != nil {
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

// Parts is how many parts the state has, those that are not encoded with them.
func (f *Frozen) Parts() int { return (len(f.jobs) + f.head.Part - 1) / f.head.Part }

// Head is the state without its jobs.
func (f *Frozen) Head() (json.RawMessage, error) {
	b, err := json.Marshal(f.head)
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return b, nil
}

// errFrozenAnew says that the copies were kept for a later Freeze.
var errFrozenAnew = errors.New("write snapshot: another was begun meanwhile")

// Encode returns the next part that has changed, with its number; more is false
// where there is none. It is called between steps.
func (f *Frozen) Encode() (number int, part json.RawMessage, more bool, err error) {
	if f.m.frozen != f {
		return 0, nil, false, errFrozenAnew
	}
	if len(f.parts) == 0 {
		f.m.frozen = nil
		return 0, nil, false, nil
	}
	number = f.parts[0]
	f.parts = f.parts[1:]
	delete(f.todo, number)
	jobs := f.jobs[number*f.head.Part : min((number+1)*f.head.Part, len(f.jobs))]
	var rejected [][]plan.Rejection
	b := append(make([]byte, 0, 500*len(jobs)), `{"jobs":[`...) // about the size of a job that waits
	for i, j := range jobs {
		if c := f.saved[j]; c != nil {
			delete(f.saved, j)
			j = c
		}
		stored := storedJob{Job: j, Order: j.place.order}
		if j.place.waits {
			stored.Queue, stored.Loose = j.place.side+1, j.place.loose
		}
		if list := j.Last.Rejected; len(list) > 0 {
			rejected, stored.Rejected = listed(rejected, list)
			c := *j
			c.Last.Rejected = nil
			stored.Job = &c
		}
		text, err := json.Marshal(stored)
		if err != nil {
			return 0, nil, false, fmt.Errorf("write snapshot: job %s: %w", j.ID, err)
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

// listed returns the number, from 1, of a list among the newest ones, or adds it.
func listed(all [][]plan.Rejection, list []plan.Rejection) ([][]plan.Rejection, int) {
	for n := len(all); n > max(0, len(all)-16); n-- {
		if slices.Equal(all[n-1], list) {
			return all, n
		}
	}
	return append(all, list), len(all) + 1
}
