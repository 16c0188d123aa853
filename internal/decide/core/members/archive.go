package members

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/state"
)

const (
	// groupsAtOnce is the largest number of groups that one step archives. The record of a study with 200,000 reports
	// takes some 20 ms to encode, most others less than 1 ms.
	groupsAtOnce = 4
	// looksAtOnce is the largest number of groups that one step checks for the archive.
	looksAtOnce = 64
	// groupArchivedLater is when a group that is due for the archive but still in use is checked again.
	groupArchivedLater = time.Hour
)

// ArchivesAll schedules all groups that are over for the archive again.
func (ms *Members) ArchivesAll() {
	ms.archive = nil
	for _, g := range ms.State.Groups() {
		ms.archiveAt(g)
	}
}

// archiveAt schedules a group for the archive, if it is over: as long after its end as its jobs.
func (ms *Members) archiveAt(g *state.Group) {
	if after := ms.Config().ArchiveAfter; after > 0 && g.Phase == state.GroupOver && g.Terms.Kind.Planned() {
		ms.archive.add(laterProposals{at: g.Finished.Add(after), group: g.Name})
	}
}

// Archives archives the groups that are due and not in use, on ticks as for jobs.
func (ms *Members) Archives() {
	if _, tick := ms.Event.Body.(state.Tick); !tick {
		return
	}
	archived := 0
	for n := 0; n < looksAtOnce && archived < groupsAtOnce && len(ms.archive) > 0 &&
		!ms.archive[0].at.After(ms.Now()); n++ {
		name := ms.archive[0].group
		ms.archive = ms.archive[1:]
		g := ms.State.Group(name)
		switch {
		case g == nil:
		case ms.State.GroupInUse(g) || len(ms.admission.Parts[name].Holds) > 0:
			ms.archive.add(laterProposals{at: ms.Now().Add(groupArchivedLater), group: name})
		default:
			ms.archiveGroup(g)
			archived++
		}
	}
}

func (ms *Members) archiveGroup(g *state.Group) {
	record, err := state.EncodeGroup(g)
	if err != nil {
		panic(fmt.Sprintf("core: encode group %s: %v", g.Name, err)) // snapshots have encoded it before
	}
	ms.Fact(state.GroupArchived{Group: g.Name, Record: record})
	delete(ms.admission.Parts, g.Name)
	if of := ms.admission.Parts[g.Terms.Parent]; of != nil {
		of.Holds = slices.DeleteFunc(of.Holds, func(run string) bool { return run == g.Name })
	}
}

// Rehydrate brings an archived group back before a member of it. It ignores a record that was not archived, and a run
// whose schedule is archived.
func (ms *Members) Rehydrate(b state.RehydratedGroup) {
	g, err := b.Archived()
	if err != nil || ms.State.Group(b.Group) != nil || ms.State.ArchivedGroups() == 0 || ms.lacks(g.Terms.Parent) {
		return
	}
	ms.Fact(state.GroupRehydrated{Group: b.Group})
	ms.admission.Parts[b.Group] = &admission.Parts{}
	if of := ms.admission.Parts[g.Terms.Parent]; of != nil {
		of.Holds = append(of.Holds, b.Group)
	}
	ms.archive.add(laterProposals{at: ms.Now().Add(groupArchivedLater), group: b.Group})
}

// lacks reports whether a group is not in memory.
func (ms *Members) lacks(group string) bool { return group != "" && ms.State.Group(group) == nil }

// WakeForArchive is when the next group is due for the archive; zero: none is.
func (ms *Members) WakeForArchive() (at time.Time) {
	if len(ms.archive) > 0 {
		at = ms.archive[0].at
	}
	return at
}

// MissingGroup returns the archived group that must come back before the event, which rehydrates a member or a run of
// it; "": none.
func (ms *Members) MissingGroup(b state.Body) (group string) {
	if ms.State.ArchivedGroups() == 0 {
		return ""
	}
	switch b := b.(type) {
	case state.Rehydrated:
		if j, err := b.Archived(); err == nil {
			group = j.Terms().Group
		}
	case state.RehydratedGroup:
		if g, err := b.Archived(); err == nil {
			group = g.Terms.Parent
		}
	}
	if !ms.lacks(group) {
		return ""
	}
	return group
}
