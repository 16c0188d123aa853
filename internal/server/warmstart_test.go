package server

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/workdir"
	"scrimp/internal/test/must"
)

// warmer is a pipeline whose training begins with the model that is deployed.
func warmer(folder, name string) string {
	return fmt.Sprintf(`{"folder":%q,"spec":{"name":%q,"project":"p","budget":{"dollars":"9"}},"pipeline":{"at_once":2,"stages":[
		{"name":"train","job":{"command":"train"},"deps":["data","start"],"outs":["made"],
		 "warm_start":{"from":"made/model.txt","to":"start/model.txt"}},
		{"name":"deploy","job":{"command":"deploy"},"deps":["made"],"outs":["live"]}]}}`, folder, name)
}

// heldAt is the content of a file of the work folder that a job got; "": it has no such file.
func (w *world) heldAt(job, path string) string {
	w.t.Helper()
	items, err := w.folders.Items(job)
	must.Do(w.t, err)
	n := slices.IndexFunc(items, func(i workdir.Item) bool { return i.Path == path })
	if n < 0 {
		return ""
	}
	f, err := w.folders.Open(items[n].Sum)
	must.Do(w.t, err)
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	must.Do(w.t, err)
	return string(b)
}

// trainsWarm runs the stages of a run, and returns what its training began with.
func (w *world) trainsWarm(run string, deploys bool) (began string, at *client.WarmStart) {
	w.t.Helper()
	w.attemptOf(run + ".train")
	began = w.heldAt(run+".train", "start/model.txt")
	w.runsWhole(run+".train", map[string]string{"made/model.txt": "model of " + run})
	if deploys {
		w.runsWhole(run+".deploy", map[string]string{"live/model": run})
	}
	g := w.groupOver(run)
	return began, g.Pipeline.Stages[0].WarmStart
}

// The first run begins with the file of the work folder, and each later one with the model of the version in place. An
// unchanged pipeline is reused although another model is in place by then.
func TestWarmStart_BeginsWithWhatIsDeployed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	with := func(data string) string {
		return folderWith(t, map[string]string{"data": data, "start/model.txt": "base"})
	}
	for n, want := range []string{"base", "model of retrain", "model of retrain-2"} {
		run := []string{"retrain", "retrain-2", "retrain-3"}[n]
		w.must("POST", "/v1/groups", warmer(with(fmt.Sprint(n)), "retrain"), nil)
		began, at := w.trainsWarm(run, true)
		if began != want {
			t.Fatalf("%s begins with %q, want %q", run, began, want)
		}
		var v client.ModelVersion
		w.must("GET", "/v1/models/"+run, nil, &v)
		if at == nil || !reflect.DeepEqual(v.Lineage[0].WarmStart, at) {
			t.Errorf("the lineage of %s has %+v, want %+v", run, v.Lineage[0].WarmStart, at)
		}
		if at == nil || at.Version != n || at.Digest == "" || at.Run != []string{"", "retrain", "retrain-2"}[n] {
			t.Errorf("%s says that it began with %+v", run, at)
		}
	}
	w.must("POST", "/v1/groups", warmer(with("2"), "retrain"), nil)
	if g := w.groupOver("retrain-4"); !slices.Equal(stagesOf(g), []string{"train reused", "deploy reused"}) {
		t.Errorf("unchanged: %v", stagesOf(g))
	} else if g.Pipeline.Stages[0].WarmStart != nil {
		t.Errorf("a reused stage says that it began with %+v", g.Pipeline.Stages[0].WarmStart)
	}
	w.must("POST", "/v1/groups", warmer(with("2"), "other"), nil) // begins with a model of its own
	if began, _ := w.trainsWarm("other", true); began != "base" {
		t.Errorf("another pipeline begins with %q", began)
	}
}

