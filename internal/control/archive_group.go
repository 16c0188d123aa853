package control

import (
	"context"
	"encoding/json"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/view"
)

// GroupArchive finds groups that have left the core. Each call names the log event up to which the archive must be
// current.
type GroupArchive interface {
	// FindGroups returns what the index knows about those of the groups that are archived.
	FindGroups(ctx context.Context, upTo uint64, names ...string) (map[string]view.ArchivedGroup, error)
	// AllGroups returns what the index knows about all archived groups, by name.
	AllGroups(ctx context.Context, upTo uint64) ([]view.ArchivedGroup, error)
	// ReadGroups returns the records of archived groups, by name.
	ReadGroups(ctx context.Context, list ...view.ArchivedGroup) (map[string]json.RawMessage, error)
	// MadeBy returns the newest archived stage of a project that has made the outputs of a key.
	MadeBy(ctx context.Context, upTo uint64, team, project, key string) (state.StageRef, bool, error)
}

// withGroups adds the event that rehydrates a job or a group to the events, after those that rehydrate its group and
// that group's schedule.
func (c *Control) withGroups(ctx context.Context, events []core.Event, b core.Body) ([]core.Event, error) {
	group := ""
	c.ReadUncommitted(func(m *core.Machine) { group = m.MissingGroup(b) })
	comes := slices.ContainsFunc(events, func(e core.Event) bool {
		of, ok := e.Body.(core.RehydratedGroup)
		return ok && of.Group == group
	})
	if group != "" && !comes {
		records, err := c.groupRecords(ctx, group)
		if err != nil {
			return nil, err
		}
		if record, ok := records[group]; ok { // else another request has brought it back
			events, err = c.withGroups(ctx, events,
				core.RehydratedGroup{Group: group, Record: record, Hash: state.RecordHash(record)})
			if err != nil {
				return nil, err
			}
		}
	}
	return append(events, c.event(c.Now(), b)), nil
}

// groupRecords returns the records of those of the groups that are archived, by name.
func (c *Control) groupRecords(ctx context.Context, names ...string) (map[string]json.RawMessage, error) {
	found, err := c.FindGroups(ctx, names...)
	if len(found) == 0 || err != nil {
		return nil, err
	}
	var list []view.ArchivedGroup
	for _, name := range names {
		if g, ok := found[name]; ok {
			list = append(list, g)
		}
	}
	return c.cfg.Archive.ReadGroups(ctx, list...)
}

// FindGroups returns what the index knows about those of the groups that are archived, by name.
func (c *Control) FindGroups(ctx context.Context, names ...string) (map[string]view.ArchivedGroup, error) {
	last, err := c.archivedUpTo()
	if last == 0 || len(names) == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.FindGroups(ctx, last, names...)
}

// AllGroups returns what the index knows about all archived groups, by name.
func (c *Control) AllGroups(ctx context.Context) ([]view.ArchivedGroup, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.AllGroups(ctx, last)
}

// ArchivedGroups returns those of the groups that are archived, by name.
func (c *Control) ArchivedGroups(ctx context.Context, names ...string) (map[string]*state.Group, error) {
	records, err := c.groupRecords(ctx, names...)
	if err != nil {
		return nil, err
	}
	return readGroups(records)
}

// KnownGroups is ArchivedGroups for readers that cannot say why the archive is not read: it logs the error.
func (c *Control) KnownGroups(ctx context.Context, names ...string) (found map[string]*state.Group, ok bool) {
	found, err := c.ArchivedGroups(ctx, names...)
	if err != nil {
		c.cfg.Log.Error("cannot read archived groups", "groups", len(names), "error", err)
	}
	return found, err == nil
}

// PastGroups returns the archived groups that the filter selects, by name.
func (c *Control) PastGroups(ctx context.Context,
	filter func(view.ArchivedGroup) bool) (map[string]*state.Group, error) {
	list, err := c.AllGroups(ctx)
	list = slices.DeleteFunc(list, func(g view.ArchivedGroup) bool { return !filter(g) })
	if len(list) == 0 || err != nil {
		return nil, err
	}
	records, err := c.cfg.Archive.ReadGroups(ctx, list...)
	if err != nil {
		return nil, err
	}
	return readGroups(records)
}

func readGroups(records map[string]json.RawMessage) (map[string]*state.Group, error) {
	groups := map[string]*state.Group{}
	for name, record := range records {
		g, err := state.ReadGroup(record)
		if err != nil {
			return nil, err
		}
		groups[name] = g
	}
	return groups, nil
}

// Group calls f with the named group between two steps, and returns when what f saw is durable. It reports whether the
// group is known. Group reads an archived group from its record, which f may keep.
func (c *Control) Group(id string, f func(*core.Machine, *state.Group)) (known bool) {
	for range 2 { // the group may be archived or rehydrated meanwhile
		durable := c.ReadUpTo(func(m *core.Machine) uint64 {
			g := m.State().Group(id)
			if known = g != nil; !known {
				return 0
			}
			f(m, g)
			return m.Seq()
		})
		if known {
			return durable
		}
		found, _ := c.KnownGroups(context.Background(), id)
		if g := found[id]; g != nil {
			c.ReadUncommitted(func(m *core.Machine) { f(m, g) })
			return true
		}
	}
	return false
}

// MadeBefore returns the newest archived stage that made the outputs of a key in the project of a group, as its run
// recorded it; nil: none did.
func (c *Control) MadeBefore(ctx context.Context, team, project, key string) (*state.Group, state.StageRef, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, state.StageRef{}, err
	}
	ref, ok, err := c.cfg.Archive.MadeBy(ctx, last, team, project, key)
	if !ok || err != nil {
		return nil, ref, err
	}
	found, err := c.ArchivedGroups(ctx, ref.Group)
	return found[ref.Group], ref, err
}
