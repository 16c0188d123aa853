package server

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
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

// gated is a pipeline whose second stage deploys behind gates: a list in JSON. Another lr trains anew.
func gated(folder, lr, gates string) string {
	return fmt.Sprintf(`{"folder":%q,"spec":{"name":"retrain","project":"p","budget":{"dollars":"9"}},"pipeline":{"at_once":2,"stages":[
		{"name":"train","job":{"command":"train"},"deps":["data"],"outs":["model.txt","metrics.json","each.csv"],
		 "metrics":["metrics.json"],"examples":"each.csv","params":{"lr":%q}},
		{"name":"deploy","job":{"command":"deploy"},"deps":["model.txt"],"outs":["live"],"gates":%s}]}}`, folder, lr, gates)
}

// runsWhole is runsStage with the end of the machine, so that what the job has cost is final.
func (w *world) runsWhole(job string, makes map[string]string) {
	w.t.Helper()
	w.runsWholeFor(job, makes, time.Minute)
}

// runsWholeFor is runsWhole with a job that takes so long to begin and to end.
func (w *world) runsWholeFor(job string, makes map[string]string, long time.Duration) {
	w.t.Helper()
	w.runsStageFor(job, makes, long)
	w.endsMachine(job)
}

// endsMachine ends the machine of a job's last attempt.
func (w *world) endsMachine(job string) {
	w.t.Helper()
	instance := ""
	w.control.Read(func(m *core.Machine) {
		a := m.State().Job(job).Attempts()
		instance = a[len(a)-1].Instance()
	})
	w.event(core.InstanceEnded{Instance: instance, Until: w.control.Now(), Cause: "terminated"}, 0)
}

// trains lets the training of a run end with these figures and examples.
func (w *world) trains(run, accuracy, latency, each string) {
	w.t.Helper()
	w.runsWhole(run+".train", map[string]string{"model.txt": run, "each.csv": each,
		"metrics.json": fmt.Sprintf(`{"accuracy":%s,"latency":%s}`, accuracy, latency)})
}

const (
	pointGates = `[{"metric":"accuracy","min_gain":"0.5%","against":"deployed"},
		{"metric":"latency","min_gain":"0","goal":"minimize"}]`
	sureGate = `[{"metric":"train.accuracy","min_gain":"0","against":"deployed","confidence":"95%"}]`
)

// The first version deploys, one without enough gain does not, and one exactly at the limit does.
func TestGates_CompareWithWhatIsDeployed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	for n, c := range []struct {
		accuracy, latency string
		deploy, why       string
		deployed          int
	}{
		{"0.9", "12", "done", "", 1},
		{"0.9049", "12", "skipped", "accuracy of train is 0.9049 against 0.9 of version 1, which is deployed: gain 0.0049 is below the required 0.005", 1},
		{"0.905", "12.0001", "skipped", "latency of train is 12.0001 against 12 of version 1, which is deployed: gain -0.0001 is below the required 0", 1},
		{"0.905", "12.0", "done", "", 4},
		{"0.9099", "1", "skipped", "accuracy of train is 0.9099 against 0.905 of version 4, which is deployed: gain 0.0049 is below the required 0.005", 4},
	} {
		run := "retrain"
		if n > 0 {
			run = fmt.Sprint("retrain-", n+1)
		}
		w.must("POST", "/v1/groups", gated(folder, strconv.Itoa(n), pointGates), nil)
		w.trains(run, c.accuracy, c.latency, each(9, 10))
		if c.deploy == "done" {
			w.runsWhole(run+".deploy", map[string]string{"live/model": run})
		}
		g := w.groupOver(run)
		s := g.Pipeline.Stages[1]
		if s.State != c.deploy || s.Why != c.why {
			t.Fatalf("run %d: deploy is %s: %q, want %s: %q", n+1, s.State, s.Why, c.deploy, c.why)
		}
		if n > 0 && c.deploy == "skipped" { // what the stage had cost in the run that deployed last
			first := "retrain.deploy"
			if c.deployed > 1 {
				first = fmt.Sprintf("retrain-%d.deploy", c.deployed)
			}
			var want money.Amount
			w.control.Read(func(m *core.Machine) { want = m.State().Job(first).Spent(w.control.Now()) })
			if s.Spared == nil || s.Spared.Cmp(want) != 0 || want.Sign() <= 0 {
				t.Errorf("run %d: it spares %v, want %v", n+1, s.Spared, want)
			}
		} else if s.Spared != nil {
			t.Errorf("run %d: it spares %v", n+1, s.Spared)
		}
		w.versions(n+1, c.deployed)
	}
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	if text := b.shows("/models?pipeline=retrain", 200); !strings.Contains(text, "retrain@4") || !strings.Contains(text, "is below the required 0.005") {
		t.Error(text)
	}
	if text := b.shows("/groups/retrain-2", 200); !strings.Contains(text, "Not spent, by its last run") {
		t.Error(text)
	}
	var v client.ModelVersion
	w.must("GET", "/v1/models/retrain-4", nil, &v)
	if len(v.Gates) != 2 || v.Gates[0].Gain != "0.005" || v.Gates[0].Limit != "0.005" || v.Gates[0].Version != 1 || v.Gates[0].Base != "0.9" ||
		v.Verdict != "passed" || v.Metrics["train.accuracy"] != "0.905" || v.DeployedAt == nil {
		t.Errorf("version 4 is %+v", v)
	}
	if len(v.Lineage) != 2 || v.Lineage[0].Params["lr"] != "3" || len(v.Lineage[0].Inputs) != 1 || v.Lineage[0].Inputs[0].Digest == "" ||
		v.Lineage[1].Outs[0].Path != "live" || v.Lineage[1].Outs[0].Digest == "" {
		t.Errorf("its lineage is %+v", v.Lineage)
	}
}

