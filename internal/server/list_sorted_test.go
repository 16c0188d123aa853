package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// sortedPlainly returns the names of the jobs of a list, newest last, in an order.
func sortedPlainly(list []client.Job, order string) (ids []string) {
	rate := func(j client.Job) float64 {
		if j.Rate == nil || j.Finished != nil {
			return 0
		}
		return j.Rate.Float()
	}
	left := func(j client.Job) (group int, s float64) {
		switch {
		case j.TimeLeft == nil:
			return 2, 0
		case j.Finished != nil:
			return 1, *j.TimeLeft
		}
		return 0, *j.TimeLeft
	}
	list = slices.Clone(list)
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b client.Job) int {
		switch order {
		case "spent":
			return b.Spent.Cmp(a.Spent)
		case "rate":
			return cmp.Compare(rate(b), rate(a))
		case "deadline":
			m, x := left(a)
			n, y := left(b)
			return cmp.Or(cmp.Compare(m, n), cmp.Compare(x, y))
		case "name":
			return strings.Compare(a.ID, b.ID)
		case "state":
			return strings.Compare(a.State, b.State)
		}
		return 0
	})
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}

// The pages of a sorted and filtered list of jobs, archived and not, are together the plain sort of the whole list, of
// which each caller sees a part.
func TestList_SortedPagesEqualAPlainSortOfAllJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillListed(t, dir, 300, true)
	w := newWorld(t, func(o *Options) { o.Dir, o.Rate = dir, 1e6 })
	for i := range 5 {
		w.must("PUT", fmt.Sprint("/v1/teams/team-", i), api.SetTeam{}, nil)
	}
	for i := range 30 {
		deadline := fmt.Sprintf(`,"deadline":"in %dh"`, 2+i*7%11)
		if i%3 == 0 {
			deadline = ""
		}
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":"train-new-%02d","command":"true","team":"team-%d","budget":"$20"%s,`+
			`"tags":{"ticket":"%d"}}}`, i*17%30, i%5, deadline, i%4), nil)
	}
	for range 2 {
		w.must("POST", "/v1/jobs/train-new-11/end", api.End{}, nil)
	}
	bob := w.user("bob", identity.Grant{Team: "team-2", Role: identity.Viewer})
	for _, token := range []string{auth.OwnerName, bob} {
		for _, filter := range []string{"", "state=failed,queued", "team=team-2", "user=user-7", "tag=ticket=3", "name=*new*",
			"name=*lm*", "group=sweep-0", "live=1", "name=none", "since=2020-01-01T00:00:00Z"} {
			list := func(query string) (list []client.Job, next string) {
				rec, p := w.ask("GET", "/v1/jobs?"+query, token, nil)
				if rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &list) != nil {
					t.Fatalf("%s: %d %+v", query, rec.Code, p)
				}
				return list, rec.Header().Get("Scrimp-Next")
			}
			all, _ := list(filter)
			for _, order := range []string{"spent", "rate", "deadline", "name", "state"} {
				var got []string
				for after, more := "", true; more; more = after != "" {
					var jobs []client.Job
					jobs, after = list(fmt.Sprintf("%s&sort=%s&limit=47&after=%s", filter, order, after))
					for _, j := range jobs {
						got = append(got, j.ID)
					}
				}
				if want := sortedPlainly(all, order); !slices.Equal(got, want) {
					t.Errorf("%s by %s of %.5s: %d jobs\n%v, want %d\n%v", filter, order, token, len(got), got, len(want), want)
				}
			}
		}
	}
	for _, query := range []string{"sort=size", "sort=name&before=", "sort=name&after=nobody", "sort=name&limit=1001"} {
		if rec, p := w.ask("GET", "/v1/jobs?"+query, auth.OwnerName, nil); rec.Code != 400 || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}

// The time left of waiting jobs shrinks between two pages, and no job is on both.
func TestList_SortedByDeadlineRepeatsNoWaitingJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	want := []string{"wait-1", "wait-2", "wait-3", "wait-4"}
	for i, id := range want {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","budget":"$20","deadline":"in %dh"}}`,
			id, 5+i), nil)
	}
	var got []string
	for after := ""; len(got) < 2*len(want); {
		rec, p := w.ask("GET", "/v1/jobs?sort=deadline&limit=1&after="+after, auth.OwnerName, nil)
		var jobs []client.Job
		if rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &jobs) != nil || len(jobs) != 1 {
			t.Fatalf("after %q: %d %+v", after, rec.Code, p)
		}
		got = append(got, jobs[0].ID)
		if after = rec.Header().Get("Scrimp-Next"); after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages of one job: %v, want %v", got, want)
	}
}