// A version that did not deploy is no start, and one that failed to deploy is none either.
func TestWarmStart_DoesNotBeginWithWhatFailedToDeploy(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	body := func(data, least string) string {
		folder := folderWith(t, map[string]string{"data": data, "start/model.txt": "base"})
		text := strings.Replace(warmer(folder, "retrain"), `"outs":["made"]`, `"outs":["made"],"metrics":["made/m.json"]`, 1)
		return strings.Replace(text, `"outs":["live"]`, `"outs":["live"],"gate":{"metric":"acc","min":"`+least+`"}`, 1)
	}
	for n, c := range []struct{ acc, want string }{{"0.9", "base"}, {"0.1", "model of retrain"}, {"0.9", "model of retrain"}} {
		run := []string{"retrain", "retrain-2", "retrain-3"}[n]
		w.must("POST", "/v1/groups", body(fmt.Sprint(n), "0.5"), nil)
		w.attemptOf(run + ".train")
		if began := w.heldAt(run+".train", "start/model.txt"); began != c.want {
			t.Fatalf("%s begins with %q, want %q", run, began, c.want)
		}
		w.runsWhole(run+".train", map[string]string{"made/model.txt": "model of " + run, "made/m.json": `{"acc":` + c.acc + `}`})
		if c.acc == "0.9" {
			w.runsWhole(run+".deploy", map[string]string{"live/model": run})
		}
		w.groupOver(run)
	}
}

// gc keeps what the next run begins with, and nothing of the version before.
func TestWarmStart_KeepsItsModel(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for n := 1; n <= 2; n++ {
		run := []string{"", "retrain", "retrain-2"}[n]
		folder := folderWith(t, map[string]string{"data": fmt.Sprint(n), "start/model.txt": "base"})
		w.must("POST", "/v1/groups", warmer(folder, "retrain"), nil)
		w.runsWholeFor(run+".train", map[string]string{"made/model.txt": run}, 0)
		w.runsWholeFor(run+".deploy", map[string]string{"live/model": run}, 0)
		w.groupOver(run)
		var done client.GCDone
		w.must("POST", "/v1/gc", client.GC{Only: []string{client.GCOutputs}, OlderThan: 1}, &done)
		removed := func(job string) bool {
			return slices.ContainsFunc(done.Items, func(i client.GCItem) bool { return i.Job == job })
		}
		if removed(run + ".train") {
			t.Errorf("gc removes what the run after %s begins with", run)
		}
		if removed("retrain.train") != (n == 2) {
			t.Errorf("after %s gc removes the model of the first version: %v", run, removed("retrain.train"))
		}
	}
}

// A warm start that can never be is refused before anything runs.
func TestWarmStart_RefusesWhatCanNeverBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	folder := folderWith(t, map[string]string{"data": "1", "start/model.txt": "base", "x": ""})
	bare := folderWith(t, map[string]string{"data": "1", "start/other": ""})
	for _, c := range []struct{ from, to, field, says string }{
		{folder, bare, "pipeline.stages[0].warm_start", "nothing to begin with"},
		{`"from":"made/model.txt"`, `"from":"none"`, "pipeline.stages[0].warm_start", "no stage makes none"},
		{`"from":"made/model.txt"`, `"from":"live"`, "pipeline.stages[0].warm_start", "does not come before deploy"},
		{`"from":"made/model.txt"`, `"from":"../x"`, "pipeline.stages[0].warm_start", "leads out of the work folder"},
		{`"to":"start/model.txt"`, `"to":"x"`, "pipeline.stages[0].warm_start", "does not read x"},
		{`"to":"start/model.txt"`, `"to":"live/x"`, "pipeline.stages[0].warm_start", "does not read live/x"},
		{`"name":"deploy"`, `"name":"push"`, "pipeline.stages[0].warm_start", "no stage deploys one"},
	} {
		body := strings.Replace(warmer(folder, "retrain"), c.from, c.to, 1)
		rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, body)
		text, _ := json.Marshal(p)
		if rec.Code < 400 || p.Field != c.field || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d, field %q: %s", c.to, rec.Code, p.Field, text)
		}
	}
}
