package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// ofArchived says where the records of archived jobs are. Each has two rows: by its name, and by its state and the
// order of its submission.
var ofArchived = projection.Projection{Name: "archived-jobs", Version: 1, Apply: applyArchived}

// archivedRow locates an archived job.
type archivedRow struct {
	seq   uint64 // the event whose facts contain its record
	order uint64 // of its submission
	state string
	name  string
}

// archivedMarks occur in the facts of an event if one of them archives a job or brings it back.
var archivedMarks = [][]byte{markOf(state.JobArchived{}), markOf(state.JobRehydrated{})}

// overStates are the states of archived jobs.
var overStates = []state.Status{state.Succeeded, state.Failed, state.Stopped, state.Cancelled}

// byName is the key of the row by name.
func byName(name string) string { return "name/" + name }

// byState is the prefix of the keys of the rows of a state; orderKey follows it.
func byState(s string) string { return "state/" + s + "/" }

func orderKey(order uint64) string { return fmt.Sprintf("%020d", order) }

// applyArchived adds the jobs that an event archives and removes those that it brings back.
func applyArchived(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
	if !slices.ContainsFunc(archivedMarks, func(mark []byte) bool { return bytes.Contains(r.Facts, mark) }) {
		return nil
	}
	facts, err := r.Decode()
	if err != nil {
		return err
	}
	for _, f := range facts {
		switch f := f.(type) {
		case state.JobArchived:
			j, err := state.ReadJob(f.Record)
			if err != nil {
				return fmt.Errorf("event %d: %w", r.Seq, err)
			}
			row := archivedRow{seq: r.Seq, order: j.Order(), state: string(j.State()), name: f.Job}
			rows.Put(byName(f.Job), row.encode(row.state))
			rows.Put(byState(row.state)+orderKey(row.order), row.encode(row.name))
		case state.JobRehydrated:
			text, err := rows.Get(ctx, byName(f.Job))
			if err != nil || text == nil {
				return err
			}
			row, err := decodeArchived(text)
			if err != nil {
				return err
			}
			rows.Delete(byName(f.Job))
			rows.Delete(byState(row.state) + orderKey(row.order))
		}
	}
	return nil
}

// encode returns the numbers of the row and a text.
func (a archivedRow) encode(text string) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, a.seq), a.order), text...)
}

// decodeArchived returns the row of encode, with the text as its state.
func decodeArchived(text []byte) (a archivedRow, err error) {
	var sizes [2]int
	if a.seq, sizes[0] = binary.Uvarint(text); sizes[0] > 0 {
		text = text[sizes[0]:]
		a.order, sizes[1] = binary.Uvarint(text)
	}
	if sizes[0] <= 0 || sizes[1] <= 0 {
		return a, errors.Join(errors.New("find an archived job"), errTorn)
	}
	a.state = string(text[sizes[1]:])
	return a, nil
}

// archived returns the rows of those jobs that are archived, as of a moment when the log had event upTo.
func (v *View) archived(ctx context.Context, upTo uint64, jobs []string) ([]archivedRow, error) {
	keys := make([]string, len(jobs))
	for i, job := range jobs {
		keys[i] = byName(job)
	}
	found, err := v.follower.Rows(ctx, ofArchived, upTo, keys...)
	if err != nil {
		return nil, err
	}
	list := make([]archivedRow, 0, len(found))
	for key, text := range found {
		row, err := decodeArchived(text)
		if err != nil {
			return nil, err
		}
		row.name = strings.TrimPrefix(key, byName(""))
		list = append(list, row)
	}
	return list, nil
}

// Archived returns the records of those jobs that are archived, as of a moment when the log had event upTo.
func (v *View) Archived(ctx context.Context, upTo uint64, jobs ...string) (map[string]json.RawMessage, error) {
	rows, err := v.archived(ctx, upTo, jobs)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return v.records(ctx, rows)
}

// AreArchived reports which of the names belong to archived jobs.
func (v *View) AreArchived(ctx context.Context, upTo uint64, jobs ...string) (map[string]bool, error) {
	rows, err := v.archived(ctx, upTo, jobs)
	names := map[string]bool{}
	for _, row := range rows {
		names[row.name] = true
	}
	return names, err
}

// ArchivedPage selects archived jobs in order of submission.
type ArchivedPage struct {
	After, Before uint64 // orders of submission, exclusive; Before 0: no end
	State         string // empty: any
	Limit         int
	Backwards     bool // the last jobs instead of the first
}

// ArchivedPage returns the jobs of a page in order of submission.
func (v *View) ArchivedPage(ctx context.Context, upTo uint64, p ArchivedPage) ([]*state.Job, error) {
	rows, err := v.page(ctx, upTo, p)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	records, err := v.records(ctx, rows)
	if err != nil {
		return nil, err
	}
	jobs := make([]*state.Job, 0, len(records))
	for _, record := range records {
		j, err := state.ReadJob(record)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *state.Job) int { return cmp.Compare(a.Order(), b.Order()) })
	return jobs, nil
}

// page returns the rows of a page in order of submission: it merges the pages of the states.
func (v *View) page(ctx context.Context, upTo uint64, p ArchivedPage) (list []archivedRow, err error) {
	for _, s := range overStates {
		if p.State != "" && p.State != string(s) {
			continue
		}
		prefix := byState(string(s))
		r := store.Range{After: prefix + orderKey(p.After), Before: prefix + "~", Limit: p.Limit, Backwards: p.Backwards}
		if p.Before > 0 {
			r.Before = prefix + orderKey(p.Before)
		}
		rows, err := v.follower.Range(ctx, ofArchived, upTo, r)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			a, err := decodeArchived(row.Value)
			if err != nil {
				return nil, err
			}
			a.name, a.state = a.state, string(s)
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b archivedRow) int { return cmp.Compare(a.order, b.order) })
	switch over := len(list) - p.Limit; {
	case over <= 0:
		return list, nil
	case p.Backwards:
		return list[over:], nil
	default:
		return list[:p.Limit], nil
	}
}

// records returns the records of jobs by name, from the events that archived them.
func (v *View) records(ctx context.Context, rows []archivedRow) (map[string]json.RawMessage, error) {
	wanted := map[string]bool{}
	var seqs []uint64
	for _, r := range rows {
		wanted[r.name] = true
		seqs = append(seqs, r.seq)
	}
	slices.Sort(seqs)
	events, err := v.log.RecordsAt(ctx, slices.Compact(seqs))
	if err != nil {
		return nil, err
	}
	found := map[string]json.RawMessage{}
	for _, r := range events { // newest last: a job may have been archived before
		facts, err := state.DecodeFacts(r.Facts)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", r.Seq, err)
		}
		for _, f := range facts {
			if f, ok := f.(state.JobArchived); ok && wanted[f.Job] {
				found[f.Job] = f.Record
			}
		}
	}
	if len(found) < len(wanted) {
		return nil, fmt.Errorf("find archived jobs: %d of %d records are missing where the view points",
			len(wanted)-len(found), len(wanted))
	}
	return found, nil
}
