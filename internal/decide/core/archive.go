package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// archivedAtOnce is how many jobs one step archives at most: about 2 ms.
const archivedAtOnce = 16

// archivedLater is when a job that is due and still referred to is reviewed again.
const archivedLater = time.Hour

// rehydratedFor is how much longer a job stays that was brought back: what it was brought back for is still to come.
const rehydratedFor = time.Second

// archiveAt is when a job that is over is archived: some time after its end and that of its
// last machine, a longer one where a bill may come. ok is false where it stays.
func (m *Machine) archiveAt(j *Job) (t time.Time, ok bool) {
	after := m.cfg().ArchiveAfter
	if after <= 0 || !j.State().Over() || j.Costs() {
		return t, false
	}
	last := later(j.Finished(), timesOf(j).back.Add(rehydratedFor))
	for _, a := range j.Attempts() {
		last = later(last, a.Until())
		if a.Instance() != "" && !a.Billed() && !a.Machine().Prepaid {
			after = max(after, m.cfg().ArchiveUnbilled)
		}
	}
	return last.Add(after), true
}

// closes schedules the archiving of a job that is over.
func (m *Machine) closes(j *Job) {
	t, ok := m.archiveAt(j)
	if p := timesOf(j); !ok {
		p.archive = time.Time{}
	} else if !p.archive.Equal(t) {
		p.archive = t
		m.archive.push(wake{t, j})
	}
}

// closesAll schedules it anew for all jobs.
func (m *Machine) closesAll() {
	m.archive = nil
	for _, j := range m.s.Jobs() {
		timesOf(j).archive = time.Time{}
		m.closes(j)
	}
}

// archives takes the jobs out of the state whose time has come. It does so when nothing else
// happens: no submission waits for it.
func (m *Machine) archives() {
	if _, tick := m.e.Body.(Tick); !tick {
		return
	}
	for n := 0; n < archivedAtOnce && len(m.archive) > 0 && !m.archive[0].at.After(m.now()); {
		w := m.archive.pop()
		p := timesOf(w.job)
		if !w.at.Equal(p.archive) {
			continue
		}
		p.archive = time.Time{}
		m.works(w.job)
		t, ok := m.archiveAt(w.job)
		switch {
		case !ok:
		case t.After(m.now()):
			m.closes(w.job)
		case *sumOf(w.job) != isSummed, m.s.InUse(w.job), m.heldOpen(w.job):
			p.archive = m.now().Add(archivedLater)
			m.archive.push(wake{p.archive, w.job})
		default:
			m.archiveJob(w.job)
			n++
		}
	}
}

// heldOpen reports whether a hold that the job takes from may get other parts: what it has
// taken counts until then.
func (m *Machine) heldOpen(j *Job) bool {
	for h := m.s.Group(j.Terms().Parent); h != nil; h = m.s.Group(h.Terms.Parent) {
		if !h.Closed() {
			return true
		}
	}
	return false
}

func (m *Machine) archiveJob(j *Job) {
	record, err := state.EncodeJob(j)
	if err != nil {
		panic(fmt.Sprintf("core: encode job %s: %v", j.ID(), err)) // it has been in snapshots
	}
	m.weighPart(j, -1)
	m.soonServed(j, 1)
	m.history.archives(recordOf(j), j)
	m.fact(state.JobArchived{Job: j.ID(), Record: record})
}

// soonServed counts the GPU time of an archived job, which is not gone through any more, for
// limits that will be set, or no more where it is gone through.
func (m *Machine) soonServed(j *Job, by int) {
	s := m.soon
	if s == nil || j.Order() <= s.upTo {
		return
	}
	for _, u := range s.usage {
		for _, a := range j.Attempts() {
			if a.GPUs() > 0 && u.Scope.Holds(j.Terms().Owner, j.User()) {
				u.gpus = quantity.Add(u.gpus, quantity.Times(gpuTime(a, a.Until(), u.begin), by))
			}
		}
	}
}

