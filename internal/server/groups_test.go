package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// inArray returns a submission of an array.
func inArray(name, team, indexes, rest string) string {
	return strings.Replace(costing(name, team, rest), "{", `{"array":"`+indexes+`",`, 1)
}

// began waits until n members of the array have started.
func (w *world) began(array string, n int) {
	w.until(func(m *core.Machine) bool {
		g := m.State().Group(array)
		return g != nil && g.Began == n
	})
}

func TestGroups_RunAnArrayWithItsIndexes(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	var g api.Group
	w.must("POST", "/v1/groups", inArray("sweep", "", "3-11:4%2", `,"budget":{"dollars":"9"},"deadline":"in 5h","env":{"A":"b"}`), &g)
	if g.ID != "sweep" || g.Members != 3 || g.AtOnce != 2 || g.Array.From != 3 || g.Array.Step != 4 || *g.Budget != money.Picos(9e12) {
		t.Fatalf("it is shown as %+v", g)
	}
	w.began("sweep", 2)
	attempt := w.booting(2)[1]
	as := w.take(attempt)
	want := map[string]string{"SCRIMP_ARRAY_ID": "sweep", "SCRIMP_ARRAY_INDEX": "7", "SCRIMP_ARRAY_COUNT": "3", "SCRIMP_ARRAY_MIN": "3",
		"SCRIMP_ARRAY_MAX": "11", "SCRIMP_ARRAY_STEP": "4", "SLURM_ARRAY_JOB_ID": "sweep", "SLURM_ARRAY_TASK_ID": "7",
		"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "11", "SLURM_ARRAY_TASK_STEP": "4", "A": "b"}
	maps.DeleteFunc(as.Env, func(k, _ string) bool { _, is := want[k]; return !is })
	if !maps.Equal(as.Env, want) || as.Job != "sweep.7" || as.Name != "sweep" {
		t.Errorf("the agent of %s gets %v", as.Job, as.Env)
	}
	var list []api.Job
	w.must("GET", "/v1/jobs?group=sweep", nil, &list)
	if len(list) != 2 || list[1].ID != "sweep.7" || *list[1].Index != 7 || list[1].Group != "sweep" {
		t.Errorf("its members are %+v", list)
	}
	if len(list) > 0 && (g.Deadline == nil || list[0].Deadline == nil || !g.Deadline.Equal(*list[0].Deadline)) {
		t.Errorf("its deadline is %v, its members' %v", g.Deadline, list[0].Deadline)
	}
	for _, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, time.Minute)
	}
	w.began("sweep", 3)
	w.must("POST", "/v1/groups/sweep/end", api.End{}, &g)
	w.until(func(m *core.Machine) bool { return m.State().Group("sweep").Phase == state.GroupOver })
	var machines []string
	w.until(func(m *core.Machine) bool { // wait for the grants
		machines = nil
		for _, i := range m.State().Instances() {
			machines = append(machines, i.ID())
		}
		return slices.Collect(m.State().Allocations()) == nil
	})
	for _, id := range machines {
		w.event(core.InstanceEnded{Instance: id, Until: w.control.Now().Add(2 * time.Minute), Cause: "terminated"}, 2*time.Minute)
	}
	w.must("GET", "/v1/groups/sweep", nil, &g)
	if g.State != "over" || g.Succeeded != 2 || g.Cancelled != 1 || g.Why != core.ClosedByUser {
		t.Errorf("at the end it is %+v", g)
	}
	var r api.GroupReceipt
	w.must("GET", "/v1/groups/sweep/receipt", nil, &r)
	sum := money.Amount{}
	for _, m := range r.Members { // each equals its own receipt
		var one client.Receipt
		w.must("GET", "/v1/jobs/"+m.ID+"/receipt", nil, &one)
		if one.Cost != m.Cost {
			t.Errorf("%s costs %v, and %v by its receipt", m.ID, m.Cost, one.Cost)
		}
		sum = sum.Add(one.Cost)
	}
	if len(r.Members) != 3 || r.Cost != sum || g.Spent != sum {
		t.Errorf("%d members cost %v, the group %v, and they sum up to %v", len(r.Members), r.Cost, g.Spent, sum)
	}
}

