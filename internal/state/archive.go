package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
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
	for _, a := range stored.Attempts {
		j.r.Run.Attempts = append(j.r.Run.Attempts, &Attempt{r: a})
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

// ArchiveKey is whose archived jobs are, and the hour in which their last machine ended.
type ArchiveKey struct {
	ledger.Dimensions
	Currency money.Currency `json:"currency,omitempty"`
	Hour     int64          `json:"hour"` // since 1970; of a job that had no machine that of its end
}

// ArchiveSum is what archived jobs come to. GPUs is by the hour in which they were used.
type ArchiveSum struct {
	States        map[Status]int `json:"states,omitempty"`
	Interruptions int            `json:"interruptions,omitempty"`
	Spent         money.Amount   `json:"spent,omitzero"`
	History       History        `json:"history,omitzero"`
	GPUs          time.Duration  `json:"gpus_ns,omitempty"` // GPU time
}

func (a *ArchiveSum) empty() bool {
	return len(a.States) == 0 && a.Interruptions == 0 && a.Spent.IsZero() && a.History == (History{}) && a.GPUs == 0
}

// archive is what is known of archived jobs together.
type archive struct {
	jobs int
	at   uint64      // number of the last event that changed it
	sum  ledger.Hash // of the hashes of their records, modulo 2^256
	day  int64       // up to which hours are summed by the day
	past map[ArchiveKey]*ArchiveSum
}

// archiveRecord is an archive as a snapshot keeps it.
type archiveRecord struct {
	Jobs int           `json:"jobs"`
	At   uint64        `json:"at"`
	Sum  ledger.Hash   `json:"sum"`
	Day  int64         `json:"day"`
	Past []archivePast `json:"past,omitempty"`
}

type archivePast struct {
	ArchiveKey
	ArchiveSum
}

// archiveHours is for how many days sums of archived jobs are kept by the hour; those of
// earlier ones are kept by the day.
const archiveHours = 40

// record is the archive as a snapshot has it; nil where nothing was ever archived.
func (a *archive) record() *archiveRecord {
	if a.past == nil {
		return nil
	}
	r := &archiveRecord{Jobs: a.jobs, At: a.at, Sum: a.sum, Day: a.day}
	for k, v := range a.past {
		c := *v
		c.States = cloned(v.States)
		r.Past = append(r.Past, archivePast{k, c})
	}
	slices.SortFunc(r.Past, func(a, b archivePast) int { return a.compare(b.ArchiveKey) })
	return r
}

func (a ArchiveKey) compare(b ArchiveKey) int {
	return cmp.Or(cmp.Compare(a.Hour, b.Hour), strings.Compare(a.Team, b.Team), strings.Compare(a.Project, b.Project),
		strings.Compare(a.User, b.User), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Tags, b.Tags),
		cmp.Compare(a.Currency, b.Currency))
}

func cloned(states map[Status]int) map[Status]int {
	if states == nil {
		return nil
	}
	c := make(map[Status]int, len(states))
	for k, v := range states {
		c[k] = v
	}
	return c
}

// restored is the archive of a snapshot.
func (r *archiveRecord) restored() archive {
	if r == nil {
		return archive{}
	}
	a := archive{jobs: r.Jobs, at: r.At, sum: r.Sum, day: r.Day, past: make(map[ArchiveKey]*ArchiveSum, len(r.Past))}
	for _, p := range r.Past {
		a.past[p.ArchiveKey] = &p.ArchiveSum
	}
	return a
}

// ArchivedJobs is how many jobs are archived, and the sum of the hashes of their records,
// by which whoever keeps the records finds that one is missing or was changed.
func (s *State) ArchivedJobs() (jobs int, sum ledger.Hash) { return s.archive.jobs, s.archive.sum }

// ArchivedAt is the number of the last event that archived a job, or brought one back.
func (s *State) ArchivedAt() uint64 { return s.archive.at }

// ArchivedGPUs is the GPU time since then of archived jobs of the owners that holds names. It
// begins with a day, as windows do.
func (s *State) ArchivedGPUs(holds func(ledger.Owner, string) bool, since time.Time) (d time.Duration) {
	for k, v := range s.archive.past {
		if v.GPUs != 0 && (since.IsZero() || k.Hour >= ledger.HourOf(since)) && holds(k.Owner(), k.User) {
			d += v.GPUs
		}
	}
	return d
}

