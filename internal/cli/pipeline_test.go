package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// retrain is a pipeline whose deploy stage has a gate on a metric of evaluate, with a branch that reads no parameter.
const retrain = `name: retrain
budget: $5
stages:
  prepare: {cmd: sort -n raw.txt > sorted.txt, deps: [raw.txt], outs: [sorted.txt]}
  count: {cmd: wc -l < sorted.txt > count.txt, deps: [sorted.txt], outs: [count.txt]}
  train: {cmd: "awk '{ s += $1 } END { print s * ${scale} }' sorted.txt > model.txt", deps: [sorted.txt], params: [scale], outs: [model.txt]}
  evaluate: {cmd: 'printf "{\"test\": {\"score\": %s}}" "$(cat model.txt)" > report.json', deps: [model.txt], metrics: [report.json]}
  deploy: {cmd: mkdir -p live && cp model.txt live, deps: [model.txt], outs: [live], gate: {metric: evaluate.test.score, min: "${least}"}}
`

// pipeline runs a pipeline to its end, verifies the exit status code, and returns the states of its stages.
func (h *home) pipeline(code int, args ...string) (g api.Group, states string) {
	h.t.Helper()
	out, err := h.try(append([]string{"pipeline", "run", "-y"}, args...)...)
	is := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		is, err = e.ExitCode(), nil
	}
	if err != nil || is != code {
		h.t.Fatalf("pipeline run ends with %d, %v, want %d:\n%s", is, err, code, out)
	}
	must.Do(h.t, json.Unmarshal([]byte(h.out("pipeline", "status", "retrain", "--json")), &g))
	for _, s := range g.Pipeline.Stages {
		states += s.Name + " " + s.State + ", "
	}
	return g, strings.TrimSuffix(states, ", ")
}

func TestPipeline_RunsOnlyChangedStages(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("pipeline.yaml", retrain)
	h.write("raw.txt", "3\n1\n2\n")
	h.write("params.yaml", "scale: 1\nleast: 5\n")
	for _, c := range []struct {
		what, file, text, want string
		began                  int
	}{
		{what: "the first run", want: "prepare done, count done, train done, evaluate done, deploy done", began: 5},
		{what: "nothing has changed", want: "prepare reused, count reused, train reused, evaluate reused, deploy reused"},
		{"a file that nothing reads", "notes.txt", "x", "prepare reused, count reused, train reused, evaluate reused, deploy reused", 0},
		{"a parameter", "params.yaml", "scale: 2\nleast: 5\n", "prepare reused, count reused, train done, evaluate done, deploy done", 3},
		{"a parameter that was used before", "params.yaml", "scale: 1.0\nleast: 5\n",
			"prepare reused, count reused, train done, evaluate reused, deploy done", 2}, // another version has replaced what it deployed
		{"below the gate", "params.yaml", "scale: 3\nleast: 18.0001\n", "prepare reused, count reused, train done, evaluate done, deploy skipped", 2},
		{"at the gate", "params.yaml", "scale: 3\nleast: 18.000\n", "prepare reused, count reused, train reused, evaluate reused, deploy done", 1},
		{"new data of the same order", "raw.txt", "2\n3\n1\n", "prepare done, count reused, train reused, evaluate reused, deploy reused", 1},
	} {
		if c.file != "" {
			h.write(c.file, c.text)
		}
		g, states := h.pipeline(0)
		if states != c.want || g.Began != c.began || g.State != "over" {
			t.Errorf("%s: %s, %d began, want %s, %d", c.what, states, g.Began, c.want, c.began)
		}
		h.addsUp(g)
	}
	var why group.PipelineWhy
	must.Do(t, json.Unmarshal([]byte(h.out("pipeline", "why", "retrain", "prepare", "--json")), &why))
	if len(why.Changes) != 1 || why.Changes[0].Name != "raw.txt" || why.Against != "retrain-7" || why.Run != "retrain-8" {
		t.Errorf("prepare has run again because of %+v", why)
	}
	if out := h.do("pipeline", "why", "retrain", "train"); !strings.Contains(out, "are the same") {
		t.Errorf("train is reused, and: %s", out)
	}
	if out := h.do("pipeline", "graph", "retrain"); !strings.Contains(out, "5 ── deploy") && !strings.Contains(out, "4 ── deploy") {
		t.Errorf("the graph is\n%s", out)
	}
	h.do("ledger", "verify")
}