// rehydrate takes an archived job back that something is about to happen to. A record that
// was not archived changes nothing.
func (m *Machine) rehydrate(b state.Rehydrated) {
	if m.s.Job(b.Job) != nil {
		return
	}
	if _, err := b.Archived(); err != nil {
		return
	}
	m.fact(state.JobRehydrated{Job: b.Job})
	j := m.s.Job(b.Job)
	*sumOf(j), timesOf(j).back = isSummed, m.now()
	m.weighPart(j, 1)
	m.soonServed(j, -1)
	m.history.rehydrates(recordOf(j), j)
	m.classOf(j)
	m.closes(j)
}

// sumArchive adds what archived jobs come to.
func (m *Machine) sumArchive() {
	m.s.Archived(func(k state.ArchiveKey, v state.ArchiveSum) {
		key := accountKey{k.Team, k.Project}
		a := m.accounts[key]
		if a == nil {
			a = &Account{Team: k.Team, Project: k.Project, States: map[State]int{}}
			m.accounts[key] = a
		}
		for s, n := range v.States() {
			if a.States[s] += n; a.States[s] == 0 {
				delete(a.States, s)
			}
		}
		a.Taken, a.Spent = a.Taken+v.Interruptions, a.Spent.Add(v.Spent)
		if v.History != (History{}) {
			owner := HistoryOwner{Dimensions: k.Dimensions, Currency: k.Currency}
			m.history.sums.Add(k.Hour, owner, v.History)
			m.history.addArchived(k.Hour, owner, v.History)
		}
	})
}

// archives takes a job from those that are gone through.
func (h *history) archives(p record, j *Job) {
	if p.ok {
		hour := ledger.HourOf(p.last)
		delete(h.jobs[hour], j)
		h.addArchived(hour, p.owner, p.history)
	}
}

// rehydrates puts it back.
func (h *history) rehydrates(p record, j *Job) {
	if !p.ok {
		return
	}
	hour := ledger.HourOf(p.last)
	if h.jobs[hour] == nil {
		h.jobs[hour] = map[*Job]struct{}{}
	}
	h.jobs[hour][j] = struct{}{}
	h.addArchived(hour, p.owner, p.history.Minus())
}

func (h *history) addArchived(hour int64, w HistoryOwner, p History) {
	if h.archived[hour] == nil {
		h.archived[hour] = map[HistoryOwner]History{}
	}
	h.archived[hour][w] = h.archived[hour][w].Plus(p)
}

// Missing are the jobs that events are about and that are not here. Those of them that are
// archived are to be rehydrated before: a rule would take what it hears of them for
// something that nobody asked for. A submission is not among them: whoever names a job
// asks for archived ones too.
func (m *Machine) Missing(events ...Event) (jobs []string) {
	add := func(job string) {
		if job != "" && m.s.Job(job) == nil && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	for i := range events {
		m.about(events[i].Body, add)
	}
	return jobs
}

// about calls f with the jobs that an event is about.
func (m *Machine) about(b Body, f func(job string)) {
	switch b := b.(type) {
	case JobReviewed:
		f(b.Job)
	case JobEnded:
		f(b.Job)
	case JobPaused:
		f(b.Job)
	case JobResumed:
		f(b.Job)
	case JobUpdated:
		f(b.Job)
	case Spawn:
		for _, p := range b.Parts {
			f(p.Job)
		}
	case LaunchDone:
		f(ofLaunch(b.Launch))
	case InventorySeen:
		for _, r := range b.Running {
			f(ofLaunch(r.Launch))
		}
	case BillReceived:
		f(ofLaunch(b.Launch))
		if i := m.s.Instance(b.Instance); i != nil { // its bill is split
			for _, a := range i.Served() {
				f(ofLaunch(a))
			}
		}
	}
}

// ofLaunch is the job whose launch or attempt has that name; "": none can.
func ofLaunch(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return ""
}

// Booked reports whether a bill says what the newest one of the job's machine did.
func Booked(j *Job, b BillReceived) bool {
	for _, a := range j.Attempts() {
		if k := a.On(b.Instance); k != nil && a.ID() == b.Launch {
			return k.Billed() && maps.Equal(k.Bill(), sumsOf(together(b.Lines)))
		}
	}
	return false
}

// ArchivedAt is the number of the last event that archived a job, or brought one back.
func (m *Machine) ArchivedAt() uint64 { return m.s.ArchivedAt() }
