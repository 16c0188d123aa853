package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// ArchiveKey is the owner of archived jobs, and the hour in which their last machine ended.
type ArchiveKey struct {
	ledger.Dimensions
	Currency money.Currency `json:"currency,omitempty"`
	Hour     int64          `json:"hour"` // since 1970; the hour of its end for a job that had no machine
}

// ArchiveSum is the sum over archived jobs. GPUs counts by the hour of use.
type ArchiveSum struct {
	Succeeded     int           `json:"succeeded,omitempty"`
	Failed        int           `json:"failed,omitempty"`
	Stopped       int           `json:"stopped,omitempty"`
	Cancelled     int           `json:"cancelled,omitempty"`
	Interruptions int           `json:"interruptions,omitempty"`
	Spent         money.Amount  `json:"spent,omitzero"`
	History       History       `json:"history,omitzero"`
	GPUs          time.Duration `json:"gpus_ns,omitempty"` // GPU time
}

// States returns the number of jobs by final state.
func (a ArchiveSum) States() map[Status]int {
	return map[Status]int{Succeeded: a.Succeeded, Failed: a.Failed, Stopped: a.Stopped, Cancelled: a.Cancelled}
}

// of returns the counter of a final state.
func (a *ArchiveSum) of(s Status) *int {
	switch s {
	case Succeeded:
		return &a.Succeeded
	case Failed:
		return &a.Failed
	case Stopped:
		return &a.Stopped
	case Cancelled:
		return &a.Cancelled
	case Held, Queued, Running, Paused:
	}
	panic("state: an archived job is in state " + string(s))
}

// plus returns the sum of a and b.
func (a ArchiveSum) plus(b ArchiveSum) ArchiveSum {
	return ArchiveSum{
		Succeeded: a.Succeeded + b.Succeeded, Failed: a.Failed + b.Failed, Stopped: a.Stopped + b.Stopped,
		Cancelled: a.Cancelled + b.Cancelled, Interruptions: a.Interruptions + b.Interruptions,
		Spent: a.Spent.Add(b.Spent), History: a.History.Plus(b.History), GPUs: a.GPUs + b.GPUs,
	}
}

// archive is the sums over all archived jobs, and the number of archived groups.
type archive struct {
	jobs   int
	groups int
	at     uint64      // sequence number of the last event that changed it
	sum    ledger.Hash // sum of the hashes of their records, modulo 2^256
	day    int64       // hours before this day are summed by day
	past   map[ArchiveKey]ArchiveSum
}

// archiveRecord is the form of an archive in a snapshot.
type archiveRecord struct {
	Jobs   int           `json:"jobs"`
	Groups int           `json:"groups,omitempty"`
	At     uint64        `json:"at"`
	Sum    ledger.Hash   `json:"sum"`
	Day    int64         `json:"day"`
	Past   []archivePast `json:"past,omitempty"`
}

type archivePast struct {
	ArchiveKey
	ArchiveSum
}

// archiveHours is the number of days for which sums are kept by the hour. Older ones are kept by the day.
const archiveHours = 40

// clone returns a copy that later facts do not affect.
func (a archive) clone() archive {
	a.past = maps.Clone(a.past)
	return a
}

// record returns the snapshot form of the archive, or nil if nothing was ever archived.
func (a archive) record() *archiveRecord {
	if a.at == 0 && a.past == nil {
		return nil
	}
	r := &archiveRecord{Jobs: a.jobs, Groups: a.groups, At: a.at, Sum: a.sum, Day: a.day}
	for k, v := range a.past {
		r.Past = append(r.Past, archivePast{k, v})
	}
	slices.SortFunc(r.Past, func(a, b archivePast) int { return a.compare(b.ArchiveKey) })
	return r
}

func (a ArchiveKey) compare(b ArchiveKey) int {
	return cmp.Or(cmp.Compare(a.Hour, b.Hour), strings.Compare(a.Team, b.Team), strings.Compare(a.Project, b.Project),
		strings.Compare(a.User, b.User), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Tags, b.Tags),
		cmp.Compare(a.Currency, b.Currency))
}

// restored returns the archive of a snapshot.
func (r *archiveRecord) restored() archive {
	if r == nil {
		return archive{}
	}
	a := archive{jobs: r.Jobs, groups: r.Groups, at: r.At, sum: r.Sum, day: r.Day,
		past: make(map[ArchiveKey]ArchiveSum, len(r.Past))}
	for _, p := range r.Past {
		a.past[p.ArchiveKey] = p.ArchiveSum
	}
	return a
}

// count adds a job to the sums of the archive, or removes it (by is -1).
func (s *State) count(j *Job, by int) {
	if s.archive.past == nil {
		s.archive.past = map[ArchiveKey]ArchiveSum{}
	}
	owner, history, last, ok := HistoryOf(j)
	if !ok {
		owner.Dimensions, owner.Currency, last = OwnerOf(j), j.r.Terms.Currency, j.r.Finished
	}
	sum := ArchiveSum{Spent: j.Spent(s.now), History: history}
	if by < 0 {
		sum.Spent, sum.History = sum.Spent.Neg(), history.Minus()
	}
	*sum.of(j.r.State) = by
	for _, try := range j.Attempts() {
		for _, t := range try.tasks {
			if t.Taken() {
				sum.Interruptions += by
			}
		}
	}
	key := ArchiveKey{owner.Dimensions, owner.Currency, s.hour(ledger.HourOf(last))}
	s.sums(key, sum)
	for _, try := range j.Attempts() {
		for _, t := range try.tasks {
			gpuHours(t, func(hour int64, d time.Duration) {
				key.Hour = s.hour(hour)
				s.sums(key, ArchiveSum{GPUs: quantity.Times(d, by)})
			})
		}
	}
}

// sums adds to one sum, and deletes it if the result is empty.
func (s *State) sums(k ArchiveKey, more ArchiveSum) {
	sum := s.archive.past[k].plus(more)
	if s.archive.past[k] = sum; sum == (ArchiveSum{}) {
		delete(s.archive.past, k)
	}
}

// gpuHours calls f with the GPU time of a task in each hour.
func gpuHours(a *Task, f func(hour int64, d time.Duration)) {
	if a.GPUs() == 0 || a.Instance() == "" {
		return
	}
	for from := a.From(); from.Before(a.Until()); {
		hour := ledger.HourOf(from)
		end := time.Unix((hour+1)*3600, 0).UTC()
		if end.After(a.Until()) {
			end = a.Until()
		}
		f(hour, quantity.Times(end.Sub(from), a.GPUs()))
		from = end
	}
}

// hour returns the hour that a sum is kept under: its own, or the first of its day if that is long ago.
func (s *State) hour(hour int64) int64 {
	if day := hour / 24; day < s.archive.day {
		return day * 24
	}
	return hour
}

// fold merges the hours of old days into days.
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
			s.sums(k, v)
		}
	}
}

// ArchivedGPUs returns the GPU time since the given time of archived jobs whose owner and user satisfy holds. since
// must start a day, as windows do.
func (s *State) ArchivedGPUs(holds func(ledger.Owner, string) bool, since time.Time) (d time.Duration) {
	for k, v := range s.archive.past {
		if v.GPUs != 0 && (since.IsZero() || k.Hour >= ledger.HourOf(since)) && holds(k.Owner(), k.User) {
			d += v.GPUs
		}
	}
	return d
}

// Archived calls f with each sum over archived jobs, in no order.
func (s *State) Archived(f func(ArchiveKey, ArchiveSum)) {
	for k, v := range s.archive.past {
		f(k, v)
	}
}
