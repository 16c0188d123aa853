package view

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

// Archived returns the records of those jobs that are archived, as of a moment when the log had event upTo.
func (v *View) Archived(ctx context.Context, upTo uint64, jobs ...string) (map[string]json.RawMessage, error) {
	if err := v.Wait(ctx, upTo); err != nil {
		return nil, err
	}
	rows, err := v.log.Archived(ctx, jobs)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return v.records(ctx, slices.Collect(maps.Values(rows)), slices.Collect(maps.Keys(rows)))
}

// AreArchived reports which of the names belong to archived jobs.
func (v *View) AreArchived(ctx context.Context, upTo uint64, jobs ...string) (map[string]bool, error) {
	if err := v.Wait(ctx, upTo); err != nil {
		return nil, err
	}
	rows, err := v.log.Archived(ctx, jobs)
	names := map[string]bool{}
	for name := range rows {
		names[name] = true
	}
	return names, err
}

// ArchivedPage returns the jobs of a page, in its order.
func (v *View) ArchivedPage(ctx context.Context, upTo uint64, p store.ArchivedPage) ([]*state.Job, error) {
	if err := v.Wait(ctx, upTo); err != nil {
		return nil, err
	}
	rows, err := v.log.ArchivedPage(ctx, p)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	records, err := v.records(ctx, rows, names)
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
	slices.SortFunc(jobs, func(a, b *state.Job) int { return int(int64(a.Order()) - int64(b.Order())) })
	return jobs, nil
}

// records returns the records of the named jobs from the events of the rows, which archived them.
func (v *View) records(ctx context.Context, rows []store.ArchivedRow, jobs []string,
) (map[string]json.RawMessage, error) {
	wanted := map[string]bool{}
	for _, job := range jobs {
		wanted[job] = true
	}
	var seqs []uint64
	for _, r := range rows {
		seqs = append(seqs, r.Seq)
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