// addsUp compares the cost of each stage with the receipt.
func (h *home) addsUp(g api.Group) {
	h.t.Helper()
	var v group.PipelineCost
	must.Do(h.t, json.Unmarshal([]byte(h.out("pipeline", "cost", g.ID, "--json")), &v))
	var r api.GroupReceipt
	must.Do(h.t, json.Unmarshal([]byte(h.out("receipt", g.ID, "--json")), &r))
	sum := money.Amount{}
	for _, s := range v.Stages {
		sum = sum.Add(s.Cost)
	}
	if sum != r.Cost || len(v.Stages) != len(g.Pipeline.Stages) || r.Cost != g.Spent {
		h.t.Errorf("the stages of %s cost %s, its receipt says %s and its state %s", g.ID, sum, r.Cost, g.Spent)
	}
}

// A stage that fails or lacks its outputs ends its dependents, and nothing else.
func TestPipeline_FailedStageEndsDependents(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("dvc.yaml", `stages:
  good: {cmd: echo 1 > a.txt, deps: [in.txt], outs: [a.txt]}
  fails: {cmd: [echo one, exit 7, touch b.txt], deps: [in.txt], outs: [b.txt], retry: {max: 1, codes: [1]}}
  lies: {cmd: "true", deps: [in.txt], outs: [c.txt]}
  after: {cmd: cat b.txt, deps: [b.txt]}
  other: {cmd: cat a.txt, deps: [a.txt]}
`)
	h.write("in.txt", "x")
	_, states := h.pipeline(3, "--name", "retrain", "--budget", "$3")
	for _, want := range []string{"good done", "fails failed", "lies failed", "after skipped", "other done"} {
		if !strings.Contains(states, want) {
			t.Errorf("%s, want %s", states, want)
		}
	}
}

// A folder that vanishes during the run, and an output that no stage makes, fail their stages with the input or output
// and what to do. The stages before them are not paid for again.
func TestPipeline_NamesAVanishedInputAndAMissingOutput(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	corpus := t.TempDir()
	file := `name: retrain
budget: $5
stages:
  first: {cmd: "rmdir ` + corpus + ` && echo 1 > a.txt", deps: [in.txt], outs: [a.txt]}
  reads: {cmd: ls $SCRIMP_DATA_CORPUS > b.txt, deps: [a.txt], outs: [b.txt], data: [{name: corpus, path: "file://` + corpus + `"}]}
  lies: {cmd: "true", deps: [in.txt], outs: [c.txt]}
`
	h.write("pipeline.yaml", file)
	h.write("in.txt", "x")
	g, _ := h.pipeline(3)
	for n, want := range map[string]string{"reads": "bring the input corpus from file://" + corpus, "lies": "c.txt: let its command write that"} {
		at := slices.IndexFunc(g.Pipeline.Stages, func(s api.StageState) bool { return s.Name == n })
		if s := g.Pipeline.Stages[at]; s.State != "failed" || !strings.Contains(s.Why, want) {
			t.Errorf("stage %s is %s: %q, want %q", n, s.State, s.Why, want)
		}
	}
	h.addsUp(g)
	must.Do(t, os.MkdirAll(corpus, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(corpus, "one.txt"), []byte("1"), 0o600))
	h.write("pipeline.yaml", strings.ReplaceAll(file, `cmd: "true"`, "cmd: echo 1 > c.txt"))
	if _, states := h.pipeline(0); states != "first reused, lies done, reads done" && states != "first reused, reads done, lies done" {
		t.Errorf("after the fix: %s", states)
	}
}

