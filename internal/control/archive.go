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
	"scrimp/internal/store"
)

// Archive finds jobs that have left the core, by a moment at which the log had that event.
type Archive interface {
	// Archived returns the records of those of the jobs that are archived.
	Archived(ctx context.Context, upTo uint64, jobs ...string) (map[string]json.RawMessage, error)
	// AreArchived returns which of the names are those of archived jobs.
	AreArchived(ctx context.Context, upTo uint64, jobs ...string) (map[string]bool, error)
	// ArchivedPage returns the archived jobs of a page, in the order of submission.
	ArchivedPage(ctx context.Context, upTo uint64, p store.ArchivedPage) ([]*state.Job, error)
}

// missingError says that events are about jobs that the core does not have.
type missingError struct{ jobs []string }

func (e *missingError) Error() string { return "not in memory: " + strings.Join(e.jobs, ", ") }

// missing are the jobs of a request that may be archived, but for those that were looked for.
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

// rehydrations is how often events wait for a job that is back and archived again meanwhile.
const rehydrations = 10

// rehydrating calls propose, and again where events are about archived jobs, once these are back.
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
			sought[job] = !found[job] || n == rehydrations
		}
	}
}

// rehydrate brings back those of the jobs that are archived, and reports which are.
func (c *Control) rehydrate(ctx context.Context, jobs []string) (found map[string]bool, err error) {
	records, err := c.archived(ctx, jobs...)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	found = map[string]bool{}
	var events []core.Event
	for _, job := range jobs { // in one order
		if record, ok := records[job]; ok {
			found[job] = true
			events = append(events, c.event(c.Now(), core.Rehydrated{Job: job, Record: record, Hash: state.RecordHash(record)}))
		}
	}
	done, err := c.handOver(ctx, events, nil)
	if err != nil {
		return nil, err
	}
	return found, <-done
}

// billedArchived brings back the archived jobs that a bill is of, where it is news. It reports
// whether it was booked before they were archived: engines say again what they said.
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

// archived are the records of those of the jobs that are archived.
func (c *Control) archived(ctx context.Context, jobs ...string) (map[string]json.RawMessage, error) {
	last, err := c.archivedUpTo()
	if last == 0 || len(jobs) == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.Archived(ctx, last, jobs...)
}

// archivedUpTo is the last event that archived a job, once it is durable; 0: none ever was.
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

// ArchivedJobs are those of the jobs that are archived, by name.
func (c *Control) ArchivedJobs(ctx context.Context, jobs ...string) (map[string]*core.Job, error) {
	found := map[string]*core.Job{}
	for some := range slices.Chunk(jobs, archivedAtOnce) {
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

// archivedJob is an archived job; nil where there is none of that name.
func (c *Control) archivedJob(id string) (*core.Job, error) {
	jobs, err := c.ArchivedJobs(context.Background(), id)
	return jobs[id], err
}

// Visible calls f with a job whose submission is durable, archived or not, for what of it
// never changes. It reports whether there is one, or why nobody can say.
func (c *Control) Visible(id string, f func(*core.Job)) (known bool, err error) {
	for range 2 { // it may be archived meanwhile, or come back
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

// Taken returns which of the names archived jobs have.
func (c *Control) Taken(ctx context.Context, names ...string) (map[string]bool, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.AreArchived(ctx, last, names...)
}

// archivedAtOnce is how many archived jobs are read at once: few at first, which most
// readers find enough.
const (
	archivedAtFirst = 60 // a page of 50, and whether there is more
	archivedAtOnce  = 400
)

// Past are the archived jobs of a page, one after the other.
func (c *Control) Past(ctx context.Context, p store.ArchivedPage) iter.Seq2[*core.Job, error] {
	return func(yield func(*core.Job, error) bool) {
		for left, some := p.Limit, archivedAtFirst; ; some = archivedAtOnce {
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

// archivedPage are the archived jobs of a page, in the order of submission.
func (c *Control) archivedPage(ctx context.Context, p store.ArchivedPage) ([]*core.Job, error) {
	last, err := c.archivedUpTo()
	if last == 0 || err != nil {
		return nil, err
	}
	return c.cfg.Archive.ArchivedPage(ctx, last, p)
}
