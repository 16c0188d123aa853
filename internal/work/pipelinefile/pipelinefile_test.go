package pipelinefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

var now = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

// read returns a function that reads the given files of a folder.
func read(files map[string]string) func(string) ([]byte, error) {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return func(name string) ([]byte, error) { return fs.ReadFile(all, name) }
}

// params are the files beside the DVC file of these tests.
var params = map[string]string{
	"params.yaml": "seed: 7\ntrain:\n  lr: 1.0e-1\n  layers: [64, 32]\n  name: it's new\n  deep: {drop: 0.5}\n  fast: true\n  slow: false\n" +
		"countries: {uk: {rows: 10}, us: {rows: 20}}\nmodels: [linear, tree]\n",
	"conf/extra.json":  `{"batch": 16, "on": false, "paths": {"model": "out/model.bin"}, "late": 1}`,
	"src/params.yaml":  "depth: 3\n",
	"conf/all.yaml":    "b: 2\na: {x: [1, 2.50, null]}\n",
	"conf/broken.yaml": "a: [\n",
	"conf/list.yaml":   "[1]\n",
	"params.toml":      "a = 1\n",
}

// dvcFile is a DVC file with most of its keywords.
const dvcFile = `vars:
  - conf/extra.json:batch,paths
  - word: {one: first}
    train: {extra: 1}
metrics: [summary.json]
plots:
  - loss.csv: {x: step}
stages:
  fetch:
    desc: gets what ${nobody} has
    cmd: ./fetch.sh > raw.csv
    outs:
      - raw.csv
    meta: {owner: data}
    always_changed: true
  clean:
    foreach: ${countries}
    do:
      cmd: ./clean --rows ${item.rows} --country ${key} --seed ${seed}
      deps: [raw.csv]
      outs:
        - data/${key}.csv:
            cache: false
  shrink:
    foreach: [a b, 2]
    do:
      cmd: ./shrink '${item}'
      deps: [data/uk.csv]
      outs: ["small/${item}"]
  train:
    matrix:
      model: ${models}
      depth:
        - 1
        - {least: 2}
    wdir: src
    cmd:
      - ./train ${train} --model ${item.model}
      - echo "\${HOME} ${train.layers} ${train.layers[1]}"
    deps:
      - ../data
      - train.py
    params:
      - depth
      - ../params.yaml:
          - train.lr
          - train.layers
      - ../conf/all.yaml:
    outs:
      - ../model-${item.model}-${key}
  evaluate:
    vars:
      - goal: {name: acc}
    cmd: ./evaluate ${paths.model} ${goal.name} ${word.one} ${batch}
    deps: [model-linear-linear-1]
    params: [seed, train]
    metrics:
      - report/metrics.json: {cache: false}
      - report/more.yaml
    plots:
      - report/curve.csv: {x: epoch, y: loss, template: linear}
  old:
    cmd: ./old
    outs: [legacy.bin]
    frozen: true
  last:
    cmd: ./last
    deps: [legacy.bin, report/metrics.json]
`

func stageOf(t *testing.T, f *File, name string) (text string, command string) {
	t.Helper()
	at := f.Spec.Find(name)
	if at < 0 || f.Spec.Stages[at].Name != name {
		t.Fatalf("there is no stage %s", name)
	}
	s := f.Spec.Stages[at]
	s.Needs = nil
	b, err := json.Marshal(s)
	must.Do(t, err)
	if f.Jobs[at].Name != spec.Label(name) || strings.Join(f.Jobs[at].Outputs, ",") != strings.Join(s.Outs, ",") {
		t.Errorf("the job of %s is %s with outputs %v", name, f.Jobs[at].Name, f.Jobs[at].Outputs)
	}
	return string(b), f.Jobs[at].Command
}