// An invalid pipeline is refused before it spends anything, with file, line and fix.
func TestPipeline_RefusesInvalidFileBeforeItRuns(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for want, text := range map[string]string{
		"pipeline.yaml:2: `stages.a.cmd` is missing":                            "stages:\n  a: {deps: [x]}\n",
		"has no budget for the whole: write budget: $25":                        "stages: {a: {cmd: x}}\n",
		"wait for each other: a needs b needs a":                                "stages: {a: {cmd: x, after: b}, b: {cmd: x, after: a}}\n",
		"`params.yaml` is not there":                                            "stages: {a: {cmd: x, params: [lr]}}\n",
		"`stages.a.resources.cpus`":                                             "stages: {a: {cmd: x, resources: {cpus: many}}}\n",
		"nothing on this market fits":                                           "budget: $5\nstages: {a: {cmd: x, resources: {cpus: 100000+}}}\n",
		"secret NOBODY_HAS_THIS is not in the environment: export it first":     "budget: $5\nsecrets: [NOBODY_HAS_THIS]\nstages: {a: {cmd: x}}\n",
		"`stages.a.secrets` is no field of a stage: write it at the top of the": "budget: $5\nstages: {a: {cmd: x, secrets: [A]}}\n",
	} {
		h.write("pipeline.yaml", text)
		out, err := h.try("pipeline", "run", "-y")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
	}
	if out, err := h.try("pipeline", "status", "retrain"); err == nil {
		t.Errorf("a pipeline that was never run is shown: %s", out)
	}
	h.write("empty/x", "")
	if out, err := h.try("pipeline", "graph", "none.yaml"); err == nil || !strings.Contains(out, "none.yaml") {
		t.Errorf("%v: %s", err, out)
	}
}

// rated is a pipeline that deploys only what is better than what is deployed.
const rated = `name: rated
budget: $5
stages:
  evaluate: {cmd: cp figures.json report.json, deps: [figures.json], metrics: [report.json]}
  push: {cmd: cp report.json live.json, deps: [report.json], outs: [live.json], deploy: true,
    gate: [{metric: accuracy, min_gain: 0.5%}, {metric: latency, min_gain: 0, goal: minimize}]}
`

// The first version deploys, one without gain does not, one at the limit does; a server that was stopped in between
// knows the same.
func TestModels_ListWhatPipelinesDeployed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("pipeline.yaml", rated)
	for _, figures := range []string{"0.900, \"latency\": 12", "0.9049, \"latency\": 12", "0.905, \"latency\": 12.0"} {
		h.write("figures.json", `{"accuracy": `+figures+"}")
		h.do("pipeline", "run", "-y")
		h.do("server", "stop", "--now")
	}
	var list []api.ModelVersion
	for line := range strings.Lines(h.do("models", "rated", "--json")) {
		var v api.ModelVersion
		must.Do(t, json.Unmarshal([]byte(line), &v))
		var r api.GroupReceipt
		must.Do(t, json.Unmarshal([]byte(h.out("receipt", v.Run, "--json")), &r))
		if v.Cost != r.Cost || v.Cost.Sign() <= 0 {
			t.Errorf("%s cost %s, and its receipt says %s", v.ID(), v.Cost, r.Cost)
		}
		list = append(list, v)
	}
	if len(list) != 3 || list[0].State != "replaced" || list[1].State != "skipped" || list[1].Verdict != "not_passed" ||
		list[2].State != "deployed" || !list[2].Deployed || list[2].Gates[0].Gain != "0.005" || list[2].Gates[0].Version != 1 {
		t.Errorf("the versions are %+v", list)
	}
	for what, want := range map[string]string{
		"models":                     "rated@3  deployed",
		"models show rated@2":        "accuracy of evaluate is 0.9049 against 0.900 of version 1, which is deployed: gain 0.0049 is below the required 0.005",
		"models show rated-3":        "rated@3 is deployed",
		"models show rated":          "rated@3 is deployed",
		"pipeline status rated-2":    "spared",
		"pipeline graph":             "gate accuracy at least 0.005 higher than deployed and latency no worse",
		"models show rated@3 --json": `"lineage":[{"stage":"evaluate"`,
	} {
		if out := h.do(strings.Fields(what)...); !strings.Contains(out, want) {
			t.Errorf("scrimp %s does not say %q:\n%s", what, want, out)
		}
	}
	for what, want := range map[string]string{"models show rated@9": "there is no version rated@9",
		"models show rated@x": "is not a version", "models show none": "there is no version none",
		"models nosuch": "there is no pipeline nosuch with versions", "models rated@1": "write scrimp models show rated@1",
		"models --project other": "there is no pipeline with versions of a model in the project other"} {
		if out, err := h.try(strings.Fields(what)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("scrimp %s: %v, want %q:\n%s", what, err, want, out)
		}
	}
	h.do("ledger", "verify")
	before := h.models()
	h.do("backup", "b.tar.gz")
	h.do("server", "stop", "--now")
	must.Do(t, os.Rename(h.data, h.data+"-lost"))
	h.do("restore", "b.tar.gz")
	if after := h.models(); !slices.Equal(after, before) {
		t.Errorf("after a restore the versions are\n%s\nand were\n%s", after, before)
	}
}

