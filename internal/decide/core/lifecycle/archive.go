package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// archivedAtOnce is the largest number of jobs that one step archives; that takes about 2 ms.
const archivedAtOnce = 16

// archivedLater is when a job that is due for the archive but still in use is checked again.
const archivedLater = time.Hour

// ClosesAll schedules all jobs for the archive again.
func (js *Jobs) ClosesAll() {
	js.Archive = nil
	for _, j := range js.State.Jobs() {
		step.TimesOf(j).Archive = time.Time{}
		js.Closes(j)
	}
}

// Archives archives the jobs that are due. It does so only on ticks, so that no submission waits for it.
func (js *Jobs) Archives() {
	if _, tick := js.Event.Body.(state.Tick); !tick {
		return
	}
	for n := 0; n < archivedAtOnce && len(js.Archive) > 0 && !js.Archive[0].At.After(js.Now()); {
		w := js.Archive.Pop()
		p := step.TimesOf(w.Job)
		if !w.At.Equal(p.Archive) {
			continue
		}
		p.Archive = time.Time{}
		js.Works(w.Job)
		t, ok := js.ArchiveAt(w.Job)
		switch {
		case !ok:
		case t.After(js.Now()):
			js.Closes(w.Job)
		case *admission.SumOf(w.Job) != admission.IsSummed, js.State.InUse(w.Job), js.heldOpen(w.Job):
			p.Archive = js.Now().Add(archivedLater)
			js.Archive.Push(step.Wake{At: p.Archive, Job: w.Job})
		default:
			js.archiveJob(w.Job)
			n++
		}
	}
}

// heldOpen reports whether a group whose budget the job uses may still get members. The rules weigh those against the
// group's jobs, or, for a schedule, against its last runs and the sum of the others.
func (js *Jobs) heldOpen(j *state.Job) bool {
	of := ""
	for h := js.State.Group(j.Terms().Parent); h != nil; h = js.State.Group(h.Terms.Parent) {
		if !h.Closed() && h.Keeps(of) {
			return true
		}
		of = h.Name
	}
	return false
}

func (js *Jobs) archiveJob(j *state.Job) {
	record, err := state.EncodeJob(j)
	if err != nil {
		panic(fmt.Sprintf("core: encode job %s: %v", j.ID(), err)) // snapshots have encoded it before
	}
	js.admission.WeighPart(j, -1)
	js.soonServed(j, 1)
	js.books.Past.Archives(accounting.RecordOf(j), j)
	js.Fact(state.JobArchived{Job: j.ID(), Record: record})
}

// soonServed adds the GPU time of an archived job to the sums for limits that are being set, because their pass
// over all jobs no longer finds it. With by -1 it removes a job that the pass finds again.
func (js *Jobs) soonServed(j *state.Job, by int) {
	s := js.admission.Soon
	if s == nil || j.Order() <= s.UpTo {
		return
	}
	for _, u := range s.Usage {
		for _, a := range j.Attempts() {
			if a.GPUs() > 0 && u.Scope.Holds(j.Terms().Owner, j.User()) {
				u.Gpus = quantity.Add(u.Gpus, quantity.Times(admission.GPUTime(a, a.Until(), u.Begin), by))
			}
		}
	}
}

// Rehydrate brings an archived job back before an event about it. It ignores a record that was not archived.
func (js *Jobs) Rehydrate(b state.Rehydrated) {
	if js.State.Job(b.Job) != nil {
		return
	}
	if _, err := b.Archived(); err != nil {
		return
	}
	js.Fact(state.JobRehydrated{Job: b.Job})
	j := js.State.Job(b.Job)
	*admission.SumOf(j), step.TimesOf(j).Back = admission.IsSummed, js.Now()
	js.admission.WeighPart(j, 1)
	js.soonServed(j, -1)
	js.books.Past.Rehydrates(accounting.RecordOf(j), j)
	js.queue.ClassOf(j)
	js.Closes(j)
}

// Missing returns the jobs that the events are about and that the state lacks. The caller must rehydrate those that
// are archived first, or a rule would treat their machines as strays. Submissions do not count: whoever picks a
// job's name checks archived jobs too.
func (js *Jobs) Missing(events ...state.Event) (jobs []string) {
	add := func(job string) {
		if job != "" && js.State.Job(job) == nil && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	for i := range events {
		js.about(events[i].Body, add)
	}
	return jobs
}

// about calls f with each job that an event is about.
func (js *Jobs) about(b state.Body, f func(job string)) {
	switch b := b.(type) {
	case state.JobReviewed:
		f(b.Job)
	case state.JobEnded:
		f(b.Job)
	case state.JobPaused:
		f(b.Job)
	case state.JobResumed:
		f(b.Job)
	case state.JobUpdated:
		f(b.Job)
	case state.Spawn:
		for _, p := range b.Parts {
			f(p.Job)
		}
	case state.LaunchDone:
		f(step.OfLaunch(b.Launch))
	case state.InventorySeen:
		for _, r := range b.Running {
			f(step.OfLaunch(r.Launch))
		}
	case state.BillReconciled:
		for i := range b.Lines {
			f(b.Lines[i].Owner.Job)
		}
	case state.BillReceived:
		f(step.OfLaunch(b.Launch))
		if i := js.State.Instance(b.Instance); i != nil { // its bill is split
			for _, a := range i.Served() {
				f(step.OfLaunch(a))
			}
		}
	}
}

// Booked reports whether a bill equals the newest one of the job's machine.
func Booked(j *state.Job, b state.BillReceived) bool {
	for _, a := range j.Attempts() {
		if k := a.On(b.Instance); k != nil && a.ID() == b.Launch {
			return k.Billed() && maps.Equal(k.Bill(), accounting.SumsOf(accounting.Together(b.Lines)))
		}
	}
	return false
}

// ArchivedAt is the sequence number of the last event that archived a job or brought one back.
func (js *Jobs) ArchivedAt() uint64 { return js.State.ArchivedAt() }
