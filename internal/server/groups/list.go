package groups

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
)

// maxPage bounds the groups of a page.
const maxPage = 1000

// page selects the groups to list: those whose name comes after a name, at most limit of them.
type page struct {
	after string
	limit int // 0: no limit
	live  bool
}

func pageOf(q url.Values) (p page, field, wrong string) {
	p = page{after: q.Get("after")}
	switch q.Get("live") {
	case "":
	case "1":
		p.live = true
	default:
		return p, "live", "live is not 1"
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > maxPage {
			return p, "limit", fmt.Sprintf("limit is not a number from 1 to %d", maxPage)
		}
	}
	return p, "", ""
}

// full reports whether n groups are more than a page has.
func (p page) full(n int) bool { return p.limit > 0 && n > p.limit }

// List lists the groups that the caller sees, by name: all of them, or a page.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	p, field, wrong := pageOf(r.URL.Query())
	if wrong != "" {
		reply.FieldProblem(w, http.StatusBadRequest, field, wrong, "leave it out for all groups", nil)
		return
	}
	read := 0
	past, ok := d.archived(w, r, func(g view.ArchivedGroup) bool { // by name, so the first ones are enough for a page
		if p.live || g.Name <= p.after || p.full(read) {
			return false
		}
		read++
		return true
	})
	if !ok {
		return
	}
	list, c := []api.Group{}, auth.CallerOf(r)
	d.Control.Read(func(m *core.Machine) {
		k := known{m: m, past: past}
		for _, g := range k.all() {
			if g.Name > p.after && sees(c, g) && g.Terms.Member != nil && (!p.live || g.Phase != state.GroupOver) {
				list = append(list, d.show(k, g))
			}
			if p.full(len(list)) {
				return
			}
		}
	})
	if p.full(len(list)) {
		list = list[:p.limit]
		w.Header().Set(reply.NextHeader, list[p.limit-1].ID)
	}
	reply.JSON(w, list)
}