// models are all versions in short: what they are, what they cost and what their gates compared.
func (h *home) models() (list []string) {
	h.t.Helper()
	for line := range strings.Lines(h.do("models", "--json")) {
		var v api.ModelVersion
		must.Do(h.t, json.Unmarshal([]byte(line), &v))
		list = append(list, fmt.Sprintf("%s %s %s %s %+v %v", v.ID(), v.Run, v.State, v.Cost, v.Gates, v.Metrics))
	}
	return list
}

// A run whose budget does not pay for the grace of a stage on any machine is refused before anything is sent, once or
// on a schedule; --force submits it.
func TestPipeline_RefusesABudgetThatStartsNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", "name: dear\nspeed: 1200\noffers:\n"+
		"  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: on-demand, price: 8}\n")
	h.write("pipeline.yaml", "name: nightly\nbudget: $1\nstages: {a: {cmd: 'true'}}\n")
	for _, args := range []string{"pipeline run -d", "pipeline schedule --total $900 --cron 0~3~*~*~*"} {
		line := strings.Split(args, " ")
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "~", " ")
		}
		line = append(line, "-y", "--market", "market.yaml")
		if out, err := h.try(line...); err == nil || !strings.Contains(out, "stage a: no machine for sale starts within the budget of $1.00") ||
			!strings.Contains(out, "--budget") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if out := h.do("groups"); strings.Contains(out, "nightly") {
		t.Errorf("a refused pipeline is there:\n%s", out)
	}
	h.do("pipeline", "schedule", "-y", "--cron", "0 3 * * *", "--total", "$900", "--budget", "$100", "--name", "enough")
	h.do("pipeline", "schedule", "-y", "--cron", "0 3 * * *", "--total", "$900", "--name", "forced", "--force")
}

// warmed is a pipeline that trains further from the model in place.
const warmed = `name: retrain
budget: $5
stages:
  train: {cmd: cat start.txt fresh.txt > model.txt, deps: [start.txt, fresh.txt], outs: [model.txt],
    warm_start: {from: model.txt, to: start.txt}}
  deploy: {cmd: mkdir -p live && cp model.txt live, deps: [model.txt], outs: [live]}
`

// The first run begins with the file of the work folder, the next with the deployed model, and an unchanged one runs
// nothing.
func TestPipeline_BeginsWithTheDeployedModel(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("pipeline.yaml", warmed)
	h.write("fresh.txt", "1\n")
	if out, err := h.try("pipeline", "run", "-y"); err == nil || !strings.Contains(out, "train has nothing to begin with") {
		t.Fatalf("without a start: %v\n%s", err, out)
	}
	h.write("start.txt", "0\n")
	for n, want := range []string{"0\n1\n", "0\n1\n2\n", "0\n1\n2\n3\n"} {
		h.write("fresh.txt", fmt.Sprintln(n+1))
		g, states := h.pipeline(0)
		if states != "train done, deploy done" {
			t.Fatalf("run %d: %s", n+1, states)
		}
		if w := g.Pipeline.Stages[0].WarmStart; w == nil || w.Version != n {
			t.Errorf("run %d began with %+v", n+1, w)
		}
		h.do("get", g.ID+".train", "--to", fmt.Sprint("got", n))
		got, err := os.ReadFile(filepath.Join(h.dir, fmt.Sprint("got", n), "model.txt"))
		if err != nil || string(got) != want {
			t.Errorf("run %d made %q, %v, want %q", n+1, got, err, want)
		}
	}
	if out := h.do("pipeline", "status", "retrain"); !strings.Contains(out, "train: it began with model.txt of version 2 (retrain-2), at start.txt") {
		t.Error(out)
	}
	if _, states := h.pipeline(0); states != "train reused, deploy reused" {
		t.Errorf("unchanged: %s", states)
	}
}
