package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// sampled is a pipeline whose stages count rows, with a deploy stage and a sample.
const sampled = `name: retrain
budget: $5
sample: {part: 10%%, gate: {metric: evaluate.rows, min: %s}}
stages:
  prepare: {cmd: 'tail -n +2 raw.csv > rows.txt; echo "$SCRIMP_SAMPLE" > part.txt; [ -n "$SCRIMP_SAMPLE" ] || echo 1 > part.txt', deps: [raw.csv], outs: [rows.txt, part.txt]}
  evaluate: {cmd: 'printf "{\"rows\": %%s, \"part\": %%s}" "$(wc -l < rows.txt)" "$(cat part.txt)" > report.json', deps: [rows.txt, part.txt], metrics: [report.json]}
  deploy: {cmd: mkdir -p live && cp report.json part.txt live, deps: [report.json, part.txt], outs: [live], gate: {metric: evaluate.rows, min: 100}}
`

// csvOf is a CSV file with a header and rows.
func csvOf(rows int) string {
	text := "id,name\n"
	for n := range rows {
		text += fmt.Sprintf("%d,a\n", n)
	}
	return text
}

// stagesOf are the stages of a run by name.
func stagesOf(g api.Group) map[string]api.StageState {
	all := map[string]api.StageState{}
	for _, s := range g.Pipeline.Stages {
		all[s.Name] = s
	}
	return all
}

func TestPipeline_RunsSampleBeforeTheWhole(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("raw.csv", csvOf(300))
	h.write("pipeline.yaml", fmt.Sprintf(sampled, "25"))
	g, states := h.pipeline(0)
	if want := "sample.prepare done, sample.evaluate done, prepare done, evaluate done, deploy done"; states != want {
		t.Fatalf("%s, want %s", states, want)
	}
	all := stagesOf(g)
	if a, b := all["sample.evaluate"].Metrics["rows"], all["evaluate"].Metrics["rows"]; a != "30" || b != "300" {
		t.Errorf("the sample has %s rows and the whole %s, want 30 and 300", a, b)
	}
	if a, b := all["sample.evaluate"].Metrics["part"], all["evaluate"].Metrics["part"]; a != "0.1" || b != "1" {
		t.Errorf("SCRIMP_SAMPLE is %s for the sample and %s for the whole, want 0.1 and none", a, b)
	}
	h.addsUp(g)
	var v group.PipelineCost
	must.Do(t, json.Unmarshal([]byte(h.out("pipeline", "cost", g.ID, "--json")), &v))
	sum := money.Amount{}
	for _, s := range v.Stages {
		if strings.HasPrefix(s.Stage, "sample.") {
			sum = sum.Add(s.Cost)
		}
		if twin := all["sample."+s.Stage]; twin.Job != "" && !twin.CostOpen &&
			(s.Predicted == nil || !s.Predicted.AtMost || s.Predicted.Cost != twin.Cost.Times(10)) {
			t.Errorf("%s is predicted as %+v, and its sample of a tenth cost %s", s.Stage, s.Predicted, twin.Cost)
		}
	}
	if v.Sample == nil || *v.Sample != sum || sum.Sign() <= 0 {
		t.Errorf("the sample costs %v, and its stages %s", v.Sample, sum)
	}
	for what, want := range map[string]string{"pipeline cost retrain": "BY THE SAMPLE", "receipt retrain": "for the sample",
		"pipeline status retrain": "sample.evaluate"} {
		if out := h.do(strings.Fields(what)...); !strings.Contains(out, want) {
			t.Errorf("scrimp %s does not say %q:\n%s", what, want, out)
		}
	}
	if g, states := h.pipeline(0); g.Began != 0 || strings.Contains(states, "done") {
		t.Errorf("an unchanged run begins %d stages: %s", g.Began, states)
	}
	g, states = h.pipeline(0, "--sample", "none")
	if states != "prepare reused, evaluate reused, deploy reused" {
		t.Errorf("without the sample: %s", states)
	}
	h.do("ledger", "verify")
}

func TestPipeline_StopsBeforeTheWholeIfTheSampleIsHopeless(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("raw.csv", csvOf(300))
	h.write("pipeline.yaml", fmt.Sprintf(sampled, "31"))
	if g, states := h.pipeline(0); g.Began != 2 ||
		states != "sample.prepare done, sample.evaluate done, prepare skipped, evaluate skipped, deploy skipped" {
		t.Errorf("%d stages began: %s", g.Began, states)
	}
	h.write("pipeline.yaml", strings.Replace(fmt.Sprintf(sampled, "1"),
		"wc -l", "exit 3; wc -l", 1))
	if g, states := h.pipeline(3); g.Began != 1 || !strings.Contains(states, "sample.evaluate failed, prepare skipped") {
		t.Errorf("%d stages began: %s", g.Began, states)
	}
	h.write("pipeline.yaml", "name: retrain\nbudget: $5\nsample: 10%\nstages:\n"+
		"  a: {cmd: 'echo \"{}\" > m.json', deps: [raw.csv], metrics: [m.json]}\n"+
		"  deploy: {cmd: 'true', after: a, gate: {metric: a.loss, max: 1}}\n")
	if g, states := h.pipeline(3); g.Began != 1 || !strings.Contains(states, "sample.a failed, a skipped") {
		t.Errorf("%d stages began with a metric that nobody reports: %s", g.Began, states)
	}
}