func TestParse_ReadsAFileOfDVC(t *testing.T) {
	f, err := Parse("dvc.yaml", []byte(dvcFile), now, read(params))
	must.Do(t, err)
	if len(f.Spec.Stages) != 11 || f.AtOnce != 4 || f.Whole.Budget.Dollars != nil || f.Whole.Name != "" {
		t.Errorf("it has %d stages, %d at once, budget %v", len(f.Spec.Stages), f.AtOnce, f.Whole.Budget.Dollars)
	}
	for name, want := range map[string][2]string{
		"fetch":      {`{"name":"fetch","outs":["raw.csv"],"always":true}`, "./fetch.sh > raw.csv"},
		"clean@uk":   {`{"name":"clean@uk","deps":["raw.csv"],"outs":["data/uk.csv"]}`, "./clean --rows 10 --country uk --seed 7"},
		"clean@us":   {`{"name":"clean@us","deps":["raw.csv"],"outs":["data/us.csv"]}`, "./clean --rows 20 --country us --seed 7"},
		"shrink@a_b": {`{"name":"shrink@a_b","deps":["data/uk.csv"],"outs":["small/a b"]}`, "./shrink 'a b'"},
		"shrink@2":   {`{"name":"shrink@2","deps":["data/uk.csv"],"outs":["small/2"]}`, "./shrink '2'"},
		"train@tree-depth1": {`{"name":"train@tree-depth1","deps":["data","src/train.py"],"outs":["model-tree-tree-depth1"],` +
			`"params":{"conf/all.yaml:":"{\"a\":{\"x\":[1,2.5,null]},\"b\":2}","src/params.yaml:depth":"3","train.layers":"[64,32]","train.lr":"0.1"}}`,
			"cd src || exit\n(\n./train --lr 1.0e-1 --layers 64 32 --name 'it'\\''s new' --deep.drop 0.5 --fast --extra 1 --model tree\n) && (\n" +
				"echo \"${HOME} 64 32 32\"\n)"},
		"evaluate": {`{"name":"evaluate","deps":["model-linear-linear-1"],"outs":["report/curve.csv","report/metrics.json","report/more.yaml"],` +
			`"metrics":["report/metrics.json"],"params":{"seed":"7","train":"{\"deep\":{\"drop\":0.5},\"fast\":true,\"layers\":[64,32],\"lr\":0.1,` +
			`\"name\":\"it's new\",\"slow\":false}"}}`, "./evaluate out/model.bin acc first 16"},
		"last": {`{"name":"last","deps":["legacy.bin","report/metrics.json"]}`, "./last"},
	} {
		got, command := stageOf(t, f, name)
		if got != want[0] {
			t.Errorf("%s is\n%s, want\n%s", name, got, want[0])
		}
		if command != want[1] {
			t.Errorf("%s runs\n%s, want\n%s", name, command, want[1])
		}
	}
	notes := strings.Join(f.Notes, "\n")
	for _, want := range []string{"metrics of the file", "plots of the file", "old is frozen", "report/more.yaml of evaluate",
		`"shrink@a b" is called shrink@a_b`, "fetch: without deps"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note says %q:\n%s", want, notes)
		}
	}
}

// ownFile is a file in our own format.
const ownFile = `name: retrain
team: vision
project: shop
tags: {ticket: "42"}
budget: $12.50
secrets: [TOKEN]
parallel: 2
x-small: &small {cpus: 1, memory: 1GiB+}
defaults:
  resources: {cpus: 2, capacity: [spot]}
  retry: {max: 2}
  env: {LANG: C}
stages:
  prepare:
    cmd: ./prepare
    deps: [raw.csv]
    outs: [data]
    resources: *small
  train:
    args: [python3, train.py]
    deps: [data]
    outs: [model]
    resources: {accelerator: "H100:1"}
    env: {STEPS: "100"}
    checkpoint: {dir: checkpoints}
    budget: $5
  evaluate:
    command: ./evaluate
    deps: [model, data]
    metrics: [metrics.json]
  deploy:
    cmd: ./deploy
    dependencies: [evaluate]
    deps: [model]
    outs: [live]
    gate: {metric: evaluate.accuracy, min: 0.90}
  tell:
    foreach: [mail, chat]
    do: {cmd: "./tell ${item}", after: deploy, deps: [model]}
  end: {cmd: "true", after: [tell], deps: [model]}
`