// versions checks that there are so many versions, none twice, and that one of them at most is in place. The cost of
// each is that of its receipt.
func (w *world) versions(count, deployed int) (list []client.ModelVersion) {
	w.t.Helper()
	w.must("GET", "/v1/models?pipeline=retrain&project=p", nil, &list)
	if len(list) != count {
		w.t.Fatalf("there are %d versions, want %d", len(list), count)
	}
	for i, v := range list {
		if v.Version != i+1 || v.Deployed != (v.Version == deployed) {
			w.t.Errorf("at %d there is version %d, deployed: %v, want that of %d", i, v.Version, v.Deployed, deployed)
		}
		var r api.GroupReceipt
		w.must("GET", "/v1/groups/"+v.Run+"/receipt", nil, &r)
		sum := money.Amount{}
		for _, m := range r.Members {
			sum = sum.Add(m.Cost)
		}
		if v.Cost.Cmp(sum) != 0 {
			w.t.Errorf("version %d has cost %v, want %v", v.Version, v.Cost, sum)
		}
	}
	return list
}

// each are examples with ids, of which the first are right.
func each(right, of int) string {
	text := strings.Builder{}
	text.WriteString("id,accuracy\n")
	for n := range of {
		fmt.Fprintf(&text, "e%d,%d\n", n, map[bool]int{true: 1}[n < right])
	}
	return text.String()
}

// With a confidence the lower bound of the gain counts, over the examples that both runs name.
func TestGates_WithConfidenceTakeTheLowerBound(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	w.must("POST", "/v1/groups", gated(folder, "1", sureGate), nil)
	w.trains("retrain", "0.80", "1", each(160, 200))
	w.runsWhole("retrain.deploy", map[string]string{"live/model": "1"})
	w.groupOver("retrain")

	// Nobody can compare with examples that are wrong, so the first version is refused too.
	w.must("POST", "/v1/groups", strings.Replace(gated(folder, "1", sureGate), `"project":"p"`, `"project":"q"`, 1), nil)
	w.trains("retrain-2", "0.80", "1", each(10, 20))
	if s := w.groupOver("retrain-2").Pipeline.Stages[1]; s.State != "failed" || !strings.Contains(s.Why, "their mean is 0.5") {
		t.Errorf("the first version with wrong examples is %s: %q", s.State, s.Why)
	}

	// Of 200 examples five are right now that were wrong, and four wrong that were right: nobody can be sure of a gain.
	mixed := strings.Replace(strings.Replace(each(165, 200), "e0,1\ne1,1", "e0,0\ne1,0", 1), "e2,1\ne3,1", "e2,0\ne3,0", 1)
	w.must("POST", "/v1/groups", gated(folder, "2", sureGate), nil)
	w.trains("retrain-3", "0.805", "1", mixed)
	g := w.groupOver("retrain-3")
	s := g.Pipeline.Stages[1]
	if s.State != "skipped" || len(s.Gates) != 1 || s.Gates[0].Interval == nil || !s.Gates[0].Interval.Paired ||
		s.Gates[0].Interval.Examples != 200 || s.Gates[0].Interval.Others != 200 || s.Gates[0].Interval.Resamples < 2000 {
		t.Fatalf("without a sure gain deploy is %+v", s)
	}
	low, _ := new(big.Rat).SetString(s.Gates[0].Interval.Low)
	if low.Sign() >= 0 || s.Gates[0].Gain != "0.005" {
		t.Errorf("the verdict is %+v", s.Gates[0])
	}

	w.must("POST", "/v1/groups", gated(folder, "3", sureGate), nil)
	w.trains("retrain-4", "0.9", "1", each(180, 200)) // none is wrong that was right
	w.runsWhole("retrain-4.deploy", map[string]string{"live/model": "3"})
	if g = w.groupOver("retrain-4"); !g.Pipeline.Stages[1].Gates[0].Pass {
		t.Errorf("with a sure gain the verdict is %+v", g.Pipeline.Stages[1].Gates[0])
	}

	for n, c := range []struct{ accuracy, each, want string }{
		{"0.9", "id,accuracy\ne0,1\n", "has 1 examples"},
		{"0.9", each(5, 10), "their mean is 0.5, and the metric is 0.9"},
		{"0.5", "id,accuracy\ne0,1\ne0,0\n", "the example \"e0\" is there twice"},
		{"0.5", "id,loss,time\ne0,1,1\ne1,0,1\n", "none of its columns is accuracy"},
	} {
		run := fmt.Sprint("retrain-", n+5)
		w.must("POST", "/v1/groups", gated(folder, strconv.Itoa(n+4), sureGate), nil)
		w.trains(run, c.accuracy, "1", c.each)
		g = w.groupOver(run)
		if s := g.Pipeline.Stages[1]; s.State != "failed" || !strings.Contains(s.Why, c.want) {
			t.Errorf("with %q deploy is %s: %q, want failed: %q", c.each, s.State, s.Why, c.want)
		}
	}
	list := w.versions(7, 3)
	if got := []string{list[0].State, list[1].State, list[2].State, list[3].State}; !slices.Equal(got,
		[]string{"replaced", "skipped", "deployed", "failed"}) {
		t.Errorf("the versions are %v", got)
	}
}

