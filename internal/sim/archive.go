package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// archives stores the records of jobs and groups that leave the core, as the shell's database does.
func (w *World) archives(out core.Outcome) {
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobArchived:
			w.saw("a job is archived")
			w.tell("%s is archived", f.Job)
			delete(w.unarchived, f.Job)
			if w.archive[f.Job] = f.Record; w.fault == FaultArchiveLost {
				delete(w.archive, f.Job)
			}
		case state.JobRehydrated:
			w.saw("a job is rehydrated")
			w.tell("%s is rehydrated", f.Job)
			delete(w.archive, f.Job)
		case state.GroupArchived:
			w.saw("a group is archived")
			w.tell("%s is archived", f.Group)
			delete(w.readGroups, f.Group)
			if w.pastGroups[f.Group] = f.Record; w.fault == FaultGroupLost {
				delete(w.pastGroups, f.Group)
			}
		case state.GroupRehydrated:
			w.saw("a group is rehydrated")
			w.tell("%s is rehydrated", f.Group)
			delete(w.pastGroups, f.Group)
		}
	}
}

// group returns the group with the given name, archived or not, or nil.
func (w *World) group(name string) *state.Group {
	if g := w.m.State().Group(name); g != nil {
		return g
	}
	record, ok := w.pastGroups[name]
	if !ok {
		return nil
	}
	if g := w.readGroups[name]; g != nil {
		return g
	}
	g, err := state.ReadGroup(record)
	if err != nil {
		panic(err)
	}
	w.readGroups[name] = g
	return g
}

// groups returns all groups, archived or not, by name.
func (w *World) groups() []*state.Group {
	list := w.m.State().Groups()
	for _, name := range slices.Sorted(maps.Keys(w.pastGroups)) {
		list = append(list, w.group(name))
	}
	slices.SortFunc(list, func(a, b *state.Group) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// rehydrates restores the archived jobs that the event is about to change, as the shell does. It reports whether the
// server is still up.
func (w *World) rehydrates(b core.Body) bool {
	if len(w.archive) == 0 {
		return true
	}
	for _, job := range w.m.Missing(core.Event{Body: b}) {
		record, archived := w.archive[job]
		if !archived {
			continue
		}
		hash := state.RecordHash(record)
		switch w.fault {
		case FaultArchiveWrong:
			record = forged(record)
		case FaultArchiveForged:
			record = forged(record)
			hash = state.RecordHash(record)
		default:
		}
		back := core.Rehydrated{Job: job, Record: record, Hash: hash}
		if !w.rehydratesGroup(back) || !w.step(back) || !w.up {
			return false
		}
	}
	return true
}

// rehydratesGroup restores the archived groups that must come back before the event, the outermost first. It reports
// whether the server is still up.
func (w *World) rehydratesGroup(b core.Body) bool {
	name := w.m.MissingGroup(b)
	record, archived := w.pastGroups[name]
	if !archived {
		return true
	}
	back := core.RehydratedGroup{Group: name, Record: record, Hash: state.RecordHash(record)}
	return w.rehydratesGroup(back) && w.step(back) && w.up
}

// forged returns the record with another job name.
func forged(record json.RawMessage) json.RawMessage {
	return bytes.Replace(record, []byte(`"terms":{"name":"`), []byte(`"terms":{"name":"x`), 1)
}

// known returns the job with the given ID, archived or not.
func (w *World) known(id string) (j *core.Job, ok bool) {
	if j, ok = w.m.Job(id); ok {
		return j, true
	}
	record, ok := w.archive[id]
	if !ok {
		return nil, false
	}
	if known := w.unarchived[id]; known != nil {
		return known, true
	}
	j, err := state.ReadJob(record)
	if err != nil {
		panic(err)
	}
	w.unarchived[id] = j
	return j, true
}

// attempt returns the attempt with the given name, of a live or archived job, or nil.
func (w *World) attempt(name string) *core.Attempt {
	j, ok := w.known(name[:strings.LastIndexByte(name, '.')])
	if !ok {
		return nil
	}
	for _, a := range j.Attempts() {
		if a.ID() == name {
			return a
		}
	}
	return nil
}

// allJobs returns the live and the archived jobs in the order of submission.
func (w *World) allJobs() []*core.Job {
	list := slices.Collect(w.m.Jobs())
	for id := range w.archive {
		j, _ := w.known(id)
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *core.Job) int { return cmp.Compare(a.Order(), b.Order()) })
	return list
}