// A key submits an array once; another request with it is a conflict.
func TestGroups_AKeySubmitsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	body := strings.Replace(inArray("sweep", "", "0-9", ""), "{", `{"key":"k",`, 1)
	var a, b api.Group
	w.must("POST", "/v1/groups", body, &a)
	w.must("POST", "/v1/groups", body, &b)
	if a.ID != "sweep" || b.ID != "sweep" {
		t.Errorf("twice the same key makes %s and %s", a.ID, b.ID)
	}
	for path, other := range map[string]string{"/v1/groups": strings.Replace(body, "0-9", "0-8", 1),
		"/v1/jobs": strings.Replace(body, `"array":"0-9",`, "", 1)} {
		if rec, _ := w.ask("POST", path, auth.OwnerName, other); rec.Code != http.StatusConflict {
			t.Errorf("the key for something else with %s: %d", path, rec.Code)
		}
	}
	var j api.Job
	w.must("POST", "/v1/jobs", costing("sweep", "", ""), &j)
	if j.ID != "sweep-2" {
		t.Errorf("a job beside the array is %s", j.ID)
	}
}

// A user who does not see a team does not see its arrays; a submitter in it ends their own.
func TestGroups_AreVisibleToTheirTeamOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, team := range []string{"a", "b"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
	}
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	ben := w.user("ben", identity.Grant{Team: "a", Role: identity.Submitter})
	cat := w.user("cat", identity.Grant{Team: "b", Role: identity.Admin})
	if rec, p := w.ask("POST", "/v1/groups", ann, inArray("sweep", "a", "0-2", "")); rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	for _, c := range []struct {
		method, path, who string
		code              int
	}{
		{"GET", "/v1/groups/sweep", ben, 200}, {"GET", "/v1/groups/sweep", cat, 404}, {"GET", "/v1/groups/sweep/receipt", cat, 404},
		{"POST", "/v1/groups/sweep/end", ben, 403}, {"POST", "/v1/groups/sweep/end", cat, 404}, {"POST", "/v1/groups/sweep/approve", ann, 403},
		{"POST", "/v1/groups/none/end", ann, 404}, {"GET", "/v1/jobs/sweep", ann, 404}, {"POST", "/v1/groups/sweep/end", ann, 200},
	} {
		body := ""
		if c.method == "POST" {
			body = "{}"
		}
		if rec, p := w.ask(c.method, c.path, c.who, body); rec.Code != c.code {
			t.Errorf("%s %s: %d %+v, want %d", c.method, c.path, rec.Code, p, c.code)
		}
	}
	if rec, _ := w.ask("POST", "/v1/jobs", cat, strings.Replace(costing("x", "b", ""), "{", `{"after":["sweep:any"],`, 1)); rec.Code != 422 {
		t.Errorf("a job comes after an array that its sender does not see: %d", rec.Code)
	}
}

// Errors in an array or in its dependencies are reported before anything is stored.
func TestGroups_NameTheWrongField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct{ path, body, field, says string }{
		{"/v1/groups", costing("s", "", ""), "array", "names no indexes"},
		{"/v1/groups", inArray("s", "", "9-0", ""), "array", "no member"},
		{"/v1/groups", inArray("s", "", "0-10000", ""), "array", "10001 members"},
		{"/v1/groups", inArray("s", "", "0-9:0", ""), "array", "step of 0"},
		{"/v1/groups", inArray("s", "", "0-9%0", ""), "array", "0 members run at once"},
		{"/v1/groups", inArray("s", "", "0-9999999999", ""), "array", "above"},
		{"/v1/groups", inArray("s", "", "-1-9", ""), "array", "names no indexes"},
		{"/v1/groups", inArray("s", "", "0-9", `,"env":{"SCRIMP_ARRAY_INDEX":"3"}`), "env.SCRIMP_ARRAY_INDEX", "for each member"},
		{"/v1/groups", inArray("s", "", "0-9", `,"budget":{"dollars":"9"},"deadline":"in 5h","first":"deadline"`), "first", ""},
		{"/v1/jobs", inArray("s", "", "0-9", ""), "array", "POST /v1/groups"},
		{"/v1/jobs", strings.Replace(costing("s", "", ""), "{", `{"after":["none"],`, 1), "after", `"none"`},
		{"/v1/jobs", strings.Replace(costing("s", "", ""), "{", `{"after":["s:maybe"],`, 1), "after", "s:any"},
		{"/v1/groups", strings.Replace(inArray("s", "", "0-9", ""), "{", `{"from":"x",`, 1), "from", "cannot start from a checkpoint"},
	} {
		rec, p := w.ask("POST", c.path, auth.OwnerName, c.body)
		if rec.Code != http.StatusUnprocessableEntity || p.Field != c.field || !strings.Contains(rec.Body.String(), strings.ReplaceAll(c.says, `"`, `\"`)) {
			t.Errorf("%s %s: %d %s", c.path, c.body, rec.Code, rec.Body)
		}
	}
	var list []api.Group
	if w.must("GET", "/v1/groups", nil, &list); len(list) != 0 {
		t.Errorf("there are %+v", list)
	}
}
