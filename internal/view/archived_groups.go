package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
	"scrimp/internal/work/groups"
)

// ofArchivedGroups says where the records of archived groups are. It has a row by name, and one for each key of stage
// outputs, which names the newest archived stage that made them.
var ofArchivedGroups = projection.Projection{Name: "archived-groups", Version: 1, Apply: applyArchivedGroups}

// ArchivedGroup is what the index knows about an archived group. The record has everything.
type ArchivedGroup struct {
	Name    string      `json:"-"`
	Seq     uint64      `json:"seq"` // the event whose facts contain its record
	Kind    groups.Kind `json:"kind"`
	Title   string      `json:"title,omitempty"` // the name in its job file
	Team    string      `json:"team,omitempty"`
	Project string      `json:"project,omitempty"`
	User    string      `json:"user"`
	Version int         `json:"version,omitempty"` // of the model that it made; 0: none
}

// madeRow names an archived stage with outputs that existed when its job had ended.
type madeRow struct {
	Group string `json:"group"`
	Stage int    `json:"stage"`
	Since uint64 `json:"since"` // the event at which its outputs existed
}

var archivedGroupMarks = [][]byte{markOf(state.GroupArchived{}), markOf(state.GroupRehydrated{})}

// byKey is the key of the row of a stage key within a project. The lengths keep the keys of two pairs of names apart.
func byKey(team, project, key string) string {
	return fmt.Sprintf("made/%d/%s/%d/%s/%s", len(team), team, len(project), project, key)
}

// applyArchivedGroups adds the groups that an event archives and removes those that it brings back.
func applyArchivedGroups(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
	if !slices.ContainsFunc(archivedGroupMarks, func(mark []byte) bool { return bytes.Contains(r.Facts, mark) }) {
		return nil
	}
	facts, err := r.Decode()
	if err != nil {
		return err
	}
	for _, f := range facts {
		switch f := f.(type) {
		case state.GroupArchived:
			err = addGroup(ctx, r.Seq, f, rows)
		case state.GroupRehydrated:
			rows.Delete(byName(f.Group)) // its stage rows stay, for a group that is in memory
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", r.Seq, err)
		}
	}
	return nil
}

func addGroup(ctx context.Context, seq uint64, f state.GroupArchived, rows *projection.Rows) error {
	g, err := state.ReadGroup(f.Record)
	if err != nil {
		return err
	}
	o := &g.Terms.Owner
	row := ArchivedGroup{Seq: seq, Kind: g.Terms.Kind, Team: o.Team, Project: o.Project, User: g.User(),
		Version: g.Version}
	if g.Terms.Member != nil {
		row.Title = g.Terms.Member.Name
	}
	if err := putJSON(rows, byName(f.Group), row); err != nil {
		return err
	}
	for n := range g.Stages {
		x := &g.Stages[n]
		if x.Key == "" || x.Phase != groups.Done {
			continue
		}
		key := byKey(o.Team, o.Project, x.Key)
		before, err := rows.Get(ctx, key)
		if err != nil {
			return err
		}
		var was madeRow
		if before != nil && json.Unmarshal(before, &was) == nil && was.Since > x.Since {
			continue
		}
		if err := putJSON(rows, key, madeRow{Group: f.Group, Stage: n, Since: x.Since}); err != nil {
			return err
		}
	}
	return nil
}

func putJSON(rows *projection.Rows, key string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		rows.Put(key, text)
	}
	return err
}

// FindGroups returns what the index knows about those of the groups that are archived, by name, as of a moment when the
// log had event upTo.
func (v *View) FindGroups(ctx context.Context, upTo uint64, names ...string) (map[string]ArchivedGroup, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = byName(name)
	}
	rows, err := v.follower.Rows(ctx, ofArchivedGroups, upTo, keys...)
	if err != nil {
		return nil, err
	}
	found := map[string]ArchivedGroup{}
	for key, text := range rows {
		g, err := groupRow(key, text)
		if err != nil {
			return nil, err
		}
		found[g.Name] = g
	}
	return found, nil
}

// groupRow decodes a row by name.
func groupRow(key string, text []byte) (g ArchivedGroup, err error) {
	if json.Unmarshal(text, &g) != nil {
		err = errors.Join(errors.New("find an archived group"), errTorn)
	}
	g.Name = strings.TrimPrefix(key, byName(""))
	return g, err
}

// AllGroups returns what the index knows about all archived groups, by name, as of a moment when the log had event
// upTo.
func (v *View) AllGroups(ctx context.Context, upTo uint64) (list []ArchivedGroup, err error) {
	for after := byName(""); ; {
		rows, err := v.follower.Range(ctx, ofArchivedGroups, upTo, store.Range{After: after, Before: byName("~"),
			Limit: piece})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			g, err := groupRow(row.Key, row.Value)
			if err != nil {
				return nil, err
			}
			list, after = append(list, g), row.Key
		}
		if len(rows) < piece {
			return list, nil
		}
	}
}

// MadeBy returns the newest archived stage of a project that has made the outputs of a key: its group and its position.
// ok is false if none has. The group may be in memory again.
func (v *View) MadeBy(ctx context.Context, upTo uint64, team, project, key string) (ref state.StageRef, ok bool,
	err error) {
	k := byKey(team, project, key)
	rows, err := v.follower.Rows(ctx, ofArchivedGroups, upTo, k)
	if err != nil || rows[k] == nil {
		return ref, false, err
	}
	var row madeRow
	if json.Unmarshal(rows[k], &row) != nil {
		return ref, false, errors.Join(errors.New("find an archived stage"), errTorn)
	}
	return state.StageRef{Group: row.Group, Stage: row.Stage}, true, nil
}

// ReadGroups returns archived groups by name, from the events that archived them.
func (v *View) ReadGroups(ctx context.Context, list ...ArchivedGroup) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	for some := range slices.Chunk(list, piece) {
		wanted := map[string]bool{}
		var seqs []uint64
		for _, g := range some {
			wanted[g.Name], seqs = true, append(seqs, g.Seq)
		}
		slices.Sort(seqs)
		events, err := v.log.RecordsAt(ctx, slices.Compact(seqs))
		if err != nil {
			return nil, err
		}
		for _, r := range events { // newest last: a group may have been archived before
			facts, err := state.DecodeFacts(r.Facts)
			if err != nil {
				return nil, fmt.Errorf("event %d: %w", r.Seq, err)
			}
			for _, f := range facts {
				if f, ok := f.(state.GroupArchived); ok && wanted[f.Group] {
					found[f.Group] = f.Record
				}
			}
		}
	}
	if len(found) < len(list) {
		return nil, fmt.Errorf("find archived groups: %d of %d records are missing where the view points",
			len(list)-len(found), len(list))
	}
	return found, nil
}
