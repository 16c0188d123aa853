package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// arrives writes files into a folder.
func arrives(t *testing.T, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
}

// settled waits until a schedule has settled so many due runs, each begun or skipped, and returns it.
func (w *world) settled(schedule string, runs int) (g api.Group) {
	w.t.Helper()
	w.until(func(m *core.Machine) bool {
		y := m.State().Group(schedule).Schedule
		return y.Begun+y.Skipped == runs
	})
	w.must("GET", "/v1/groups/"+schedule, nil, &g)
	return g
}

// runsAll lets the stages of a run end with this accuracy, and their machines be billed.
func (w *world) runsAll(run, accuracy string, ahead time.Duration) {
	w.t.Helper()
	w.runsStageFor(run+".prepare", map[string]string{"prepared/b": run}, ahead)
	w.runsStageFor(run+".train", map[string]string{"model.txt": run, "metrics.json": `{"eval":{"acc":` + accuracy + `}}`}, ahead)
	w.runsStageFor(run+".deploy", map[string]string{"live/model": run}, ahead)
	w.groupOver(run)
	for _, stage := range []string{"prepare", "train", "deploy"} {
		w.endsMachine(run + "." + stage)
	}
}

func TestSchedules_BeginWhenEnoughNewDataIsThere(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder, data := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"}), t.TempDir()
	arrives(t, data, "1", "2")
	body := scheduled(folder, `"budget":"60","on_data":{"path":`+strconv.Quote(data)+`,"at_least":2}`)
	var g api.Group
	w.must("POST", "/v1/groups", body, &g)
	ahead := w.due("retrain", 0) + time.Minute
	g = w.settled("retrain", 1)
	if r := g.Schedule.Runs[0]; r.Group != "retrain.r1" || r.Why != "2 new objects, and a run needs 2" || r.Checks[0].Data.New != 2 {
		t.Fatalf("the first run is %+v", r)
	}
	w.runsAll("retrain.r1", "0.95", ahead)
	arrives(t, data, "3")
	w.due("retrain", 0)
	g = w.settled("retrain", 2)
	if r := g.Schedule.Runs[1]; r.Group != "" || r.State != "skipped" || r.Why != "1 new object, and a run needs 2" {
		t.Errorf("with one new file: %+v", r)
	}
	must.Do(t, os.RemoveAll(data))
	w.due("retrain", 0)
	g = w.settled("retrain", 3)
	if r := g.Schedule.Runs[len(g.Schedule.Runs)-1]; r.Group != "" || !strings.Contains(r.Why, "was not counted: the server has no folder") {
		t.Errorf("without the folder: %+v", r)
	}
	arrives(t, filepath.Dir(data), "x")
	must.Do(t, os.Mkdir(data, 0o700))
	arrives(t, data, "4", "5")
	w.due("retrain", 0)
	if g = w.settled("retrain", 4); g.Schedule.Runs[len(g.Schedule.Runs)-1].Group != "retrain.r2" {
		t.Errorf("with two new files: %+v", g.Schedule.Runs)
	}
}

