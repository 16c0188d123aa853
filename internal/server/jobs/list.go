package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
)

// maxPage bounds the jobs of a page.
const maxPage = 1000

// page selects the jobs to list: all, or at most limit after or before one.
type page struct {
	limit         int // 0: all, which List sends page by page
	after, before string
	backwards     bool // from before, or from the newest job, backwards
	live          bool
	filter        filter
}

func pageOf(q url.Values, market func(wall time.Time) time.Time) (p page, field, wrong string) {
	p = page{after: q.Get("after"), before: q.Get("before"), backwards: q.Has("before"), live: q.Get("live") != ""}
	if p.filter, field, wrong = filterOf(q, market); wrong != "" {
		return p, field, wrong
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > maxPage {
			return p, "limit", fmt.Sprintf("limit is not a number from 1 to %d", maxPage)
		}
	}
	if p.backwards && p.limit == 0 { // backwards without a limit would list from the first job on, which no client wants
		p.limit = maxPage
	}
	if p.after != "" && p.backwards {
		return p, "before", "a page begins after a job or ends before one, not both"
	}
	return p, "", ""
}

// List lists the jobs that the caller sees, newest last: all of them, or a page.
func (d *Desk) List(w http.ResponseWriter, r *http.Request) {
	p, field, wrong := pageOf(r.URL.Query(), d.Control.Clock().ToMarket)
	if wrong != "" {
		reply.FieldProblem(w, http.StatusBadRequest, field, wrong, "leave it out for all jobs", nil)
		return
	}
	all := p.limit == 0
	if all { // page by page: whole lists for many clients at once would not fit in memory
		p.limit = maxPage
	}
	list, more, known, err := d.listed(r.Context(), auth.CallerOf(r), p)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "archived jobs were not read", "try again", err)
		return
	}
	if !known {
		field := "after"
		if p.backwards {
			field = "before"
		}
		title := fmt.Sprintf("job %s is not known", p.after+p.before)
		reply.FieldProblem(w, http.StatusBadRequest, field, title, "use the value of the header Scrimp-Next", nil)
		return
	}
	if p.backwards {
		slices.Reverse(list)
	}
	d.allFresh(list)
	if all && more {
		d.allPages(w, r, p, list)
		return
	}
	if more && p.backwards {
		w.Header().Set(reply.NextHeader, list[0].ID)
	} else if more {
		w.Header().Set(reply.NextHeader, list[len(list)-1].ID)
	}
	reply.JSON(w, list)
}

func (d *Desk) allFresh(list []api.Job) {
	for i := range list {
		d.fresh(&list[i])
	}
}

// allPages sends all jobs as one list, with at most a page in memory. list is the first page.
func (d *Desk) allPages(w http.ResponseWriter, r *http.Request, p page, list []api.Job) {
	w.Header().Set("Content-Type", "application/json")
	begins := "["
	for more := true; ; {
		for i := range list {
			text, err := json.Marshal(list[i])
			if err == nil {
				_, err = w.Write(append([]byte(begins), text...))
			}
			if err != nil {
				panic(http.ErrAbortHandler) // the client has left
			}
			begins = ",\n"
		}
		if !more {
			break
		}
		p.after = list[len(list)-1].ID
		var known bool
		var err error
		if list, more, known, err = d.listed(r.Context(), auth.CallerOf(r), p); err != nil || !known {
			panic(http.ErrAbortHandler) // abort, so that the client cannot take a truncated file for the whole
		}
		d.allFresh(list)
	}
	_, _ = w.Write([]byte("]\n")) // its absence shows a truncated response
}

// placed is a job of a page with its position in the order of submission.
type placed struct {
	api.Job
	order uint64
}

// listed returns the jobs of a page. more reports whether others follow, and known whether the job at its border
// exists.
func (d *Desk) listed(ctx context.Context, c identity.Caller, p page) (list []api.Job, more, known bool, err error) {
	from := uint64(0)
	if id := p.after + p.before; id != "" {
		// do not reveal that a job exists which the caller may not see
		known, err := d.Control.Visible(id, func(j *core.Job) {
			if auth.Sees(c, j) {
				from = j.Order()
			}
		})
		if !known || from == 0 {
			return nil, false, err != nil, err
		}
	}
	all, full := d.present(c, p, from)
	if !p.live {
		archived, err := d.archived(ctx, c, p, from, all, full)
		if err != nil {
			return nil, false, true, err
		}
		all = p.merged(all, archived)
	}
	if p.limit > 0 && len(all) > p.limit {
		all, more = all[:p.limit], true
	}
	list = make([]api.Job, len(all))
	for i := range all {
		list[i] = all[i].Job
	}
	return list, more, true, nil
}

// present returns the jobs of a page that are in memory, up to one more than its limit. full reports whether there
// is that one.
func (d *Desk) present(c identity.Caller, p page, from uint64) (list []placed, full bool) {
	d.Control.ReadUpTo(func(m *core.Machine) (last uint64) {
		jobs := m.State().JobsFrom(from)
		if p.backwards {
			jobs = m.State().JobsTo(from)
		}
		durable := d.Control.Durable()
		for j := range jobs {
			switch {
			case j.Event() > durable, !auth.Sees(c, j): // the next page has jobs that are not durable yet
			case p.excludes(j):
				last = max(last, m.ChangedAt(j)) // leaving it out reveals its state, so wait for that event, too
			case p.limit > 0 && len(list) > p.limit:
				full = true
				return last
			default:
				list, last = append(list, placed{d.Show(m, j), j.Order()}), max(last, m.ChangedAt(j))
			}
		}
		return last
	})
	return list, full
}

// archived returns the archived jobs of a page. If the jobs in memory fill the page, it stops at the last of them.
func (d *Desk) archived(ctx context.Context, c identity.Caller, p page, from uint64, present []placed, full bool,
) (list []placed, err error) {
	q := view.ArchivedPage{State: string(p.filter.one()), Backwards: p.backwards}
	if q.After = from; p.backwards {
		q.After, q.Before = 0, from
	}
	if last := len(present) - 1; full && p.backwards {
		q.After = present[last].order
	} else if full {
		q.Before = present[last].order
	}
	for j, err := range d.Control.Past(ctx, q) {
		if err != nil {
			return nil, err
		}
		if p.backwards && p.filter.older(j) {
			break
		}
		if !auth.Sees(c, j) || !p.filter.takes(j) {
			continue
		}
		d.Control.ReadUncommitted(func(m *core.Machine) { list = append(list, placed{d.Show(m, j), j.Order()}) })
		if p.limit > 0 && len(list) > p.limit {
			break
		}
	}
	return list, nil
}

// merged returns both lists in the order of the page, without the duplicates of jobs that were archived in between.
func (p page) merged(a, b []placed) []placed {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y placed) int {
		if p.backwards {
			x, y = y, x
		}
		return cmp.Compare(x.order, y.order)
	})
	return slices.CompactFunc(all, func(x, y placed) bool { return x.order == y.order })
}

// excludes reports whether the page does not list the job.
func (p page) excludes(j *core.Job) bool {
	return p.live && j.Priced() || !p.filter.takes(j)
}