func TestParse_ReadsFieldsOfJobFiles(t *testing.T) {
	f, err := Parse("pipeline.yaml", []byte(ownFile), now, read(nil))
	must.Do(t, err)
	w := f.Whole
	if w.Name != "retrain" || w.Team != "vision" || w.Project != "shop" || w.Tags["ticket"] != "42" || w.Budget.Dollars.String() != "12.5" ||
		w.Secrets[0] != "TOKEN" || w.Command != "" || f.AtOnce != 2 {
		t.Errorf("the whole is %+v, %d at once", w, f.AtOnce)
	}
	train, deploy := f.Jobs[f.Spec.Find("train")], f.Spec.Stages[f.Spec.Find("deploy")]
	if train.Resources.Accelerator != "H100:1" || train.Resources.CPUs.Min != 2 || train.Retry.Max != 2 || train.Env["LANG"] != "C" ||
		train.Env["STEPS"] != "100" || train.Args[1] != "train.py" || train.Checkpoint.Dir != "checkpoints" || train.Budget.Dollars.String() != "5" {
		t.Errorf("the job of train is %+v", train)
	}
	if p := f.Jobs[f.Spec.Find("prepare")]; p.Resources.CPUs.Max != 1 || len(p.Resources.Capacity) != 1 {
		t.Errorf("the resources of prepare are %+v", p.Resources)
	}
	if deploy.Gate.Metric != "evaluate.accuracy" || deploy.Gate.Min != "0.90" || deploy.After[0] != "evaluate" {
		t.Errorf("deploy is %+v", deploy)
	}
	if end := f.Spec.Stages[f.Spec.Find("end")]; strings.Join(end.After, " ") != "tell@mail tell@chat" {
		t.Errorf("end comes after %v", end.After)
	}
}

// The key of a stage does not have the content of an address, so the stage runs each time unless its file says that the
// content never changes. A path in the work folder is in the key.
func TestParse_StagesWithDataElsewhereRunEachTime(t *testing.T) {
	for text, want := range map[string]bool{
		"data: [{name: d, path: 's3://bucket/d', stream: true}]":          true,
		"data: [{path: 'file:///srv/d'}]":                                 true,
		"data: [{name: d, path: 's3://bucket/d'}], always_changed: false": false,
		"data: [d/e]": false,
	} {
		f, err := Parse("pipeline.yaml", []byte("budget: $5\nstages: {a: {cmd: c, deps: [x], "+text+"}}\n"), now, read(nil))
		must.Do(t, err)
		if got := f.Spec.Stages[0].Always; got != want || want != strings.Contains(strings.Join(f.Notes, " "), "runs each time") {
			t.Errorf("with %s a stage runs each time: %v, want %v; notes %q", text, got, want, f.Notes)
		}
	}
	f, err := Parse("pipeline.yaml", []byte("budget: $5\ndefaults: {data: ['s3://b/d']}\nstages: {a: {cmd: c}}\n"), now, read(nil))
	if must.Do(t, err); !f.Spec.Stages[0].Always {
		t.Error("data of the defaults does not make a stage run each time")
	}
}

// The value of a parameter counts, not its notation.
func TestParse_IgnoresTheNotationOfParams(t *testing.T) {
	take := func(text string) string {
		f, err := Parse("dvc.yaml", []byte("stages: {a: {cmd: x, deps: [d], params: [p]}}"), now, read(map[string]string{"params.yaml": text}))
		must.Do(t, err)
		return f.Spec.Stages[0].Params["p"]
	}
	for _, texts := range [][]string{
		{"p: 0.1", "p: 1e-1", "{\"p\": 0.10} # what"}, {"p: {a: 1, b: [x]}", "p:\n  b:\n    - 'x'\n  a: 0x1"}, {"p: true", "p: True"},
		{"p: null", "p: ~", "p:"}, {`p: "1"`, "p: '1'"}, {"p: .inf"}, {"p: 99999999999999999999"},
	} {
		for _, text := range texts {
			if got := take(text); got != take(texts[0]) || !json.Valid([]byte(got)) {
				t.Errorf("%s is %s, and %s is %s", text, got, texts[0], take(texts[0]))
			}
		}
	}
	if take("p: 1") == take(`p: "1"`) {
		t.Error("a number and a text are the same")
	}
	if long := take("p: " + strings.Repeat("x", 5000)); !strings.HasPrefix(long, `"sha256:`) {
		t.Errorf("a long value is kept as %.40s…", long)
	}
}

// The values of a file that a stage makes are unknown before that stage has run: the whole file is a dependency.
func TestParse_FileOfParamsThatAStageMakesIsADep(t *testing.T) {
	f, err := Parse("dvc.yaml", []byte("stages:\n  a: {cmd: x, deps: [d], outs: [made/]}\n  b: {cmd: y, deps: [e], params: [made/p.yaml: [lr]]}"), now, read(nil))
	must.Do(t, err)
	if b := f.Spec.Stages[1]; len(b.Params) != 0 || strings.Join(b.Deps, " ") != "e made/p.yaml" || len(b.Needs) != 1 {
		t.Errorf("b is %+v", b)
	}
}

