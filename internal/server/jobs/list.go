package jobs

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// maxPage is how many jobs a page has at most.
const maxPage = 1000

// page says which of the jobs are wanted: all, or at most limit after or before one.
type page struct {
	limit         int // 0: all
	after, before string
	backwards     bool // from before, or from the newest, back
	live          bool
	state         core.State // "": any
}

func pageOf(q url.Values) (p page, field, wrong string) {
	p = page{after: q.Get("after"), before: q.Get("before"), backwards: q.Has("before"), live: q.Get("live") != "",
		state: core.State(q.Get("state"))}
	if p.state != "" && !slices.Contains(core.States, p.state) {
		return p, "state", "there is no such state"
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > maxPage {
			return p, "limit", fmt.Sprintf("limit is not a number from 1 to %d", maxPage)
		}
	}
	if p.after != "" && p.backwards {
		return p, "before", "a page begins after a job or ends before one, not both"
	}
	return p, "", ""
}

// List lists the jobs that the caller sees, newest last: all of them, or a page.
func (d *Desk) List(w http.ResponseWriter, r *http.Request) {
	p, field, wrong := pageOf(r.URL.Query())
	if wrong != "" {
		reply.FieldProblem(w, http.StatusBadRequest, field, wrong, "leave it out for all jobs", nil)
		return
	}
	list, more, known := d.listed(auth.CallerOf(r), p)
	if !known {
		field := "after"
		if p.backwards {
			field = "before"
		}
		title := fmt.Sprintf("job %s is not known", p.after+p.before)
		reply.FieldProblem(w, http.StatusBadRequest, field, title, "give what the header Scrimp-Next said", nil)
		return
	}
	if p.backwards {
		slices.Reverse(list)
	}
	for i := range list {
		d.fresh(&list[i])
	}
	if more && p.backwards {
		w.Header().Set(reply.NextHeader, list[0].ID)
	} else if more {
		w.Header().Set(reply.NextHeader, list[len(list)-1].ID)
	}
	reply.JSON(w, list)
}

// listed are the jobs of a page; more says that others follow, and known whether the
// job that it begins after, or ends before, is.
func (d *Desk) listed(c identity.Caller, p page) (list []api.Job, more, known bool) {
	list, known = []api.Job{}, true
	d.Control.ReadUpTo(func(m *core.Machine) (last uint64) {
		if j, ok := m.Job(p.after + p.before); ok && !auth.Sees(c, j) {
			known = false // who may not see a job does not learn that it is there
			return 0
		}
		var jobs iter.Seq[*core.Job]
		if jobs, known = p.jobs(m); !known {
			return 0
		}
		durable := d.Control.Durable()
		for j := range jobs {
			switch {
			case j.Event() > durable, !auth.Sees(c, j): // what is being written the next page has
			case p.leavesOut(j):
				last = max(last, m.ChangedAt(j)) // that it is left out says how it is
			case p.limit > 0 && len(list) == p.limit:
				more = true
				return last
			default:
				list, last = append(list, d.Show(m, j)), max(last, m.ChangedAt(j))
			}
		}
		return last
	})
	return list, more, known
}

// jobs are those from which the page is taken.
func (p page) jobs(m *core.Machine) (iter.Seq[*core.Job], bool) {
	if p.backwards {
		return m.JobsBefore(p.before)
	}
	return m.JobsAfter(p.after)
}

// leavesOut reports whether the page is not of such jobs.
func (p page) leavesOut(j *core.Job) bool {
	return p.live && Closed(j) || p.state != "" && j.State() != p.state
}
