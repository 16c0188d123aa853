package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/filter"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/search"
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
	attention     bool // only jobs that need a user's attention
	filter        filter.Filter
	order         search.Order // other than ByAge: the first jobs in it, and then those after one
}

func pageOf(q url.Values, market func(wall time.Time) time.Time) (p page, field, wrong string) {
	p = page{after: q.Get("after"), before: q.Get("before"), backwards: q.Has("before"), live: q.Get("live") != "",
		attention: q.Get("attention") != ""}
	p.live = p.live || p.attention // those that are over need none
	if p.filter, field, wrong = filter.Of(q, market); wrong != "" {
		return p, field, wrong
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > maxPage {
			return p, "limit", fmt.Sprintf("limit is not a number from 1 to %d", maxPage)
		}
	}
	if p.order = search.Order(q.Get("sort")); p.order != search.ByAge {
		if !slices.Contains(search.Orders, p.order) {
			return p, "sort", fmt.Sprintf("unknown order %.40q; it is spent, rate, deadline, name or state", p.order)
		}
		if p.backwards {
			return p, "before", "a sorted page begins after a job"
		}
		p.limit = cmp.Or(p.limit, maxPage)
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
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
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
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived jobs", "try again", err)
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

func (d *Service) allFresh(list []api.Job) {
	for i := range list {
		d.fresh(&list[i])
	}
}

// allPages sends all jobs as one list, with at most a page in memory. list is the first page.
func (d *Service) allPages(w http.ResponseWriter, r *http.Request, p page, list []api.Job) {
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