// Each error is refused with its line, its field and a fix.
func TestParse_NamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     string
	}{
		{ownFile, "", "pipeline.yaml: is empty"},
		{ownFile, "[1]", "pipeline.yaml:1: is no map"},
		{ownFile, "a: [", "is not YAML"},
		{ownFile, "name: x", "`stages` is missing"},
		{ownFile, "stages: {}", "there are none"},
		{ownFile, "stages: [a]", "`stages` is no map of stages"},
		{"    command: ./evaluate\n", "    command: ./evaluate\n    image: a b\n", "pipeline.yaml:29: `stages.evaluate.image`"},
		{"name: retrain", "name: Re train", "pipeline.yaml:1: `name`"},
		{"budget: $12.50", "budget: lots", "pipeline.yaml:5: `budget`"},
		{"secrets: [TOKEN]", "deadline: in 6h", "`deadline` is not supported yet"},
		{"parallel: 2", "parallel: 0", "`parallel` is \"0\""},
		{"parallel: 2", "paralel: 2", "did you mean `parallel`?"},
		{"parallel: 2", "schedule: daily", "not a line of cron"},
		{"  retry: {max: 2}", "  cmd: x", "`defaults.cmd` is no default"},
		{"  retry: {max: 2}", "  retry: {max: many}", "`stages.prepare.retry.max`"},
		{"    outs: [data]\n", "    outs: [data]\n    outs: [data]\n", "`stages.prepare.outs` is there twice"},
		{"    outs: [data]\n", "    outs: [data]\n    out: [data]\n", "`stages.prepare.out` is unknown"},
		{"    outs: [data]\n", "    outs: [../data]\n", "`stages.prepare.outs"},
		{"    outs: [data]\n", "    outs: [data: {cach: true}]\n", "`stages.prepare.outs.data.cach` is no option"},
		{"    outs: [data]\n", "    outs:\n      - data:\n        cache: true\n", "has cache beside a path"},
		{"    outs: [data]\n", "    outs: [model]\n", "model is made by prepare too"},
		{"    outs: [data]\n", "    outs: [data]\n    outputs: [x]\n", "write outs"},
		{"    outs: [data]\n", "    outs: [data]\n    wdir: [x]\n", "`stages.prepare.wdir` is no path"},
		{"    outs: [data]\n", "    outs: [data]\n    params: [lr]\n", "`params.yaml` is not there"},
		{"    outs: [data]\n", "    outs: [data]\n    params: [../p.yaml: [lr]]\n", "lies outside the folder"},
		{"    outs: [data]\n", "    outs: [data]\n    always_changed: maybe\n", "write true or false"},
		{"    outs: [data]\n", "    outs: [data]\n    shards: 4\n", "data is made by prepare@0 too"},
		{"    outs: [data]\n", "    outs: [data]\n    shards: 0\n", "write a whole number from 1 to"},
		{"    outs: [data]\n", "    outs: [data]\n    shards: []\n", "is a list with nothing in it"},
		{"    foreach: [mail, chat]\n", "    foreach: [mail, chat]\n    shards: 2\n", "keep one of them"},
		{"    outs: [data]\n", "    outs: [data]\n    warm_start: model.bin\n", "write warm_start: {from: model.bin, to: start.bin}"},
		{"    outs: [data]\n", "    outs: [data]\n    warm_start: {form: x}\n", "is no field of warm_start"},
		{"    outs: [data]\n", "    outs: [data]\n    warm_start: {from: data, to: [x]}\n", "is no path"},
		{"    outs: [data]\n", "    outs: [data]\n    warm_start: {from: data}\n", "`stages.prepare.warm_start` to: give a path"},
		{"cmd: ./prepare", "cmd: ./prepare ${train.lr}", "pipeline.yaml:15: `stages.prepare.cmd` names ${train.lr}, and there is no train"},
		{"cmd: ./prepare", "cmd: ./prepare ${train", "without }"},
		{"cmd: ./prepare", "cmd: ./prepare ${a b.}", "is not a name such as"},
		{"cmd: ./prepare", "cmd: []", "`stages.prepare.cmd` is no command"},
		{"cmd: ./prepare", "cmd: ", "`stages.prepare.cmd` is no command"},
		{"    cmd: ./prepare\n", "", "`stages.prepare.cmd` is missing"},
		{"command: ./evaluate", "cmd: {a: b}", "`stages.evaluate.cmd` is no command"},
		{"args: [python3, train.py]", "args: [python3]\n    wdir: src", "write cmd instead of args"},
		{"args: [python3, train.py]", "args: [python3]\n    cmd: x", "keep one of them"},
		{"deps: [raw.csv]", "deps: [s3://b/raw.csv]", "pipeline.yaml:16: `stages.prepare.deps` s3://b/raw.csv is an address"},
		{"deps: [raw.csv]", "deps: [raw.csv: {cache: true}]", "`stages.prepare.deps` has an entry that is no path"},
		{"deps: [raw.csv]", "deps: [live]", "wait for each other"},
		{"dependencies: [evaluate]", "dependencies: [evaluat]", "there is no stage evaluat"},
		{"dependencies: [evaluate]", "dependencies: [{a: b}]", "write names of stages"},
		{"min: 0.90", "min: high", "`stages.deploy.gate` \"high\" is no decimal"},
		{"min: 0.90", "min: [1]", "`stages.deploy.gate.min` is no single value"},
		{"min: 0.90", "min_gian: 0.5", "`stages.deploy.gate.min_gian` is no field of a gate: did you mean `min_gain`?"},
		{"min: 0.90", "min_gain: ", "`stages.deploy.gate.min_gain` is no single value"},
		{"min: 0.90", "min_gain: most", "min_gain: \"most\" is no decimal number"},
		{"min: 0.90", "min_gain: -0.5%", "min_gain -0.5% is negative"},
		{"min: 0.90", "min_gain: 0, confidence: 0%", "confidence 0% is out of bounds"},
		{"min: 0.90", "min_gain: 0, confidence: 100%", "confidence 100% is out of bounds"},
		{"min: 0.90", "min_gain: 0, confidence: 95%", "write examples: FILE in evaluate"},
		{"min: 0.90", "min_gain: 0, relative: perhaps", "`stages.deploy.gate.relative` is \"perhaps\""},
		{"gate: {metric: evaluate.accuracy, min: 0.90}", "gate: []", "`stages.deploy.gate` is empty"},
		{"gate: {metric: evaluate.accuracy, min: 0.90}", "gate: [{metric: evaluate.accuracy, min: 1}, {metric: accuracy, max: 2}]",
			"two gates judge accuracy of evaluate"},
		{"gate: {metric: evaluate.accuracy, min: 0.90}", "deploy: false", "`stages.deploy.deploy` is false"},
		{"gate: {metric: evaluate.accuracy, min: 0.90}", "examples: [a]", "`stages.deploy.examples` is no path"},
		{"foreach: [mail, chat]", "foreach: []", "`stages.tell.foreach` is no list"},
		{"foreach: [mail, chat]", "foreach: [mail, mail]", "two stages have that name"},
		{"foreach: [mail, chat]", "foreach: [mail, chat]\n    matrix: {a: [1]}", "keep one of the two"},
		{"foreach: [mail, chat]\n", "matrix: {a: 1}\n", "stands without foreach"},
		{"foreach: [mail, chat]\n    do:", "matrix: {a: [1, 2]}\n    x:", "`stages.tell@1.cmd` is missing"},
		{"  end: {", "  all: {matrix: {a: [" + strings.Repeat("1,", 200) + "], b: [" + strings.Repeat("1,", 200) + "]}}\n  end: {", "more than 10000 combinations"},
		{"x-small: &small {", "vars: [none.yaml]\nx-small: &small {", "`none.yaml` is not there"},
		{"x-small: &small {", "vars: {a: b}\nx-small: &small {", "`vars` is no list"},
		{"x-small: &small {", "vars: [{a: 1}, {a: 2}]\nx-small: &small {", "gives a another value"},
		{"x-small: &small {", "vars: [conf/broken.yaml]\nx-small: &small {", "is not YAML"},
		{"x-small: &small {", "vars: [conf/list.yaml]\nx-small: &small {", "is no map"},
		{"x-small: &small {", "vars: [params.toml]\nx-small: &small {", "neither YAML nor JSON"},
		{"x-small: &small {", "vars: [conf/extra.json:none]\nx-small: &small {", "takes none from conf/extra.json"},
		{"x-small: &small {", "x-loop: &loop [*loop]\nx-small: &small {", "pipeline.yaml"},
		{"x-small: &small {", "x-small: &small !job {", "has the type !job"},
	} {
		files := map[string]string{}
		for name, text := range params {
			if name != "params.yaml" {
				files[name] = text
			}
		}
		text := strings.Replace(ownFile, c.from, c.to, 1)
		_, err := Parse("pipeline.yaml", []byte(text), now, read(files))
		_, ok := errors.AsType[spec.Problems](err)
		if !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// A stage's folder must be below that of the file.
func TestParse_RefusesAFolderOutside(t *testing.T) {
	for _, dir := range []string{"/tmp", "..", "s/../.."} {
		_, err := Parse("dvc.yaml", []byte("budget: $1\nstages:\n  a:\n    cmd: x\n    wdir: "+dir+"\n"), time.Time{},
			func(string) ([]byte, error) { return nil, os.ErrNotExist })
		if err == nil || !strings.Contains(err.Error(), "wdir") || !strings.Contains(err.Error(), "dvc.yaml:5") {
			t.Errorf("wdir %s: %v", dir, err)
		}
	}
}

// A short file of aliases or templates must not expand without limit.
func TestParse_LimitsExpansion(t *testing.T) {
	var aliases strings.Builder
	aliases.WriteString("x-a: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n")
	for i := range 9 {
		fmt.Fprintf(&aliases, "x-%d: &a%d [%s*a%d]\n", i, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	long := strings.Repeat("x", 500_000)
	for name, text := range map[string]string{
		"aliases": aliases.String() + "stages: {a: {cmd: x, env: *a9}}",
		"values":  "vars: [{v: " + long + "}]\nstages: {a: {cmd: '" + strings.Repeat("${v}", 1000) + "'}}",
		"stages":  "vars: [{v: " + long + "}]\nstages: {a: {matrix: {x: [" + strings.Repeat("1,", 99) + "], y: [" + strings.Repeat("1,", 99) + "]}, cmd: 'z ${v}'}}",
	} {
		if _, err := Parse("p.yaml", []byte(text), now, read(nil)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func BenchmarkParse_Matrix(b *testing.B) {
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprint("v", i))
	}
	values := strings.Join(list, ", ")
	text := "stages: {a: {matrix: {x: [" + values + "], y: [" + values + "]}, cmd: 'z ${key}', deps: [d], params: [p], outs: ['o/${key}']}}"
	for b.Loop() {
		f, err := Parse("p.yaml", []byte(text), now, read(map[string]string{"params.yaml": "p: 1"}))
		if err != nil || len(f.Jobs) != 10_000 {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(dvcFile)
	f.Add(ownFile)
	f.Add("stages: {a: {cmd: [a, b], wdir: x, params: [p: [q]], outs: [o: {cache: true}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("dvc.yaml", []byte(text), now, read(params))
		if err != nil {
			if list, ok := errors.AsType[spec.Problems](err); !ok || len(list) == 0 || list[0].Cause == "" {
				t.Errorf("%q is refused without a problem: %v", text, err)
			}
			return
		}
		if len(file.Spec.Stages) == 0 || len(file.Jobs) != len(file.Spec.Stages) {
			t.Errorf("%q has %d stages and %d jobs", text, len(file.Spec.Stages), len(file.Jobs))
		}
	})
}

// A stage with shards is a stage for each of them, which others may name together.
func TestParse_DividesAStageIntoShards(t *testing.T) {
	f, err := Parse("pipeline.yaml", []byte(`name: x
budget: $5
vars: [{parts: [uk, us]}]
stages:
  split:
    shards: 3
    cmd: ./split ${item.index} ${item.count}
    deps: [raw]
    outs: ["part${item.index}"]
  clean:
    shards: ${parts}
    cmd: ./clean ${item.value} ${key}
    deps: [raw]
    outs: ["clean/${item.value}"]
  all: {cmd: ./all, after: [split, clean], deps: [raw]}
`), now, read(nil))
	must.Do(t, err)
	var got []string
	for i, s := range f.Spec.Stages {
		got = append(got, s.Name+": "+f.Jobs[i].Command+" > "+strings.Join(s.Outs, " "))
	}
	slices.Sort(got)
	want := []string{"all: ./all > ", "clean@0: ./clean uk 0 > clean/uk", "clean@1: ./clean us 1 > clean/us",
		"split@0: ./split 0 3 > part0", "split@1: ./split 1 3 > part1", "split@2: ./split 2 3 > part2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if after := f.Spec.Stages[f.Spec.Find("all")].After; strings.Join(after, " ") != "split@0 split@1 split@2 clean@0 clean@1" {
		t.Errorf("all comes after %q", after)
	}
}