func TestPipeline_RefusesABadSample(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("model.bin", "x")
	h.write("none.csv", "")
	h.write("head.csv", "id,name\n")
	for _, c := range []struct{ sample, want string }{
		{"sample: 0%\n", "pipeline.yaml:2"},
		{"sample: all\n", "`sample` is \"all\": write a percentage such as 1%"},
		{"sample: [5%, 1%]\n", "write the smaller part first"},
		{"sample: {part: 1%, rows: 5}\n", "`sample.rows` is no field of a sample"},
		{"sample: {part: 1%, gate: {metric: b.x, min: 1}}\n", "is a metric of no stage"},
		{"sample: 1%\n", "pipeline.yaml:2: `sample`: the sample is not valid: no input has a part: name the data in sample.data"},
		{"sample: {part: 1%, data: [model.bin]}\n", "pipeline.yaml:2: `sample`: the sample is not valid: model.bin has no part"},
		{"sample: {part: 1%, data: [none.csv]}\n", "none.csv:1: the file is empty"},
		{"sample: {part: 1%, data: [head.csv]}\n", "head.csv:2: no row follows the header"},
	} {
		h.write("pipeline.yaml", "budget: $5\n"+c.sample+"stages: {a: {cmd: x, deps: [model.bin]}}\n")
		if out, err := h.try("pipeline", "run", "-y"); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, want %q:\n%s", c.sample, err, c.want, out)
		}
	}
	if out, err := h.try("pipeline", "run", "-y", "--sample", "2"); err == nil || !strings.Contains(out, "--sample is \"2\"") {
		t.Errorf("--sample 2: %v\n%s", err, out)
	}
}

// A sample takes files of a folder and rows of what a stage has made, on two parts, the smaller first.
func TestPipeline_TakesFilesAndRowsOnTwoParts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for n := range 40 {
		h.write(fmt.Sprintf("img/%d.png", n), fmt.Sprint(n))
	}
	h.write("pipeline.yaml", `name: retrain
budget: $5
sample: {part: [10%, 50%], data: [img, list.csv]}
stages:
  list: {cmd: (echo name; ls img) > list.csv, deps: [img], outs: [list.csv]}
  count: {cmd: 'echo "{\"n\": $(wc -l < list.csv)}" > n.json', deps: [list.csv], metrics: [n.json]}
`)
	g, _ := h.pipeline(0)
	for stage, want := range map[string]string{
		"sample.count":   "2",  // the header and a tenth of 4 files
		"sample-2.count": "11", // and half of 20
		"count":          "41",
	} {
		if n := stagesOf(g)[stage].Metrics["n"]; n != want {
			t.Errorf("%s counts %s lines, want %s", stage, n, want)
		}
	}
	var v group.PipelineCost
	must.Do(t, json.Unmarshal([]byte(h.out("pipeline", "cost", g.ID, "--json")), &v))
	for _, s := range v.Stages {
		if s.Predicted != nil && s.Predicted.AtMost {
			t.Errorf("two parts give only a bound for %s", s.Stage)
		}
	}
	h.addsUp(g)
}

// A sample of few rows gets a larger share than its percentage; the prediction uses that share and shows it.
func TestPipelineCost_PredictsByTheShareThatTheSampleTook(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("raw.csv", csvOf(4))
	h.write("pipeline.yaml", "name: retrain\nbudget: $5\nsample: 1%\nstages:\n  a: {cmd: cp raw.csv b.txt, deps: [raw.csv], outs: [b.txt]}\n"+
		"  c: {cmd: 'true', deps: [b.txt]}\n")
	g, _ := h.pipeline(0)
	all := stagesOf(g)
	if s := all["sample.a"]; s.Taken != 1 || s.TakenOf != 4 {
		t.Errorf("the sample has %d of %d rows", s.Taken, s.TakenOf)
	}
	h.addsUp(g)
	var v group.PipelineCost
	must.Do(t, json.Unmarshal([]byte(h.out("pipeline", "cost", g.ID, "--json")), &v))
	for _, s := range v.Stages { // c reads what the sample of a has made, and has its share
		if twin := all["sample."+s.Stage]; twin.Job != "" && !twin.CostOpen &&
			(s.Predicted == nil || s.Predicted.Cost != twin.Cost.Times(4) || s.Predicted.Shares[0].Taken*4 != s.Predicted.Shares[0].Of) {
			t.Errorf("%s is predicted as %+v, and its sample of a quarter cost %s", s.Stage, s.Predicted, twin.Cost)
		}
	}
	if out := h.do("pipeline", "cost", "retrain"); !strings.Contains(out, "OF THE DATA") || !strings.Contains(out, "25 %") {
		t.Errorf("the share is not shown:\n%s", out)
	}
}
