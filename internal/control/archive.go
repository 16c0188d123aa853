package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/view"
	"scrimp/internal/view/search"
)

// Archive finds jobs that have left the core. Each call names the log event up to which the archive must be current.
type Archive interface {
	// Archived returns the records of the jobs that are archived.
	Archived(ctx context.Context, upTo uint64, jobs ...string) (map[string]json.RawMessage, error)
	// AreArchived returns which of the names belong to archived jobs.
	AreArchived(ctx context.Context, upTo uint64, jobs ...string) (map[string]bool, error)
	// ArchivedPage returns a page of archived jobs in order of submission.
	ArchivedPage(ctx context.Context, upTo uint64, p view.ArchivedPage) ([]*state.Job, error)
	// Search returns the first archived jobs of a search, and whether others follow the place of the last.
	Search(ctx context.Context, upTo uint64, s search.Query) (jobs []*state.Job, last search.Place, more bool, err error)
	// Cards calls visit with the card of each job that is or was archived.
	Cards(ctx context.Context, upTo uint64, visit func(*search.Card)) error
	GroupArchive
}

// missingError lists the jobs that a request concerns and the core does not have.
type missingError struct{ jobs []string }

func (e *missingError) Error() string { return "not in memory: " + strings.Join(e.jobs, ", ") }

// missing returns the jobs of a request that may be archived and have not been looked up yet.
func (c *Control) missing(r request) error {
	if c.cfg.Archive == nil || c.machine.ArchivedAt() == 0 {
		return nil
	}
	jobs := slices.DeleteFunc(c.machine.Missing(r.events...), func(job string) bool { return r.sought[job] })
	if len(jobs) == 0 {
		return nil
	}
	return &missingError{jobs}
}

// maxRehydrations bounds the retries when a job is archived again before its events are taken.
const maxRehydrations = 10

// rehydrating calls propose, and calls it again after it has rehydrated the archived jobs that the events concern.
func (c *Control) rehydrating(ctx context.Context, propose func(sought map[string]bool) error) error {
	sought := map[string]bool{}
	for n := 1; ; n++ {
		err := propose(sought)
		var gone *missingError
		if !errors.As(err, &gone) {
			return err
		}
		found, err := c.rehydrate(ctx, gone.jobs)
		if err != nil {
			return err
		}
		for _, job := range gone.jobs {
			sought[job] = !found[job] || n == maxRehydrations
		}
	}
}

// rehydrate brings back those of the jobs that are archived, and returns their names.
func (c *Control) rehydrate(ctx context.Context, jobs []string) (found map[string]bool, err error) {
	records, err := c.archived(ctx, jobs...)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	found = map[string]bool{}
	var events []core.Event
	for _, job := range jobs { // in a fixed order
		if record, ok := records[job]; ok {
			found[job] = true
			events, err = c.withGroups(ctx, events,
				core.Rehydrated{Job: job, Record: record, Hash: state.RecordHash(record)})
			if err != nil {
				return nil, err
			}
		}
	}
	done, err := c.handOver(ctx, events, nil)
	if err != nil {
		return nil, err
	}
	return found, <-done
}

// billedArchived rehydrates the archived jobs of a new bill. It reports whether the bill was booked before they were
// archived: engines repeat their bills.
func (c *Control) billedArchived(ctx context.Context, e core.Event) (booked bool, err error) {
	var missing []string
	c.ReadUncommitted(func(m *core.Machine) { missing = m.Missing(e) })
	jobs, err := c.ArchivedJobs(ctx, missing...)
	if err != nil {
		return false, err
	}
	for _, j := range jobs {
		if core.Booked(j, e.Body.(core.BillReceived)) {
			return true, nil
		}
	}
	_, err = c.rehydrate(ctx, missing)
	return false, err
}

// archived returns the records of the jobs that are archived.
func (c *Control) archived(ctx context.Context, jobs ...string) (map[string]json.RawMessage, error) {
	last, err := c.archivedUpTo()
	if last == 0 || len(jobs) == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.Archived(ctx, last, jobs...)
}

