package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"scrimp/internal/decide/ledger"
)

// A job that is over for long is archived: its record goes into the log with the fact, and
// the state keeps what limits, accounts and histories sum over such jobs, by owner and hour.
// An event about an archived job is preceded by Rehydrated, which brings the record back.

// JobArchived: a job leaves the state. Record is all that is known of it.
type JobArchived struct {
	Job    string          `json:"job"`
	Record json.RawMessage `json:"record"`
}

// JobRehydrated: an archived job is in the state again, as the event's record says.
type JobRehydrated struct {
	Job string `json:"job"`
}

// Rehydrated: something is about to happen to an archived job. Hash is that of the record
// as it was archived.
type Rehydrated struct {
	Job    string          `json:"job"`
	Record json.RawMessage `json:"record"`
	Hash   ledger.Hash     `json:"hash"`
}

func (JobArchived) Fact() string   { return "job_archived" }
func (JobRehydrated) Fact() string { return "job_rehydrated" }
func (Rehydrated) Kind() string    { return "rehydrated" }

func init() {
	reads[JobArchived]()
	reads[JobRehydrated]()
}

// RecordHash is what a record is recognised by.
func RecordHash(record json.RawMessage) ledger.Hash { return sha256.Sum256(record) }

// ReadJob reads the record of an archived job. It has no machine.
func ReadJob(record json.RawMessage) (*Job, error) {
	p, err := ReadPart(append(append([]byte(`{"jobs":[`), record...), "]}"...))
	if err != nil {
		return nil, err
	}
	if len(p.jobs) != 1 || p.jobs[0].JobRecord == nil || p.jobs[0].ID == "" {
		return nil, fmt.Errorf("read the record of a job: it is none")
	}
	stored := &p.jobs[0]
	j := &Job{r: *stored.JobRecord, order: stored.Order}
	if j.r.Run = stored.Run; stored.Run == nil {
		return j, nil
	}
	for n := range stored.Attempts {
		a := &stored.Attempts[n]
		j.r.Run.Attempts = append(j.r.Run.Attempts, a.attempt())
	}
	return j, nil
}

// Archived reads the job of an event that brings it back, where the record is the one
// that was archived under its hash.
func (b Rehydrated) Archived() (*Job, error) {
	if RecordHash(b.Record) != b.Hash {
		return nil, fmt.Errorf("rehydrate %s: the record is not the one that was archived", b.Job)
	}
	j, err := ReadJob(b.Record)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rehydrate %s: %w", b.Job, err)
	case j.ID() != b.Job:
		return nil, fmt.Errorf("rehydrate %s: the record is of %s", b.Job, j.ID())
	case !j.State().Over() || j.Costs():
		return nil, fmt.Errorf("rehydrate %s: the record is of a job that is not over", b.Job)
	}
	return j, nil
}

// ArchivedJobs is how many jobs are archived, and the sum of the hashes of their records,
// by which whoever keeps the records finds that one is missing or was changed.
func (s *State) ArchivedJobs() (jobs int, sum ledger.Hash) { return s.archive.jobs, s.archive.sum }

// ArchivedAt is the number of the last event that archived a job, or brought one back.
func (s *State) ArchivedAt() uint64 { return s.archive.at }

// InUse reports whether something refers to the job that has not ended: a machine, also
// one that was given up, a request for one, or a question whose machines they are.
func (s *State) InUse(j *Job) bool {
	if !j.State().Over() || j.Costs() || s.Undecided() {
		return true
	}
	for _, a := range j.Attempts() {
		for _, t := range a.tasks {
			if t.instance != nil {
				return true
			}
		}
	}
	for _, i := range s.instances {
		if i.r.Job == j.r.ID || len(i.r.Seats) > 0 && s.seated(i) != nil && s.seated(i).r.Job == j.r.ID {
			return true
		}
	}
	return false
}

// applyArchive takes a job out of the state, or back into it.
func (s *State) applyArchive(e *Event, f Fact) {
	s.fold()
	s.archive.at = s.seq
	switch f := f.(type) {
	case JobArchived:
		j := s.jobs[f.Job]
		if j == nil || s.InUse(j) {
			panic("state: job " + f.Job + " is not known, or in use: it is not archived")
		}
		s.count(j, 1)
		if g := s.groups[j.r.Terms.Group]; g != nil {
			g.Archived = g.Archived.Add(j.Spent(s.now))
		}
		s.archive.jobs++
		s.archive.sum = plus(s.archive.sum, RecordHash(f.Record))
		s.removes(j)
	case JobRehydrated:
		b := e.Body.(Rehydrated)
		j, err := b.Archived()
		if err != nil || s.jobs[f.Job] != nil || s.archive.jobs == 0 {
			panic(fmt.Sprintf("state: job %s is not archived, or its record is wrong: %v", f.Job, err))
		}
		s.count(j, -1)
		if g := s.groups[j.r.Terms.Group]; g != nil {
			g.Archived = g.Archived.Sub(j.Spent(s.now))
		}
		s.archive.jobs--
		s.archive.sum = minus(s.archive.sum, b.Hash)
		s.returns(j)
	}
}

// removes takes a job out of the indexes.
func (s *State) removes(j *Job) {
	s.marks(j)
	for n := range s.spending.Newest {
		if c := &s.spending.Newest[n]; c.Job == j.r.ID {
			owner := j.r.Terms.Owner // a part of the job would hold all of it
			c.Owner, c.User = &owner, j.User()
		}
	}
	delete(s.jobs, j.r.ID)
	at, _ := slices.BinarySearchFunc(s.inOrder, j.order, byOrder)
	s.own()
	s.inOrder = slices.Delete(s.inOrder, at, at+1)
}

// returns puts a job into the indexes.
func (s *State) returns(j *Job) {
	s.jobs[j.r.ID] = j
	at, _ := slices.BinarySearchFunc(s.inOrder, j.order, byOrder)
	s.own()
	s.inOrder = slices.Insert(s.inOrder, at, j)
	s.marks(j)
}

func byOrder(a *Job, order uint64) int { return cmp.Compare(a.order, order) }

// own makes the list of jobs the state's own, where a snapshot that is being encoded has it.
func (s *State) own() {
	if s.lent {
		s.inOrder, s.lent = slices.Clone(s.inOrder), false
	}
}

// marks notes that the job's part of a snapshot changes.
func (s *State) marks(j *Job) {
	s.spare(j)
	j.changed, s.parts[s.partOf(j)] = s.seq, s.seq
}

// plus is a + b modulo 2^256.
func plus(a, b ledger.Hash) (sum ledger.Hash) {
	carry := 0
	for n := len(a) - 1; n >= 0; n-- {
		carry += int(a[n]) + int(b[n])
		sum[n] = byte(carry)
		carry >>= 8
	}
	return sum
}

// minus is a - b modulo 2^256.
func minus(a, b ledger.Hash) (rest ledger.Hash) {
	borrow := 0
	for n := len(a) - 1; n >= 0; n-- {
		d := int(a[n]) - int(b[n]) - borrow
		borrow = 0
		if d < 0 {
			d, borrow = d+256, 1
		}
		rest[n] = byte(d)
	}
	return rest
}

// After are those of a list in the order of submission that were submitted after that one.
func After(jobs []*Job, order uint64) []*Job {
	at, there := slices.BinarySearchFunc(jobs, order, byOrder)
	if there {
		at++
	}
	return jobs[at:]
}