// What another version has replaced is deployed again; what is in place is not.
func TestDeploys_AreReusedOnlyWhileInPlace(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	runs := func(run, lr string, trains bool) {
		w.must("POST", "/v1/groups", gated(folder, lr, "[]"), nil)
		if trains {
			w.trains(run, "1", "1", "1\n")
		}
	}
	runs("retrain", "1", true)
	w.runsWhole("retrain.deploy", map[string]string{"live/model": "a"})
	w.groupOver("retrain")
	runs("retrain-2", "1", false)
	if g := w.groupOver("retrain-2"); g.Pipeline.Stages[1].State != "reused" {
		t.Fatalf("what is in place is %s", g.Pipeline.Stages[1].State)
	}
	w.versions(2, 1)
	runs("retrain-3", "2", true)
	w.runsWhole("retrain-3.deploy", map[string]string{"live/model": "b"})
	w.groupOver("retrain-3")
	runs("retrain-4", "1", false)
	w.runsWhole("retrain-4.deploy", map[string]string{"live/model": "a"})
	if g := w.groupOver("retrain-4"); g.Pipeline.Stages[0].State != "reused" {
		t.Errorf("its training is %s", g.Pipeline.Stages[0].State)
	}
	w.versions(4, 4)
}

// After a deploy stage that failed or was cancelled once it had begun, nobody knows what is in place: the stage is not
// reused, gates compare with the last version that was deployed, and the versions say so.
func TestDeploys_AreNotReusedAfterOneFailed(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{"failed": "failed", "cancelled": "stopped"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, &firm{}, nil)
			folder := folderWith(t, map[string]string{"data": "1"})
			w.must("POST", "/v1/groups", gated(folder, "1", "[]"), nil)
			w.trains("retrain", "0.9", "1", "1\n")
			w.runsWhole("retrain.deploy", map[string]string{"live/model": "a"})
			w.groupOver("retrain")
			w.must("POST", "/v1/groups", gated(folder, "2", "[]"), nil)
			w.trains("retrain-2", "0.99", "1", "1\n")
			attempt := w.attemptOf("retrain-2.deploy")
			w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, time.Minute)
			if name == "cancelled" {
				w.must("POST", "/v1/groups/retrain-2/end", api.End{}, nil)
			}
			w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: reason, Exit: 1}, time.Minute)
			w.endsMachine("retrain-2.deploy")
			w.groupOver("retrain-2")
			list := w.versions(2, 0)
			if list[0].State != "unknown" || list[0].UnknownSince != "retrain-2" || list[1].UnknownSince != "retrain-2" {
				t.Errorf("after the failure the versions are %+v", list)
			}

			sure := `[{"metric":"accuracy","min_gain":"0.5%"}]`
			w.must("POST", "/v1/groups", gated(folder, "3", sure), nil)
			w.trains("retrain-3", "0.9", "1", "1\n")
			s := w.groupOver("retrain-3").Pipeline.Stages[1]
			if s.State != "skipped" || !strings.Contains(s.Why, "against 0.9 of version 1, the last whose deploy stage succeeded") ||
				len(s.Gates) != 1 || s.Gates[0].Failed != "retrain-2" {
				t.Errorf("a gate says %s: %q", s.State, s.Why)
			}

			w.must("POST", "/v1/groups", gated(folder, "1", "[]"), nil) // the model of the first run
			w.runsWhole("retrain-4.deploy", map[string]string{"live/model": "a"})
			if s := w.groupOver("retrain-4").Pipeline.Stages[1]; s.State != "done" {
				t.Errorf("the deploy stage of the first version is %s", s.State)
			}
			list = w.versions(4, 4)
			if list[0].State != "replaced" || list[0].UnknownSince != "" || list[1].UnknownSince != "" {
				t.Errorf("after a deploy the versions are %+v", list)
			}
		})
	}
}

