package state

import (
	"slices"
	"time"
)

// Keep is a part of a shared machine that nobody else may take until By: the job saves, and leaves its own machine for
// it.
type Keep struct {
	Instance string    `json:"instance"`
	Job      string    `json:"job,omitempty"`
	Epoch    int       `json:"epoch,omitempty"` // of the job at that time; its next request ends the keep
	Portion  *Portion  `json:"portion,omitempty"`
	By       time.Time `json:"by"`
}

// keep keeps a part for j, and forgets those of others that have ended.
func (s *State) keep(j *Job, k Keep) {
	i := s.instances[k.Instance]
	if i == nil {
		return
	}
	k.Job, k.Epoch = j.ID(), j.Epoch()
	list := []Keep{k} // a snapshot may share the old one
	for _, o := range i.r.Keeps {
		if o.Job != k.Job && s.Keeps(&o) {
			list = append(list, o)
		}
	}
	i.r.Keeps = list
}

// Keeps reports whether a part is still kept: its job still saves, or looks for its next machine in time.
func (s *State) Keeps(k *Keep) bool {
	j := s.jobs[k.Job]
	return j != nil && s.now.Before(k.By) && j.Epoch() == k.Epoch && !j.State().Over() && j.State() != Paused &&
		j.Ending() == ""
}

// KeptUntil returns when the last part of i that is still kept ends; zero: none is kept.
func (s *State) KeptUntil(i *Instance) (by time.Time) {
	for n := range i.r.Keeps {
		if k := &i.r.Keeps[n]; s.Keeps(k) && k.By.After(by) {
			by = k.By
		}
	}
	return by
}

// KeepsFor reports whether a part of i is still kept for j.
func (s *State) KeepsFor(j *Job, i *Instance) bool {
	return slices.ContainsFunc(i.r.Keeps, func(k Keep) bool { return k.Job == j.ID() && s.Keeps(&k) })
}

// Keeps returns the parts that are or were kept, the newest first.
func (i *Instance) Keeps() []Keep { return i.r.Keeps }

// SeatsFor returns the seats of i as j finds them: those of its tasks, and the parts kept for other jobs.
func (s *State) SeatsFor(j *Job, i *Instance) []Seat {
	list := i.r.Seats
	for n := range i.r.Keeps {
		if k := &i.r.Keeps[n]; k.Job != j.ID() && s.Keeps(k) {
			list = append(list[:len(list):len(list)], Seat{Portion: k.Portion})
		}
	}
	return list
}
