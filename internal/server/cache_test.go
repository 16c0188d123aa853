package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// The cache lists what stages have kept with its cost and uses, for those who see the team. gc with a size removes what
// is of least value per byte, never what an unfinished pipeline may read, and a removed output is made again.
func TestCache_KeepsWhatIsWorthMost(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	run := func() (g api.Group) {
		w.must("POST", "/v1/groups", trainsNightly(folder, ""), &g)
		return g
	}
	run()
	w.runsStageFor("nightly.prepare", map[string]string{"prepared/b": "2"}, time.Hour)
	w.runsStageFor("nightly.train", map[string]string{"model.txt": "m"}, 2*time.Hour)
	w.groupOver("nightly")
	for _, job := range []string{"nightly.prepare", "nightly.train"} {
		w.endsMachine(job)
	}
	run() // uses both
	w.groupOver("nightly-2")
	var v client.Cache
	w.must("GET", "/v1/cache", nil, &v)
	if len(v.Entries) != 2 {
		t.Fatalf("%+v", v)
	}
	bytes, saved := int64(0), money.Amount{}
	for _, e := range v.Entries {
		var r client.Receipt
		w.must("GET", "/v1/jobs/"+e.Job+"/receipt", nil, &r)
		if e.Cost == nil || *e.Cost != r.Cost || e.Uses != 1 || e.Used == nil || e.Bytes <= 0 || e.Needed || e.Team != "" ||
			*e.Value != r.Cost.Float()*e.Odds || e.Group != "nightly" || e.Job != "nightly."+e.Stage {
			t.Errorf("%+v, and its receipt comes to %v", e, r.Cost)
		}
		bytes, saved = bytes+e.Bytes, saved.Add(r.Cost)
	}
	if v.Bytes != bytes || v.Saved != saved {
		t.Errorf("%d bytes, %v saved; the entries come to %d and %v", v.Bytes, v.Saved, bytes, saved)
	}
	admin := w.signedIn(w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin}))
	first := v.Entries[0]
	admin.shows("/cache", 200, "Outputs of stages", first.Job, "value=\""+first.Cost.String()+"\"", "value=\""+v.Saved.String()+"\"",
		money.ShortFloat(*first.Value, v.Currency))
	admin.shows("/storage", 200, `href="/cache"`)
	w.must("PUT", "/v1/teams/others", client.SetTeam{}, nil)
	eve := w.user("eve", identity.Grant{Team: "others", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/cache", eve, nil)
	w.signedIn(eve).shows("/cache", 200, "No outputs of pipeline stages are kept")
	if want := `{"entries":[],"bytes":0,"saved":"0","currency":"USD"}`; strings.TrimSpace(rec.Body.String()) != want {
		t.Errorf("another team is shown %d %s", rec.Code, rec.Body)
	}

	fit := func(n int64, dry bool) (done client.GCDone) {
		w.must("POST", "/v1/gc", client.GC{Fit: &n, DryRun: dry}, &done)
		return done
	}
	if done := fit(v.Bytes, false); len(done.Items) != 0 {
		t.Errorf("all fits, and %+v goes", done.Items)
	}
	least := v.Entries[1]
	for _, dry := range []bool{true, false} {
		done := fit(v.Bytes-1, dry)
		if len(done.Items) != 1 || done.Items[0].Job != least.Job && done.Items[0].Bytes < least.Bytes || done.DryRun != dry {
			t.Errorf("dry %v: %+v goes, want %s", dry, done.Items, least.Job)
		}
	}
	w.must("GET", "/v1/cache", nil, &v)
	if len(v.Entries) != 1 || v.Entries[0].Job == least.Job || v.Saved != saved {
		t.Errorf("after gc there is %+v", v)
	}
	run()
	w.until(func(m *core.Machine) bool { return m.State().Group("nightly-3").Open > 0 })
	if done := fit(0, false); len(done.Items) != 0 {
		t.Errorf("while a pipeline may read it, %+v goes", done.Items)
	}
	for _, bad := range []client.GC{{Fit: new(int64(-1))}, {Fit: new(int64(1)), OlderThan: 1},
		{Fit: new(int64(1)), Only: []string{client.GCLogs}}} {
		if rec, p := w.ask("POST", "/v1/gc", auth.OwnerName, bad); rec.Code != http.StatusUnprocessableEntity || p.Field != "fit" {
			t.Errorf("%+v: %d %s", bad, rec.Code, rec.Body)
		}
	}
}
