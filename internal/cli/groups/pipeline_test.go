package groups

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
)

// A name stands for its open schedule, else for the newest; an ID that is not a name stands for itself.
func TestScheduleOf_NameStandsForTheNewestSchedule(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(1e9+60*n), 0) }
	schedule := func(id, state string, n int) api.Group {
		return api.Group{ID: id, Name: "nightly", Kind: "schedule", State: state, Schedule: &api.ScheduleState{}, Submitted: at(n)}
	}
	run := func(id, of string, n int) api.Group {
		return api.Group{ID: id, Name: "nightly", Kind: "pipeline", Of: of, State: "over", Submitted: at(n)}
	}
	for about, c := range map[string]struct {
		list []api.Group
		name string
		want string
	}{
		"one schedule":            {[]api.Group{schedule("nightly", "over", 1)}, "nightly", "nightly"},
		"the second is open":      {[]api.Group{schedule("nightly", "over", 1), schedule("nightly-2", "open", 2)}, "nightly", "nightly-2"},
		"listed in another way":   {[]api.Group{schedule("nightly-2", "open", 2), schedule("nightly", "over", 1)}, "nightly", "nightly-2"},
		"all are over":            {[]api.Group{schedule("nightly-3", "over", 3), schedule("nightly", "over", 1), schedule("nightly-2", "over", 2)}, "nightly", "nightly-3"},
		"the older one is open":   {[]api.Group{schedule("nightly", "open", 1), schedule("nightly-2", "over", 2)}, "nightly", "nightly"},
		"by its id":               {[]api.Group{schedule("nightly", "over", 1), schedule("nightly-2", "over", 2)}, "nightly-2", "nightly-2"},
		"its own runs are newer":  {[]api.Group{schedule("nightly", "over", 1), run("nightly.r1", "nightly", 2)}, "nightly", "nightly"},
		"a run by hand is newer":  {[]api.Group{schedule("nightly", "over", 1), run("nightly-2", "", 2)}, "nightly", ""},
		"a run by hand, and open": {[]api.Group{schedule("nightly", "open", 1), run("nightly-2", "", 2)}, "nightly", "nightly"},
		"another name":            {[]api.Group{schedule("nightly", "open", 1)}, "weekly", ""},
	} {
		got := ""
		if i := scheduleOf(c.list, c.name); i >= 0 {
			got = c.list[i].ID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", about, got, c.want)
		}
	}
}

// The status of a schedule is asked by its ID, because the list of groups lacks its reports.
func TestPipelineRun_AsksForTheReportsOfASchedule(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := api.Group{ID: "nightly-2", Name: "nightly", State: "open", Schedule: &api.ScheduleState{}}
		var body any = []api.Group{g}
		if r.URL.Path == "/v1/groups/nightly-2" {
			g.Schedule.Reports = []api.Notice{{Event: "week"}}
			body = g
		}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	defer site.Close()
	g, _, err := PipelineRun(t.Context(), &command.Client{Client: api.New(site.URL, "", nil)}, "nightly", true)
	if err != nil || g.ID != "nightly-2" || len(g.Schedule.Reports) != 1 {
		t.Errorf("%+v %v", g, err)
	}
}
