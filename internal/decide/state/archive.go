package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/quantity"
)

// A job that ended long ago is archived: its record goes into the log with the fact, and the state keeps only what
// limits, accounts and histories sum over such jobs, by owner and hour. A Rehydrated event brings the record back
// before any event about an archived job.

// JobArchived: a job leaves the state. Record has everything known about it.
type JobArchived struct {
	Job    string          `json:"job"`
	Record json.RawMessage `json:"record"`
}

// JobRehydrated: an archived job is back in the state, as in the record of the event.
type JobRehydrated struct {
	Job string `json:"job"`
}

// Rehydrated: something is about to happen to an archived job. Hash is the hash of the record when it was archived.
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

// RecordHash returns the hash that identifies a record.
func RecordHash(record json.RawMessage) ledger.Hash { return sha256.Sum256(record) }

// ReadJob decodes the record of an archived job. Such a job has no machine.
func ReadJob(record json.RawMessage) (*Job, error) {
	p, err := ReadPart(append(append([]byte(`{"jobs":[`), record...), "]}"...))
	if err != nil {
		return nil, err
	}
	if len(p.jobs) != 1 || p.jobs[0].JobRecord == nil || p.jobs[0].ID == "" {
		return nil, fmt.Errorf("read the record of a job: this is not a record")
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

// Archived decodes the job that the event brings back, and checks the record against its hash.
func (b Rehydrated) Archived() (*Job, error) {
	if RecordHash(b.Record) != b.Hash {
		return nil, fmt.Errorf("rehydrate %s: the record differs from the archived one", b.Job)
	}
	j, err := ReadJob(b.Record)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rehydrate %s: %w", b.Job, err)
	case j.ID() != b.Job:
		return nil, fmt.Errorf("rehydrate %s: the record belongs to %s", b.Job, j.ID())
	case !j.State().Over() || j.Costs():
		return nil, fmt.Errorf("rehydrate %s: the job of the record is not finished", b.Job)
	}
	return j, nil
}

// ArchivedJobs returns the number of archived jobs, and the sum of the hashes of the records of archived jobs and
// groups. Whoever stores the records uses the sum to detect a missing or changed one.
func (s *State) ArchivedJobs() (jobs int, sum ledger.Hash) { return s.archive.jobs, s.archive.sum }

// ArchivedAt is the sequence number of the last event that archived a job or a group, or brought one back.
func (s *State) ArchivedAt() uint64 { return s.archive.at }

// InUse reports whether something that has not ended refers to the job: a machine (also one that was given up), a
// request for one, or machines that nobody has adopted or released yet.
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

// applyArchive removes a job or a group from the state, or brings it back.
func (s *State) applyArchive(e *Event, f Fact) {
	s.fold()
	s.archive.at = s.seq
	switch f := f.(type) {
	case JobArchived:
		j := s.jobs[f.Job]
		if j == nil || s.InUse(j) {
			panic("state: job " + f.Job + " is unknown or in use: the core must not archive it")
		}
		s.count(j, 1)
		if g := s.groups[j.r.Terms.Group]; g != nil {
			g.Archived, g.Used = g.Archived.Add(j.Spent(s.now)), quantity.Add(g.Used, j.GPUServed())
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
			g.Archived, g.Used = g.Archived.Sub(j.Spent(s.now)), quantity.Sub(g.Used, j.GPUServed())
		}
		s.archive.jobs--
		s.archive.sum = minus(s.archive.sum, b.Hash)
		s.returns(j)
	case GroupArchived:
		s.archivesGroup(f)
	case GroupRehydrated:
		s.returnsGroup(e, f)
	}
}

// removes takes a job out of the indexes.
func (s *State) removes(j *Job) {
	s.marks(j)
	for n := range s.spending.Newest {
		if c := &s.spending.Newest[n]; c.Job == j.r.ID {
			owner := j.r.Terms.Owner // a pointer into the job would keep all of it in memory
			c.Owner, c.User = &owner, j.User()
		}
	}
	delete(s.jobs, j.r.ID)
	at, _ := slices.BinarySearchFunc(s.inOrder, j.order, byOrder)
	s.own()
	s.inOrder = slices.Delete(s.inOrder, at, at+1)
}

// returns puts a job back into the indexes.
func (s *State) returns(j *Job) {
	s.jobs[j.r.ID] = j
	at, _ := slices.BinarySearchFunc(s.inOrder, j.order, byOrder)
	s.own()
	s.inOrder = slices.Insert(s.inOrder, at, j)
	s.marks(j)
}

func byOrder(a *Job, order uint64) int { return cmp.Compare(a.order, order) }

// own copies the list of jobs if a snapshot that is being encoded shares it.
func (s *State) own() {
	if s.lent {
		s.inOrder, s.lent = slices.Clone(s.inOrder), false
	}
}

// marks records that the job's part of a snapshot changes.
func (s *State) marks(j *Job) {
	s.spare(j)
	j.changed, s.parts[s.partOf(j)] = s.seq, s.seq
}

// plus returns a + b modulo 2^256.
func plus(a, b ledger.Hash) (sum ledger.Hash) {
	carry := 0
	for n := len(a) - 1; n >= 0; n-- {
		carry += int(a[n]) + int(b[n])
		sum[n] = byte(carry)
		carry >>= 8
	}
	return sum
}

// minus returns a - b modulo 2^256.
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

// After returns the jobs of a list in submission order that were submitted after the given order.
func After(jobs []*Job, order uint64) []*Job {
	at, there := slices.BinarySearchFunc(jobs, order, byOrder)
	if there {
		at++
	}
	return jobs[at:]
}