// Archived calls f with what archived jobs come to, in no order.
func (s *State) Archived(f func(ArchiveKey, ArchiveSum)) {
	for k, v := range s.archive.past {
		f(k, *v)
	}
}

// InUse reports whether something refers to the job that has not ended: a machine, also
// one that was given up, a request for one, or a question whose machines they are.
func (s *State) InUse(j *Job) bool {
	if !j.State().Over() || j.Costs() || s.Undecided() {
		return true
	}
	for _, a := range j.Attempts() {
		if a.instance != nil {
			return true
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
			c.Owner, c.User = &j.r.Terms.Owner, j.User()
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

// count adds a job to the sums of the archive, or takes it out.
func (s *State) count(j *Job, by int) {
	if s.archive.past == nil {
		s.archive.past = map[ArchiveKey]*ArchiveSum{}
	}
	owner, history, last, ok := HistoryOf(j)
	if !ok {
		owner.Dimensions, owner.Currency, last = OwnerOf(j), j.r.Terms.Currency, j.r.Finished
	}
	spent := j.Spent(s.now)
	if by < 0 {
		spent, history = spent.Neg(), history.Minus()
	}
	key := ArchiveKey{owner.Dimensions, owner.Currency, s.hour(ledger.HourOf(last))}
	s.sums(key, func(a *ArchiveSum) {
		if a.States == nil {
			a.States = map[Status]int{}
		}
		if a.States[j.r.State] += by; a.States[j.r.State] == 0 {
			delete(a.States, j.r.State)
		}
		for _, try := range j.Attempts() {
			if try.Taken() {
				a.Interruptions += by
			}
		}
		a.Spent, a.History = a.Spent.Add(spent), a.History.Plus(history)
	})
	for _, try := range j.Attempts() {
		gpuHours(try, func(hour int64, d time.Duration) {
			key.Hour = s.hour(hour)
			s.sums(key, func(a *ArchiveSum) { a.GPUs += time.Duration(by) * d })
		})
	}
}

// sums changes a sum, and drops one that is empty.
func (s *State) sums(k ArchiveKey, change func(*ArchiveSum)) {
	a := s.archive.past[k]
	if a == nil {
		a = &ArchiveSum{}
		s.archive.past[k] = a
	}
	if change(a); a.empty() {
		delete(s.archive.past, k)
	}
}

// gpuHours calls f with the GPU time of an attempt in each hour.
func gpuHours(a *Attempt, f func(hour int64, d time.Duration)) {
	if a.GPUs() == 0 || a.Instance() == "" {
		return
	}
	for from := a.From(); from.Before(a.Until()); {
		hour := ledger.HourOf(from)
		end := time.Unix((hour+1)*3600, 0).UTC()
		if end.After(a.Until()) {
			end = a.Until()
		}
		f(hour, time.Duration(a.GPUs())*end.Sub(from))
		from = end
	}
}

// hour is under which hour something of it is summed: its own, or its day's first.
func (s *State) hour(hour int64) int64 {
	if day := hour / 24; day < s.archive.day {
		return day * 24
	}
	return hour
}

// fold sums the hours of days that are far back by the day.
func (s *State) fold() {
	day := ledger.HourOf(s.now)/24 - archiveHours
	if day <= s.archive.day {
		return
	}
	s.archive.day = day
	for k, v := range s.archive.past {
		if hour := s.hour(k.Hour); hour != k.Hour {
			delete(s.archive.past, k)
			k.Hour = hour
			s.sums(k, func(a *ArchiveSum) { a.add(v) })
		}
	}
}

func (a *ArchiveSum) add(b *ArchiveSum) {
	for state, n := range b.States {
		if a.States == nil {
			a.States = map[Status]int{}
		}
		a.States[state] += n
	}
	a.Interruptions, a.Spent, a.GPUs = a.Interruptions+b.Interruptions, a.Spent.Add(b.Spent), a.GPUs+b.GPUs
	a.History = a.History.Plus(b.History)
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
