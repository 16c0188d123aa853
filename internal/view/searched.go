package view

import (
	"bytes"
	"context"
	"fmt"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
	"scrimp/internal/view/search"
)

// ofSearch holds the columns by which lists filter and sort archived jobs. A job that was brought back keeps its
// entries, and is not among the rows of ofArchived.
var ofSearch = projection.Projection{Name: "archived-search", Version: 2, Apply: applySearch}

// applySearch adds the jobs that an event archives.
func applySearch(_ context.Context, r *projection.Record, rows *projection.Rows) error {
	if !bytes.Contains(r.Facts, archivedMarks[0]) {
		return nil
	}
	facts, err := r.Decode()
	if err != nil {
		return err
	}
	for _, f := range facts {
		f, ok := f.(state.JobArchived)
		if !ok {
			continue
		}
		j, err := state.ReadJob(f.Record)
		if err != nil {
			return fmt.Errorf("event %d: %w", r.Seq, err)
		}
		search.Add(j, rows.Append)
	}
	return nil
}

// Search returns the first jobs of a query, in its order, as of a moment when the log had event upTo. more reports
// whether others follow, from the place of last on. Some of them may not match the query: the caller compares them.
func (v *View) Search(ctx context.Context, upTo uint64, q search.Query,
) (jobs []*state.Job, last search.Place, more bool, err error) {
	found, err := search.Find(q, func(r store.Range) ([]store.Row, error) {
		return v.follower.Range(ctx, ofSearch, upTo, r)
	})
	if err != nil || len(found) == 0 {
		return nil, last, false, err
	}
	last, more = found[len(found)-1].Place, len(found) == q.Limit
	jobs, err = v.foundJobs(ctx, upTo, found)
	return jobs, last, more, err
}

// Cards calls visit with the card of each job that is or was archived, as of a moment when the log had event upTo.
func (v *View) Cards(ctx context.Context, upTo uint64, visit func(*search.Card)) error {
	return search.Cards(func(r store.Range) ([]store.Row, error) {
		return v.follower.Range(ctx, ofSearch, upTo, r)
	}, visit)
}

// foundJobs returns the jobs of a search that are archived, in its order.
func (v *View) foundJobs(ctx context.Context, upTo uint64, found []search.Found) (jobs []*state.Job, err error) {
	keys := make([]string, len(found))
	for i, f := range found {
		keys[i] = byState(string(f.State)) + orderKey(f.Order)
	}
	rows, err := v.follower.Rows(ctx, ofArchived, upTo, keys...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var list []archivedRow
	for i, f := range found {
		text, ok := rows[keys[i]]
		if !ok { // a user has brought it back
			continue
		}
		row, err := decodeArchived(text)
		if err != nil {
			return nil, err
		}
		row.name, row.state = row.state, string(f.State)
		list = append(list, row)
	}
	records, err := v.records(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, row := range list {
		j, err := state.ReadJob(records[row.name])
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
