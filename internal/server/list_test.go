package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// Pages forwards and backwards list every job that the caller sees once, in the order of submission, and reveal no
// others.
func TestList_PagesShowEveryJobOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, team := range []string{"vision", "text"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
	}
	var all, mine []string
	for i := range 23 {
		team, id := "vision", fmt.Sprintf("j%d", i)
		if i%3 == 1 {
			team = "text"
		} else {
			mine = append(mine, id)
		}
		w.must("POST", "/v1/jobs", aJob(id, team), nil)
		all = append(all, id)
	}
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Viewer})
	for token, want := range map[string][]string{auth.OwnerName: all, ann: mine} {
		page := func(query string) (ids []string) {
			rec, p := w.ask("GET", "/v1/jobs"+query, token, nil)
			if rec.Code != 200 {
				t.Fatalf("%s: %+v", query, p)
			}
			for part := range strings.SplitSeq(rec.Body.String(), `"id":"`) {
				if id, _, ok := strings.Cut(part, `"`); ok && strings.HasPrefix(id, "j") {
					ids = append(ids, id)
				}
			}
			return ids
		}
		if got := page(""); !slices.Equal(got, want) {
			t.Errorf("without a limit %v, want %v", got, want)
		}
		var back []string
		for p := page("?limit=5&before="); len(p) > 0; p = page("?limit=5&before=" + p[0]) {
			back = append(slices.Clone(p), back...)
		}
		if !slices.Equal(back, want) {
			t.Errorf("backwards %v, want %v", back, want)
		}
		var forth []string
		for p := page("?limit=4"); len(p) > 0; p = page("?limit=4&after=" + p[len(p)-1]) {
			forth = append(forth, p...)
		}
		if !slices.Equal(forth, want) {
			t.Errorf("forwards %v, want %v", forth, want)
		}
	}
	for query, code := range map[string]int{"?limit=0": 400, "?limit=1001": 400, "?limit=x": 400,
		"?after=j0&before=j2": 400, "?after=j1": 400, "?before=nobody": 400} {
		if rec, p := w.ask("GET", "/v1/jobs"+query, ann, nil); rec.Code != code || p.Fix == "" {
			t.Errorf("%s: %d, want %d: %+v", query, rec.Code, code, p)
		}
	}
	if rec, _ := w.ask("GET", "/v1/jobs?after=j1", auth.OwnerName, nil); rec.Code != http.StatusOK {
		t.Errorf("the owner sees all, and got %d", rec.Code)
	}
}

// A filter lists the matching jobs, with and without pages, and refuses what it cannot parse.
func TestList_FiltersJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, team := range []string{"vision", "text"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
	}
	tokens := map[string]string{"ann": w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter}),
		"bob": w.user("bob", identity.Grant{Team: "text", Role: identity.Submitter})}
	for i, who := range []string{"ann", "bob", "ann", "bob", "ann"} {
		s := aJob(fmt.Sprintf("j%d", i), map[string]string{"ann": "vision", "bob": "text"}[who])
		if rec, p := w.ask("POST", "/v1/jobs", tokens[who], s); rec.Code >= 300 {
			t.Fatalf("%d: %+v", rec.Code, p)
		}
	}
	w.must("POST", "/v1/jobs/j2/end", api.End{}, nil)
	for query, want := range map[string]string{
		"user=ann": "j0 j2 j4", "team=text": "j1 j3", "name=j[01]": "j0 j1", "user=ann&state=cancelled": "j2",
		"state=cancelled,queued": "j0 j1 j2 j3 j4", "state=failed": "", "user=ann&limit=2&before=": "j2 j4",
		"user=ann&limit=2&before=j2": "j0", "tag=ticket": "", "since=2020-01-01T00:00:00Z": "j0 j1 j2 j3 j4",
		"since=2999-01-01T00:00:00Z": "", "since=2999-01-01T00:00:00Z&limit=3&before=": "",
	} {
		rec, p := w.ask("GET", "/v1/jobs?"+query, auth.OwnerName, nil)
		var ids []string
		for part := range strings.SplitSeq(rec.Body.String(), `"id":"`) {
			if id, _, ok := strings.Cut(part, `"`); ok && strings.HasPrefix(id, "j") {
				ids = append(ids, id)
			}
		}
		if got := strings.Join(ids, " "); rec.Code != 200 || got != want {
			t.Errorf("%s: %d %s, want %s: %+v", query, rec.Code, got, want, p)
		}
	}
	for _, query := range []string{"state=mad", "name=[", "tag==x", "since=soon"} {
		if rec, p := w.ask("GET", "/v1/jobs?"+query, auth.OwnerName, nil); rec.Code != 400 || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}
