package step

import (
	"strings"
	"time"

	"scrimp/internal/decide/state"
)

// Wakes is a heap of due times, the earliest first. Entries whose job has another time by now are skipped. It does
// not use heap.Interface, which would allocate each entry twice.
type Wakes []Wake

// Wake is a due time of a job.
type Wake struct {
	At  time.Time
	Job *state.Job
}

func (w Wake) before(v Wake) bool {
	if !w.At.Equal(v.At) {
		return w.At.Before(v.At)
	}
	return w.Job.Order() < v.Job.Order()
}

// Push adds x.
func (w *Wakes) Push(x Wake) {
	list := append(*w, x)
	*w = list
	for i := len(list) - 1; i > 0; {
		above := (i - 1) / 2
		if !list[i].before(list[above]) {
			return
		}
		list[i], list[above] = list[above], list[i]
		i = above
	}
}

// Pop removes and returns the earliest.
func (w *Wakes) Pop() Wake {
	list := *w
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], Wake{}
	list = list[:last]
	*w = list
	for i := 0; ; {
		least := i
		for _, below := range [...]int{2*i + 1, 2*i + 2} {
			if below < len(list) && list[below].before(list[least]) {
				least = below
			}
		}
		if least == i {
			return first
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}

// Tries is the largest number of queued jobs that one step tries.
const Tries = 64

// WakeAt schedules a review of j at t, unless an earlier one is scheduled.
func (c *Context) WakeAt(j *state.Job, t time.Time) {
	if t.IsZero() {
		return
	}
	if !t.After(c.Now()) {
		t = c.Now().Add(time.Nanosecond)
	}
	if p := TimesOf(j); p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
		c.Wakes.Push(Wake{t, j})
	}
}

// rehydratedFor is how much longer a rehydrated job stays, because the event that it was brought back for is still
// to come.
const rehydratedFor = time.Second

// ArchiveAt is when an ended job is archived: some time after its end and that of its last machine, and longer if a
// bill may still come. ok is false if the job stays.
func (c *Context) ArchiveAt(j *state.Job) (t time.Time, ok bool) {
	after := c.Config().ArchiveAfter
	if after <= 0 || !j.State().Over() || j.Costs() {
		return t, false
	}
	last := Later(j.Finished(), TimesOf(j).Back.Add(rehydratedFor))
	for _, a := range j.Attempts() {
		last = Later(last, a.Until())
		if a.Instance() != "" && !a.Billed() && !a.Machine().Prepaid {
			after = max(after, c.Config().ArchiveUnbilled)
		}
	}
	return last.Add(after), true
}

// Closes schedules the archiving of an ended job.
func (c *Context) Closes(j *state.Job) {
	t, ok := c.ArchiveAt(j)
	if p := TimesOf(j); !ok {
		p.Archive = time.Time{}
	} else if !p.Archive.Equal(t) {
		p.Archive = t
		c.Archive.Push(Wake{t, j})
	}
}

// OfLaunch returns the job that a launch or attempt belongs to by its ID, or "".
func OfLaunch(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return ""
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
