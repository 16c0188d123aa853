package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/work/groups"
)

// A group that ended long ago is archived as its jobs are, after the last of them: its record goes into the log with
// the fact, and a schedule keeps the cost and the number of its archived runs. A job whose group is archived comes back
// after its group.

// GroupArchived: a group leaves the state. Record has everything known about it.
type GroupArchived struct {
	Group  string          `json:"group"`
	Record json.RawMessage `json:"record"`
}

// GroupRehydrated: an archived group is back in the state, as in the record of the event.
type GroupRehydrated struct {
	Group string `json:"group"`
}

// RehydratedGroup: an archived group comes back before one of its members. Hash is the hash of the record when the
// group was archived.
type RehydratedGroup struct {
	Group  string          `json:"group"`
	Record json.RawMessage `json:"record"`
	Hash   ledger.Hash     `json:"hash"`
}

func (GroupArchived) Fact() string   { return "group_archived" }
func (GroupRehydrated) Fact() string { return "group_rehydrated" }
func (RehydratedGroup) Kind() string { return "rehydrated_group" }

func init() {
	reads[GroupArchived]()
	reads[GroupRehydrated]()
}

// EncodeGroup encodes a group as a snapshot does.
func EncodeGroup(g *Group) (json.RawMessage, error) { return json.Marshal(g) }

// ReadGroup decodes the record of an archived group.
func ReadGroup(record json.RawMessage) (*Group, error) {
	g := &Group{}
	if err := json.Unmarshal(record, g); err != nil {
		return nil, fmt.Errorf("read the record of a group: %w", err)
	}
	if g.Name == "" {
		return nil, fmt.Errorf("read the record of a group: this is not a record")
	}
	return g, nil
}

// Archived decodes the group that the event brings back, and checks the record against its hash.
func (b RehydratedGroup) Archived() (*Group, error) {
	if RecordHash(b.Record) != b.Hash {
		return nil, fmt.Errorf("rehydrate %s: the record differs from the archived one", b.Group)
	}
	g, err := ReadGroup(b.Record)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rehydrate %s: %w", b.Group, err)
	case g.Name != b.Group:
		return nil, fmt.Errorf("rehydrate %s: the record belongs to %s", b.Group, g.Name)
	case g.Phase != GroupOver || g.Open > 0:
		return nil, fmt.Errorf("rehydrate %s: the group of the record is not over", b.Group)
	}
	return g, nil
}

// ArchivedGroups returns the number of archived groups. The hashes of their records are in the sum of ArchivedJobs.
func (s *State) ArchivedGroups() int { return s.archive.groups }

// GroupInUse reports whether the state needs a group: the group is not over, a member is in memory, its schedule still
// lists it among the last runs, or a pipeline compares with its version of a model or counts from it.
func (s *State) GroupInUse(g *Group) bool {
	if g.Phase != GroupOver || g.Open > 0 || !g.Terms.Kind.Planned() {
		return true
	}
	if of := s.groups[g.Terms.Parent]; of != nil && of.Phase != GroupOver && of.Keeps(g.Name) {
		return true
	}
	if m := s.modelsOf(g); m != nil && (g.Version == m.newest || m.deployed.Group == g.Name ||
		m.failed.Group == g.Name && m.failedAt > m.since) {
		return true
	}
	for n := range g.Began {
		if s.jobs[g.MemberID(n)] != nil {
			return true
		}
	}
	return false
}

// Keeps reports whether the group refers to a group that uses its budget: a schedule refers to its last runs, any other
// group to all.
func (g *Group) Keeps(run string) bool {
	return g.Schedule == nil || slices.ContainsFunc(g.Schedule.Runs, func(r Run) bool { return r.Group == run })
}

// Outcome returns how a group that is over ended, by the final states of jobs.
func (g *Group) Outcome() Status {
	switch {
	case g.Succeeded():
		return Succeeded
	case g.Ends == CancelMembers:
		return Cancelled
	case g.Ends == StopMembers:
		return Stopped
	}
	return Failed
}

// archivesGroup removes a group from the state.
func (s *State) archivesGroup(f GroupArchived) {
	g := s.groups[f.Group]
	if g == nil || s.GroupInUse(g) {
		panic("state: group " + f.Group + " is unknown or in use: the core must not archive it")
	}
	s.countsRun(g, 1)
	s.archive.groups++
	s.archive.sum = plus(s.archive.sum, RecordHash(f.Record))
	delete(s.groups, g.Name)
	s.unlistsStages(g)
	if m := s.modelsOf(g); m != nil {
		m.runs = slices.DeleteFunc(m.runs, func(x *Group) bool { return x == g })
	}
}

// returnsGroup puts the group of the event back into the state.
func (s *State) returnsGroup(e *Event, f GroupRehydrated) {
	b := e.Body.(RehydratedGroup)
	g, err := b.Archived()
	if err != nil || s.groups[f.Group] != nil || s.archive.groups == 0 {
		panic(fmt.Sprintf("state: group %s is not archived, or its record is wrong: %v", f.Group, err))
	}
	s.archive.groups--
	s.archive.sum = minus(s.archive.sum, b.Hash)
	s.groups[g.Name] = g
	s.indexStages(g)
	if m := s.modelsOf(g); m != nil {
		s.listsModel(g)
		slices.SortFunc(m.runs, func(a, b *Group) int { return cmp.Compare(a.Version, b.Version) })
		s.indexDeploy(g, g.Terms.Pipeline.Deploys())
	}
	s.countsRun(g, -1)
}

// countsRun adds an archived group to the sums of the group that pays for it, or removes it (by is -1).
func (s *State) countsRun(g *Group, by int) {
	of := s.groups[g.Terms.Parent]
	if of == nil {
		return
	}
	cost := g.Archived
	if by < 0 {
		cost = cost.Neg()
	}
	of.Archived = of.Archived.Add(cost)
	if of.Schedule != nil {
		of.Schedule.Archived.add(g.Outcome(), by)
	}
}

// unlistsStages removes the stages of a group from the index of outputs. An older stage in memory with the same key
// takes the place of each, as it does after a restart.
func (s *State) unlistsStages(g *Group) {
	keys := map[scopedKey]bool{}
	for n := range g.Stages {
		k := g.scoped(g.Stages[n].Key)
		if s.stages.made[k].Group == g.Name {
			delete(s.stages.made, k)
			keys[k] = true
		}
	}
	if len(keys) == 0 {
		return
	}
	for _, o := range s.Groups() {
		for n := range o.Stages {
			if o.Stages[n].Phase == groups.Done && keys[o.scoped(o.Stages[n].Key)] {
				s.indexStage(o, n)
			}
		}
	}
}