// A run waits for a lower price, and begins at any once it has waited long enough.
func TestSchedules_WaitForAPriceAndNotForEver(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	var g api.Group
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"60","not_before":{"most":"1","by_ns":1500000000000}`), &g)
	first := *g.Schedule.DueMarket
	for looks := range 3 { // at 0, 10 and 20 minutes
		w.due("retrain", 0)
		w.until(func(m *core.Machine) bool { return m.State().Group("retrain").Schedule.Due.After(m.State().Now()) })
		w.must("GET", "/v1/groups/retrain", nil, &g)
		s := g.Schedule
		if s.Begun != 0 || s.WaitsSince == nil || !s.WaitsSince.Equal(first) || len(s.Waits) != 1 ||
			!strings.Contains(s.Waits[0].Why, "firm costs $1.00 an hour, and the limit is $1.00: the run waits until") {
			t.Fatalf("look %d: %+v", looks, s)
		}
	}
	w.due("retrain", 0)
	g = w.settled("retrain", 1)
	r := g.Schedule.Runs[0]
	if r.Group != "retrain.r1" || !strings.Contains(r.Why, "the run has waited 25m and begins at any price") || g.Schedule.WaitsSince != nil {
		t.Errorf("it begins as %+v", r)
	}
	if !r.DueMarket.Equal(first) {
		t.Errorf("it was due at %s, want %s: it waited from then on", r.DueMarket, first)
	}
}

// Three gains say what the next is worth: runs that gain less than they cost are skipped.
func TestSchedules_SkipRunsThatDoNotPay(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	body := strings.ReplaceAll(scheduled(folder, `"budget":"90","when_it_pays":{"value_of_point":"0.000001","metric":"train.eval.acc"}`),
		`"outs"`, `"always":true,"outs"`)
	var g api.Group
	w.must("POST", "/v1/groups", body, &g)
	sum := money.Amount{}
	for n, accuracy := range []string{"0.90", "0.92", "0.93", "0.96"} {
		ahead := w.due("retrain", 0) + time.Minute
		g = w.settled("retrain", n+1)
		r := g.Schedule.Runs[n]
		if want := strconv.Itoa(max(0, n-1)); !strings.HasPrefix(r.Why, want+" gain") || !strings.Contains(r.Why, "an estimate needs 3") {
			t.Fatalf("run %d: %+v", n+1, r)
		}
		w.runsAll(r.Group, accuracy, ahead)
		run := w.groupOver(r.Group)
		sum = sum.Add(run.Spent)
	}
	w.due("retrain", 0)
	g = w.settled("retrain", 5)
	r := g.Schedule.Runs[4]
	p := r.Checks[0].Pays
	if r.Group != "" || p.Gains != 3 || p.Gain != "0.02" || p.Low != "0.01" || p.High != "0.03" || p.Estimator != "average of 3 runs" {
		t.Fatalf("the fifth is %+v, %+v", r, p)
	}
	if p.Cost.Cmp(sum.Over(4)) != 0 || money.Format(*p.Worth, money.USD, 6) != "$0.000002" {
		t.Errorf("it is worth %v and costs %v, want two millionths and a quarter of %v", p.Worth, p.Cost, sum)
	}
	weeks, skipped, cost := g.Schedule.Weeks, 0, money.Amount{}
	for _, x := range weeks {
		skipped, cost = skipped+x.Skipped, cost.Add(x.Cost)
	}
	if last := weeks[len(weeks)-1]; skipped != 1 || cost.Cmp(g.Spent) != 0 || last.CostOpen {
		t.Errorf("its weeks are %+v, want %v in all", weeks, g.Spent)
	}
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	if text := b.shows("/groups/retrain", 200); !strings.Contains(text, "an expected gain of 2 points") || !strings.Contains(text, "Weeks") {
		t.Error(text)
	}
}

// A run that reuses everything has the metric of the run before it, so a schedule that changes nothing gets an estimate.
func TestSchedules_CountAReusedMetricAsAGainOfZero(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	var g api.Group
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"90","when_it_pays":{"value_of_point":"1","metric":"train.eval.acc"}`), &g)
	ahead := w.due("retrain", 0) + time.Minute
	w.runsAll(w.settled("retrain", 1).Schedule.Runs[0].Group, "0.95", ahead)
	for n := 2; n <= 4; n++ {
		w.due("retrain", 0)
		w.groupOver(w.settled("retrain", n).Schedule.Runs[n-1].Group)
	}
	w.due("retrain", 0)
	g = w.settled("retrain", 5)
	r := g.Schedule.Runs[4]
	if p := r.Checks[0].Pays; r.Group != "" || p.Gains != 3 || p.Gain != "0" || !strings.Contains(r.Why, "is worth $0.00") {
		t.Errorf("the fifth is %+v, %+v", r, p)
	}
}

