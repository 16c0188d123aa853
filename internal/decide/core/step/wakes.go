package step

import (
	"strings"
	"time"

	"scrimp/internal/decide/state"
)

// Wakes are the times at which jobs want to be looked at, as a heap with the earliest
// first; an entry whose job has another time by now is passed over. It is no
// heap.Interface: that would put each entry on the program's heap twice.
type Wakes []Wake

// Wake is when a job wants to be looked at.
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

// Pop takes the earliest.
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

// Tries is how many queued jobs one step tries, at most.
const Tries = 64

// WakeAt asks for a review of j at t, or earlier where that was asked before.
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

// rehydratedFor is how much longer a job stays that was brought back: what it was brought back for is still to come.
const rehydratedFor = time.Second

// ArchiveAt is when a job that is over is archived: some time after its end and that of its
// last machine, a longer one where a bill may come. ok is false where it stays.
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

// Closes schedules the archiving of a job that is over.
func (c *Context) Closes(j *state.Job) {
	t, ok := c.ArchiveAt(j)
	if p := TimesOf(j); !ok {
		p.Archive = time.Time{}
	} else if !p.Archive.Equal(t) {
		p.Archive = t
		c.Archive.Push(Wake{t, j})
	}
}

// OfLaunch is the job whose launch or attempt has that name; "": none can.
func OfLaunch(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return ""
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
