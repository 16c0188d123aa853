package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// trainsNightly is a pipeline with two stages that deploys nothing. rest is the schedule, or "".
func trainsNightly(folder, rest string) string {
	return strings.Replace(`{"folder":"FOLDER","spec":{"name":"nightly","project":"p","budget":{"dollars":"9"}},"pipeline":{"at_once":2,`+
		rest+`"stages":[
		{"name":"train","job":{"command":"train"},"deps":["prepared","train.py"],"outs":["model.txt"]},
		{"name":"prepare","job":{"command":"prepare"},"deps":["data"],"outs":["prepared"]}]}}`, "FOLDER", folder, 1)
}

// archiveAll lets time pass until no ended group and no ended job is in memory.
func (w *world) archiveAll(ahead time.Duration) time.Duration {
	w.t.Helper()
	return w.archive(ahead, func(m *core.Machine) int { return len(m.State().Groups()) + m.Len() })
}

// archive lets time pass until none of what is counted is in memory.
func (w *world) archive(ahead time.Duration, count func(*core.Machine) int) time.Duration {
	w.t.Helper()
	rules := w.control.Rules()
	rules.ArchiveAfter, rules.ArchiveUnbilled = time.Minute, time.Minute
	w.event(core.Configured{Config: rules}, ahead)
	for n := 0; ; n++ {
		ahead += 2 * time.Hour
		w.event(core.Tick{}, ahead)
		left := 0
		w.control.Read(func(m *core.Machine) { left = count(m) })
		if left == 0 {
			return ahead
		}
		if n > 20 {
			w.t.Fatalf("%d groups and jobs stay in memory", left)
		}
	}
}

// listedGroups returns what the list says of each group, without its stages.
func (w *world) listedGroups() (list []string) {
	w.t.Helper()
	var all []api.Group
	w.must("GET", "/v1/groups", nil, &all)
	for _, g := range all {
		list = append(list, fmt.Sprint(g.ID, g.State, g.Why, g.Closed, g.Members, g.Succeeded, g.Failed, g.Cancelled, g.Spent,
			g.Submitted, *g.Finished))
	}
	return list
}

// answers returns what the server says at each path.
func (w *world) answers(paths ...string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, path := range paths {
		rec, _ := w.ask("GET", path, auth.OwnerName, nil)
		if rec.Code != http.StatusOK {
			w.t.Fatalf("GET %s: %d %s", path, rec.Code, rec.Body)
		}
		all[path] = rec.Body.String()
	}
	return all
}

