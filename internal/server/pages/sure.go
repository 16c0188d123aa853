package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
)

// surePage asks whether an action shall reach all jobs that match a filter. Its form names each of them, so that no
// other job is changed, whatever matches by then.
type surePage struct {
	Action action
	Jobs   []client.Job
	Back   string
}

const (
	shownBySure = 20 // jobs that the question names
	mostRead    = 20 // pages of 1,000 jobs that are searched
)

// First returns the jobs that the question names.
func (p surePage) First() []client.Job { return p.Jobs[:min(shownBySure, len(p.Jobs))] }

// More returns the number of jobs that the question does not name.
func (p surePage) More() int { return max(0, len(p.Jobs)-shownBySure) }

// sure asks about an action on all jobs that match a query of the API.
func (s *Site) sure(w http.ResponseWriter, r *http.Request, v *visit, a action, match string) {
	list, err := v.matching(a, match)
	if err != nil {
		s.fail(w, r, v, err)
		return
	}
	send(w, r, http.StatusOK, s.frame(v, page{file: "sure", title: a.Text, still: true},
		surePage{a, list, local(r.PostFormValue("back"))}))
}

// matching returns the jobs that match a query of the API and on which the reader may do the action, newest first.
func (v *visit) matching(a action, match string) (list []client.Job, err error) {
	narrow := &client.Problem{Status: http.StatusUnprocessableEntity, Title: "these are too many jobs for one form",
		Fix: "go back and narrow the filter, such as by state, or mark jobs"}
	ask, err := url.ParseQuery(strings.TrimPrefix(match, "?"))
	if err != nil {
		return nil, &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the filter is not a query",
			Fix: "go back and choose the filter again"}
	}
	if !slices.ContainsFunc(a.states, func(s string) bool { return !slices.Contains(notOver, s) }) {
		ask.Set("live", "1")
	}
	ask.Set("limit", "1000")
	ask.Set("before", "")
	for range mostRead {
		var part []client.Job
		header, err := v.ask("GET", "/v1/jobs?"+ask.Encode(), nil, &part)
		if err != nil {
			return nil, err
		}
		for _, j := range slices.Backward(part) {
			if v.may(a.Name, j) {
				list = append(list, j)
			}
		}
		next := header.Get("Scrimp-Next")
		switch ask.Set("before", next); {
		case len(list) > mostBulk:
			return nil, narrow
		case next == "" && len(list) == 0:
			return nil, &client.Problem{Status: http.StatusUnprocessableEntity,
				Title: "no job that matches is in a state for this", Fix: "go back and choose another filter"}
		case next == "":
			return list, nil
		}
	}
	return nil, narrow
}