// archivedUpTo returns the last event that archived a job, once it is durable; 0 means none.
func (c *Control) archivedUpTo() (last uint64, err error) {
	if c.cfg.Archive == nil {
		return 0, nil
	}
	c.ReadUncommitted(func(m *core.Machine) { last = m.ArchivedAt() })
	if last > 0 && !c.durable.wait(last) {
		return 0, fmt.Errorf("look for archived jobs: %w", ErrStopping)
	}
	return last, nil
}

// ArchivedJobs returns the jobs that are archived, by name.
func (c *Control) ArchivedJobs(ctx context.Context, jobs ...string) (map[string]*core.Job, error) {
	found := map[string]*core.Job{}
	for some := range slices.Chunk(jobs, nextPages) {
		records, err := c.archived(ctx, some...)
		if err != nil {
			return nil, err
		}
		for id, record := range records {
			if found[id], err = state.ReadJob(record); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// archivedJob returns an archived job; nil if none has that name.
func (c *Control) archivedJob(id string) (*core.Job, error) {
	jobs, err := c.ArchivedJobs(context.Background(), id)
	return jobs[id], err
}

// Visible calls f with a job whose submission is durable, archived or not. f may read only what never changes.
// Visible reports whether the job exists; an error means that nobody can say.
func (c *Control) Visible(id string, f func(*core.Job)) (known bool, err error) {
	for range 2 { // the job may be archived or rehydrated between the two reads
		durable := c.ReadUpTo(func(m *core.Machine) uint64 {
			j, ok := m.Job(id)
			if known = ok; !ok {
				return 0
			}
			f(j)
			return j.Event()
		})
		if known {
			return durable, nil
		}
		j, err := c.archivedJob(id)
		if err != nil {
			return false, err
		}
		if j != nil {
			f(j)
			return true, nil
		}
	}
	return false, nil
}

// Taken returns the names that archived jobs and groups have.
func (c *Control) Taken(ctx context.Context, names ...string) (map[string]bool, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, err
	}
	taken, err := c.cfg.Archive.AreArchived(ctx, last, names...)
	if err != nil {
		return nil, err
	}
	groups, err := c.cfg.Archive.FindGroups(ctx, last, names...)
	for name := range groups {
		taken[name] = true
	}
	return taken, err
}

// Past reads few archived jobs at first, which is enough for most readers, and then more at once.
const (
	firstPage = 60 // a page of 50, and whether more follow
	nextPages = 400
)

// Past iterates over the archived jobs of a page.
func (c *Control) Past(ctx context.Context, p view.ArchivedPage) iter.Seq2[*core.Job, error] {
	return func(yield func(*core.Job, error) bool) {
		for left, some := p.Limit, firstPage; ; some = nextPages {
			if p.Limit = some; left > 0 {
				p.Limit = min(left, some)
			}
			jobs, err := c.archivedPage(ctx, p)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(jobs) == 0 {
				return
			}
			if p.Backwards {
				slices.Reverse(jobs)
				p.Before = jobs[len(jobs)-1].Order()
			} else {
				p.After = jobs[len(jobs)-1].Order()
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			if left -= len(jobs); left == 0 {
				return
			}
		}
	}
}

// archivedPage returns a page of archived jobs in order of submission.
func (c *Control) archivedPage(ctx context.Context, p view.ArchivedPage) ([]*core.Job, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.ArchivedPage(ctx, last, p)
}

// Search iterates over the archived jobs of a search. Some may not match: the caller compares them.
func (c *Control) Search(ctx context.Context, s search.Query) iter.Seq2[*core.Job, error] {
	return func(yield func(*core.Job, error) bool) {
		for {
			upTo, err := c.archivedUpTo()
			if upTo == 0 && err == nil {
				return
			}
			var jobs []*state.Job
			var last search.Place
			more := false
			if err == nil {
				jobs, last, more, err = c.cfg.Archive.Search(ctx, upTo, s)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			if !more {
				return
			}
			s.After = &last
		}
	}
}

// Cards calls visit with the card of each job that is or was archived, in the order of submission. A card is valid
// until visit returns.
func (c *Control) Cards(ctx context.Context, visit func(*search.Card)) error {
	upTo, err := c.archivedUpTo()
	if upTo == 0 || err != nil {
		return err
	}
	return c.cfg.Archive.Cards(ctx, upTo, visit)
}