// An archived schedule, its runs and an array are shown as before, keep their names, can be waited for, lend their
// outputs, and come back for the bill of a member.
func TestArchivedGroups_AreShownAndUsedAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	var g api.Group
	w.must("POST", "/v1/groups", trainsNightly(folder, `"schedule":{"cron":"*/30 * * * *","budget":"60","runs":2},`), &g)
	w.must("POST", "/v1/groups", strings.Replace(inArray("sweep", "", "0-1", ""), "{", `{"after":["nightly"],`, 1), &g)
	w.must("POST", "/v1/groups/sweep/end", client.End{}, &g)
	w.groupOver("sweep")
	ahead := w.due("nightly", 0) + time.Minute
	w.runsStageFor("nightly.r1.prepare", map[string]string{"prepared/b": "2"}, ahead)
	w.runsStageFor("nightly.r1.train", map[string]string{"model.txt": "m"}, ahead)
	w.groupOver("nightly.r1")
	for _, stage := range []string{"prepare", "train"} {
		w.endsMachine("nightly.r1." + stage)
	}
	ahead = w.due("nightly", 0)
	w.groupOver("nightly")
	paths := []string{"/v1/groups/nightly", "/v1/groups/nightly.r1", "/v1/groups/nightly.r2", "/v1/groups/sweep",
		"/v1/groups/nightly/receipt", "/v1/groups/nightly.r1/receipt", "/v1/jobs?group=nightly.r1", "/v1/models"}
	before, list := w.answers(paths...), w.listedGroups()
	instance := w.instance("nightly.r1.train.1")
	ahead = w.archiveAll(ahead + time.Hour)
	for path, is := range w.answers(paths...) {
		if is != before[path] {
			t.Errorf("%s says\n%s\nand said before\n%s", path, is, before[path])
		}
	}

	if is := w.listedGroups(); !slices.Equal(is, list) {
		t.Errorf("the list has\n%s\nand had before\n%s", is, list)
	}

	// The bill of a member brings back its run and the schedule, which leave again.
	w.event(core.BillReceived{Instance: instance, Launch: "nightly.r1.train.1",
		Lines: []core.BillLine{{Amount: money.Picos(3e12), Currency: money.USD}}}, ahead)
	w.control.Read(func(m *core.Machine) {
		for _, name := range []string{"nightly", "nightly.r1"} {
			if m.State().Group(name) == nil {
				t.Errorf("the bill of a member does not bring back %s", name)
			}
		}
		if m.State().Group("nightly.r2") != nil {
			t.Error("the bill brings back the other run")
		}
	})
	w.archiveAll(ahead)
	var verified client.Verified
	w.must("GET", "/v1/ledger/verify", nil, &verified)
	var r api.GroupReceipt
	w.must("GET", "/v1/groups/nightly/receipt", nil, &r)
	cost := money.Amount{}
	for _, stage := range []string{"prepare", "train"} {
		var one client.Receipt
		w.must("GET", "/v1/jobs/nightly.r1."+stage+"/receipt", nil, &one)
		cost = cost.Add(one.Cost)
	}
	if r.Group.Spent != cost || r.Cost != cost || len(r.Members) != 2 {
		t.Errorf("after the bill the schedule has spent %v, its receipt comes to %v, and its jobs cost %v", r.Group.Spent, r.Cost, cost)
	}

	// Names, dependencies and outputs.
	var again api.Group
	w.must("POST", "/v1/groups", trainsNightly(folder, ""), &again)
	if again.ID != "nightly-2" {
		t.Errorf("the next of the name is %s", again.ID)
	}
	if over := w.groupOver("nightly-2"); over.Began != 0 || over.Succeeded != 0 || over.Pipeline.Stages[1].Job != "nightly.r1.train" {
		t.Errorf("it does not take the outputs of the archived run: %+v", over)
	}
	for after, code := range map[string]int{"nightly.r1": http.StatusOK, "sweep:any": http.StatusOK,
		"sweep": http.StatusUnprocessableEntity, "never": http.StatusUnprocessableEntity} {
		body := strings.Replace(costing("next", "", ""), "{", `{"after":["`+after+`"],`, 1)
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code != code {
			t.Errorf("a job after %s: %d %+v", after, rec.Code, p)
		}
	}
}

// groupsByPage returns the names of the groups, read in pages.
func (w *world) groupsByPage(limit int, query string) (names []string) {
	w.t.Helper()
	for after := ""; ; {
		path := fmt.Sprintf("/v1/groups?limit=%d&after=%s%s", limit, url.QueryEscape(after), query)
		rec, _ := w.ask("GET", path, auth.OwnerName, nil)
		var list []api.Group
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK || len(list) > limit {
			w.t.Fatalf("GET %s: %d %s", path, rec.Code, rec.Body)
		}
		for _, g := range list {
			names = append(names, g.ID)
		}
		if after = rec.Header().Get("Scrimp-Next"); after == "" {
			return names
		}
		if len(names) > 100 {
			w.t.Fatalf("the pages do not end: %q", names)
		}
	}
}

// Pages of every size list each group once, whether it is archived or in memory, and live ones only if asked.
func TestGroups_AreListedInPages(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	var g api.Group
	w.must("POST", "/v1/jobs", costing("z", "", ""), nil)
	waits := func(name string) string { // no member gets a machine, whose end would be waited for
		return strings.Replace(inArray(name, "", "0-1", ""), "{", `{"after":["z"],`, 1)
	}
	for _, name := range []string{"e", "a", "c"} {
		w.must("POST", "/v1/groups", waits(name), &g)
		w.must("POST", "/v1/groups/"+name+"/end", client.End{}, &g)
		w.groupOver(name)
	}
	w.archive(time.Hour, func(m *core.Machine) int { return len(m.State().Groups()) })
	for _, name := range []string{"b", "f", "d"} {
		w.must("POST", "/v1/groups", waits(name), &g)
	}
	w.must("POST", "/v1/groups/d/end", client.End{}, &g)
	w.groupOver("d")
	for limit := 1; limit < 8; limit++ {
		if got := w.groupsByPage(limit, ""); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f"}) {
			t.Errorf("in pages of %d: %q", limit, got)
		}
		if got := w.groupsByPage(limit, "&live=1"); !slices.Equal(got, []string{"b", "f"}) {
			t.Errorf("live, in pages of %d: %q", limit, got)
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "live=yes"} {
		if rec, p := w.ask("GET", "/v1/groups?"+query, auth.OwnerName, nil); rec.Code != http.StatusBadRequest ||
			p.Field == "" {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}