// The examples of the version in place stay while gates may compare with them.
func TestGates_KeepTheExamplesOfWhatIsDeployed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	for n := 1; n <= 2; n++ {
		run := []string{"", "retrain", "retrain-2"}[n]
		w.must("POST", "/v1/groups", gated(folder, strconv.Itoa(n), sureGate), nil)
		w.runsWholeFor(run+".train", map[string]string{"model.txt": run, "metrics.json": `{"accuracy":0.9}`, "each.csv": each(9, 10)}, 0)
		w.runsWholeFor(run+".deploy", map[string]string{"live/model": run}, 0)
		w.groupOver(run)
		var done client.GCDone
		w.must("POST", "/v1/gc", client.GC{Only: []string{client.GCOutputs}, OlderThan: 1}, &done)
		for _, item := range done.Items {
			if item.Job == run+".train" {
				t.Errorf("gc removes the examples of %s", run)
			}
		}
		if removed := slices.ContainsFunc(done.Items, func(i client.GCItem) bool { return i.Job == "retrain.train" }); removed != (n == 2) {
			t.Errorf("after %s gc removes the examples of the first version: %v", run, removed)
		}
	}
}

// Who does not see a team does not see its models.
func TestModels_AreOfTheirTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	for _, team := range []string{"a", "b"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{Projects: []string{"p"}}, nil)
	}
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Viewer})
	cat := w.user("cat", identity.Grant{Team: "b", Role: identity.Viewer})
	of := func(team string) string {
		return strings.Replace(gated(folder, "1", pointGates), `"project":"p"`, `"project":"p","team":"`+team+`"`, 1)
	}
	w.must("POST", "/v1/groups", of("a"), nil)
	w.must("POST", "/v1/groups", of("b"), nil)
	w.must("POST", "/v1/groups", of("b"), nil)
	for who, want := range map[string]string{ann: "a@1", cat: "b@1 b@2", auth.OwnerName: "a@1 b@1 b@2"} {
		rec, p := w.ask("GET", "/v1/models", who, nil)
		var list []client.ModelVersion
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
			t.Fatalf("%v: %+v", err, p)
		}
		var got []string
		for _, v := range list {
			got = append(got, fmt.Sprint(v.Team, "@", v.Version))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the list is %v, want %s", got, want)
		}
	}
	for _, c := range []struct {
		path, who string
		code      int
	}{
		{"/v1/models/retrain", ann, 200}, {"/v1/models/retrain", cat, 404}, {"/v1/models/retrain-2", cat, 200}, {"/v1/models/none", ann, 404},
		{"/v1/models?pipelin=x", ann, 400}, {"/v1/models?project=q", ann, 200},
	} {
		if rec, p := w.ask("GET", c.path, c.who, nil); rec.Code != c.code || c.code >= 400 && p.Fix == "" {
			t.Errorf("GET %s: %d %+v, want %d", c.path, rec.Code, p, c.code)
		}
	}
}

// What cannot be judged is refused before anything is spent.
func TestGates_AreRefusedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	for gates, want := range map[string]string{
		`[{"metric":"acc","min_gain":"-1"}]`:                                "min_gain -1 is negative",
		`[{"metric":"acc","min_gain":"0","confidence":"100%"}]`:             "confidence 100% is out of bounds",
		`[{"metric":"acc","min":"0"},{"metric":"train.acc","max":"1"}]`:     "two gates judge acc of train",
		`[{"metric":"acc","min_gain":"0","against":"production"}]`:          "write deployed, or a number",
		`[{"metric":"acc","min_gain":"0"}],"gate":{"metric":"a","min":"1"}`: "give one of the two",
	} {
		rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, gated(folder, "1", gates))
		if text := p.Title + p.Detail + p.Field; rec.Code < 400 || rec.Code > 499 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", gates, rec.Code, text, want)
		}
	}
}