func TestSchedules_RefuseConditionsThatCannotHold(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	file := filepath.Join(folder, "train.py")
	for _, c := range []struct{ condition, says string }{
		{`"on_data":{"path":"/no/such/folder","at_least":1}`, "the server has no folder /no/such/folder"},
		{`"on_data":{"path":` + strconv.Quote(file) + `,"at_least":1}`, "is a file and no folder"},
		{`"on_data":{"path":"new","at_least":1}`, "is neither an absolute folder nor a bucket"},
		{`"on_data":{"path":"s3://u:p@bucket/new","at_least":1}`, "leave the user out"},
		{`"on_data":{"path":"/tmp","at_least":0}`, "at_least"},
		{`"not_before":{"most":"1","by_ns":0}`, "how long a run waits"},
		{`"when_it_pays":{"value_of_point":"1","metric":"other.acc","goal":"up"}`, "write maximize or minimize"},
		{`"when_it_pays":{"value_of_point":"0","metric":"train.eval.acc"}`, "above zero"},
	} {
		_, p := w.ask("POST", "/v1/groups", auth.OwnerName, scheduled(folder, `"budget":"60",`+c.condition))
		if p.Status < 400 || p.Status >= 500 || !strings.Contains(p.Title+" "+p.Detail, c.says) {
			t.Errorf("%s: %+v, want one that says %q", c.condition, p, c.says)
		}
		if strings.Contains(p.Detail, "u:p@") {
			t.Errorf("the answer shows a password: %s", p.Detail)
		}
	}
	var list []client.Group
	if w.must("GET", "/v1/groups", nil, &list); len(list) > 0 {
		t.Errorf("groups: %+v", list)
	}
}

// A stage begins only if the new data has drifted. One that the server skips needs no machine, and the run succeeds.
func TestDrift_LetsAStageBeginOnlyAboveItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	rows := func(a, b int) string { return "kind\n" + strings.Repeat("a\n", a) + strings.Repeat("b\n", b) }
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x", "old.csv": rows(50, 50)})
	body := func(data string) string {
		return strings.Replace(strings.Replace(retrain(folder, "0.1", "0.9"), `"name":"train",`,
			`"name":"train","on_drift":{"file":"prepared/new.csv","reference":"old.csv","test":"psi","above":"0.274653"},`, 1),
			`"name":"prepare","job":{"command":"prepare"}`, `"name":"prepare","job":{"command":"prepare `+data+`"}`, 1)
	}
	for n, c := range []struct{ data, train, why string }{
		{rows(75, 25), "skipped", "PSI of kind in prepared/new.csv is 0.274653, which is not above 0.274653"},
		{rows(76, 24), "done", "PSI of kind in prepared/new.csv is 0.299697, which is above 0.274653"},
		{"other\n1\n", "failed", `its drift was not measured: prepared/new.csv has no column "kind": its columns are other`},
	} {
		var g api.Group
		w.must("POST", "/v1/groups", body(strconv.Itoa(n)), &g)
		w.runsStage(g.ID+".prepare", map[string]string{"prepared/new.csv": c.data})
		if c.train == "done" {
			w.runsStage(g.ID+".train", map[string]string{"model.txt": "m", "metrics.json": `{"eval":{"acc":0.5}}`})
		}
		g = w.groupOver(g.ID)
		s := g.Pipeline.Stages[1]
		if s.Name != "train" || s.State != c.train {
			t.Fatalf("with %.20q: %+v, want %s", c.data, s, c.train)
		}
		if why := s.Why; c.train == "done" {
			if s.Drift == nil || s.Drift.Why != c.why || !s.Drift.Pass || s.Drift.Values[0].Drift != "0.299697" {
				t.Errorf("its drift is %+v", s.Drift)
			}
		} else if why != c.why {
			t.Errorf("train is %s: %s, want %s", s.State, why, c.why)
		}
		if (g.Failed == 0) != (c.train != "failed") && c.train == "skipped" {
			t.Errorf("the run is %+v", g)
		}
	}
	_, p := w.ask("POST", "/v1/groups", auth.OwnerName, strings.Replace(body("x"), `"old.csv"`, `"none.csv"`, 1))
	if p.Status != 422 || !strings.Contains(p.Title, "stage train reads none.csv, which is not in the work folder") {
		t.Errorf("without the reference: %+v", p)
	}
}