// A stage that has not reported a metric that a gate judges is the last that starts, and its work is not lost: with the
// name corrected, the next run reuses it, and so does one whose gate has a wrong name again.
func TestGates_StopThePipelineAtTheStageWithoutTheirMetric(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	submit := func(metric string) {
		t.Helper()
		w.must("POST", "/v1/groups", fmt.Sprintf(`{"folder":%q,"spec":{"name":"r","project":"p","budget":{"dollars":"9"}},
			"pipeline":{"at_once":1,"stages":[
			{"name":"train","job":{"command":"train"},"deps":["data"],"outs":["model.txt","metrics.json"],"metrics":["metrics.json"]},
			{"name":"evaluate","job":{"command":"evaluate"},"deps":["model.txt"],"outs":["table"]},
			{"name":"deploy","job":{"command":"deploy"},"deps":["table"],"outs":["live"],"gate":{"metric":%q,"min":"0.5"}}]}}`,
			folder, metric), nil)
	}
	stops := func(run, first, metric string) {
		t.Helper()
		g := w.groupOver(run)
		if got := stagesOf(g); !slices.Equal(got, []string{"train " + first, "evaluate skipped", "deploy failed"}) {
			t.Errorf("%s ends as %v", run, got)
		}
		for _, s := range g.Pipeline.Stages[1:] {
			if s.Job != "" || !strings.Contains(s.Why, "the metrics of train have no number "+metric+": metrics.json has no number "+
				metric) {
				t.Errorf("%s of %s has job %q and says %q", s.Name, run, s.Job, s.Why)
			}
		}
	}
	submit("accuracy")
	w.runsWhole("r.train", map[string]string{"model.txt": "m", "metrics.json": `{"acc":0.9}`})
	stops("r", "done", "accuracy")
	submit("train.Acc")
	stops("r-2", "reused", "Acc")
	submit("acc")
	w.runsWhole("r-3.evaluate", map[string]string{"table": "t"})
	w.runsWhole("r-3.deploy", map[string]string{"live/model": "m"})
	if got := stagesOf(w.groupOver("r-3")); !slices.Equal(got, []string{"train reused", "evaluate done", "deploy done"}) {
		t.Errorf("with the right name it ends as %v", got)
	}
}

// The stages of a pipeline that was ended have not begun; while it went on, they waited.
func TestPipelines_EndedEarlyHaveStagesThatHaveNotBegun(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("POST", "/v1/groups", retrain(folderWith(t, map[string]string{"data/a": "1", "train.py": "x"}), "1", "0"), nil)
	w.attemptOf("retrain.prepare")
	var g api.Group
	w.must("GET", "/v1/groups/retrain", nil, &g)
	if got := stagesOf(g); !slices.Equal(got[1:], []string{"train waiting", "deploy waiting"}) {
		t.Errorf("while it goes on: %v", got)
	}
	w.must("POST", "/v1/groups/retrain/end", api.End{}, nil)
	if got := stagesOf(w.groupOver("retrain")); !slices.Equal(got[1:], []string{"train not_begun", "deploy not_begun"}) {
		t.Errorf("after its end: %v", got)
	}
}

// The time of a deployment stays known when its job is in the archive.
func TestModels_SayWhenAVersionWasDeployedAfterItsJobIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data": "1"})
	w.must("POST", "/v1/groups", gated(folder, "1", pointGates), nil)
	w.trains("retrain", "0.9", "1", each(9, 10))
	w.runsWhole("retrain.deploy", map[string]string{"live/model": "1"})
	w.groupOver("retrain")
	var before, after client.ModelVersion
	w.must("GET", "/v1/models/retrain", nil, &before)
	for days := 1; days < 100; days += 20 {
		w.event(core.Tick{}, time.Duration(days)*24*time.Hour)
	}
	w.until(func(m *core.Machine) bool { return m.State().Job("retrain.deploy") == nil })
	w.must("GET", "/v1/models/retrain", nil, &after)
	if before.DeployedAt == nil || after.DeployedAt == nil || !after.DeployedAt.Equal(*before.DeployedAt) {
		t.Errorf("deployed at %v, and once archived at %v", before.DeployedAt, after.DeployedAt)
	}
}
