package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/test/must"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func parse(t *testing.T, text string) (spec.Job, []spec.Note) {
	t.Helper()
	j, notes, err := spec.Parse(spec.Read, "job.yaml", []byte(text), "folder", now)
	if err != nil {
		t.Fatalf("Parse:\n%v\n%s", err, text)
	}
	return j, notes
}

func TestParse_ReadsEveryForm(t *testing.T) {
	j, notes := parse(t, `
name: llama-ft
command: exec python3 train.py
env: {LR: 1e-4, FLAG: yes, ZIP: 0123, EMPTY: ""}
outputs: out
resources:
  cpus: 2..8
  memory: 8..64GiB
  zones: [us-a]
  capacity: [spot, any]
max_price: $2.50/h
work: {steps: 1.5M, time: 1d12h}
metric: {name: val, target: -0.5, min_delta: 0}
deadline: in 6h
budget: $4.00
retry: {max_attempts: 3, recover_on_exit_codes: [1, 17]}
checkpoint: {dir: ckpt, keep: 5}
grace: 50m
`)
	dollars, target := money.Picos(4e12), -0.5
	want := spec.Job{
		Name: "llama-ft", Command: "exec python3 train.py", Outputs: []string{"out"},
		Env: map[string]string{"LR": "1e-4", "FLAG": "yes", "ZIP": "0123", "EMPTY": ""},
		Resources: spec.Resources{CPUs: spec.Range{Min: 2, Max: 8},
			Memory: spec.Sizes{Min: 8 * size.GiB, Max: 64 * size.GiB}, Zones: []string{"us-a"}},
		MaxPrice: money.Rate(2_500_000_000_000), Work: spec.Work{Steps: 1_500_000, Time: spec.Duration(36 * time.Hour)},
		Metric:   spec.Metric{Name: "val", Target: &target},
		Deadline: spec.Deadline{In: 6 * time.Hour}, Budget: spec.Budget{Dollars: &dollars},
		Retry: spec.Retry{Max: 3, Codes: []int{1, 17}}, Checkpoint: spec.Checkpoint{Dir: "ckpt", Keep: 5},
		Grace: spec.Duration(50 * time.Minute),
	}
	if !reflect.DeepEqual(j, want) {
		t.Errorf("Parse = %+v\nwant %+v", j, want)
	}
	if len(notes) != 0 {
		t.Errorf("notes = %v on fields that are all honoured", notes)
	}
}

func TestParse_CommandMayBeList(t *testing.T) {
	j, _ := parse(t, "command: [python3, train.py, --lr, 0.1]")
	if want := []string{"python3", "train.py", "--lr", "0.1"}; j.Command != "" || !reflect.DeepEqual(j.Args, want) {
		t.Errorf("Command = %q, Args = %q, want only Args %q", j.Command, j.Args, want)
	}
	if j.Name != "folder" {
		t.Errorf("Name = %q, want the caller's", j.Name)
	}
}

func TestParse_OwnFieldsOverrideMergedOnes(t *testing.T) {
	j, _ := parse(t, "x-base: &base\n  max: 3\n  codes: [1]\ncommand: run\nretry:\n  <<: *base\n  max: 5\n")
	if j.Retry.Max != 5 || !reflect.DeepEqual(j.Retry.Codes, []int{1}) {
		t.Errorf("Retry = %+v, want max of its own and codes of the base", j.Retry)
	}
}

// Each line of a file below causes one message: the problem, its location, and the fix.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown field": {"command: run\nbuget: $4",
			[]string{"job.yaml:2: `buget` is unknown: did you mean `budget`?"}},
		"another tool's word": {"cmd: run\ngpus: 8\ncommand: run\nresources: {gpus: 8}",
			[]string{"job.yaml:1: `cmd` is unknown: did you mean `command`?",
				"job.yaml:2: `gpus` is unknown: did you mean `resources.accelerator`?",
				"job.yaml:4: `resources.gpus` is unknown: did you mean `accelerator`?"}},
		"unknown nested field": {"command: run\nresources:\n  cpu: 2",
			[]string{"job.yaml:3: `resources.cpu` is unknown: did you mean `cpus`?"}},
		"nothing near": {"command: run\nqqqqqq: 1",
			[]string{"job.yaml:2: `qqqqqq` is unknown: scrimp schema prints all fields"}},
		"twice": {"command: run\nname: a\nname: b", []string{"job.yaml:3: `name` stands twice: keep one"}},
		"twice by another name": {"command: run\nretry: {max: 1, max_attempts: 2}",
			[]string{"job.yaml:2: `retry.max` stands twice: keep one"}},
		"no command": {"name: a",
			[]string{"job.yaml: `command` is missing: write what to run, such as command: python train.py"}},
		"two commands": {"command: a\nargs: [b]",
			[]string{"job.yaml:2: `args` stands beside command: keep one of the two"}},
		"empty":         {"", []string{"job.yaml: is empty: scrimp init writes a first one"}},
		"only comments": {"# nothing\n", []string{"job.yaml: is empty: scrimp init writes a first one"}},
		"only a null":   {"---\n", []string{"job.yaml: holds no job: scrimp init writes a first one"}},
		"a list": {"- a\n",
			[]string{"job.yaml:1: is not a map of fields: write one field a line, name: value"}},
		"two documents": {"command: a\n---\ncommand: b\n",
			[]string{"job.yaml:2: holds several documents: keep one job a file, without a line of ---"}},
		"not YAML": {"command: a\n b: c\n",
			[]string{"job.yaml:2: is not YAML (mapping values are not allowed in this context): look at the " +
				"indentation, and quote a value that holds `: ` or ` #`"}},
		"binary": {"command: a\x00",
			[]string{"job.yaml: holds a zero byte, so it is no text: give the job file itself"}},
		"an input that nobody can bring": {"command: a\ndata: [{name: x, path: 'hf://a/b'}]",
			[]string{"job.yaml:2: `data[0].path` is \"hf://a/b\", which scrimp does not bring: begin it with file://, s3://, " +
				"gs:// or azblob://, or leave out name: the program then reads it itself"}},
		"a bad name of an input": {"command: a\ndata: [{name: A-b, path: 's3://b'}]",
			[]string{"job.yaml:2: `data[0].name` is \"A-b\": begin it with a lower-case letter, and use these, digits and " +
				"underscores only, 32 in all"}},
		"two inputs of a name": {"command: a\ndata: [{name: x, path: 's3://b'}, {name: x, path: 's3://c'}]",
			[]string{"job.yaml:2: `data[1].name` is that of an earlier input: give each its own"}},
		"a relative folder": {"command: a\ndata: [{name: x, path: 'file://x/y'}]",
			[]string{"job.yaml:2: `data[0].path` is no absolute path: write file:///FOLDER with three slashes"}},
		"a folder with a space": {"command: a\ndata: [{name: x, path: 'file:///a b'}]",
			[]string{"job.yaml:2: `data[0].path` is \"file:///a b\", which no URL is: write %20 for a space, %23 for # and " +
				"%25 for a percent sign of its name"}},
		"a folder with a number sign": {"command: a\ndata: [{name: x, path: 'file:///a#b'}]",
			[]string{"job.yaml:2: `data[0].path` is \"file:///a#b\", which no URL is: write %20 for a space, %23 for # and " +
				"%25 for a percent sign of its name"}},
		"a folder with a percent sign": {"command: a\ndata: [{name: x, path: 'file:///100%'}]",
			[]string{"job.yaml:2: `data[0].path` is \"file:///100%\", which no URL is: write %20 for a space, %23 for # and " +
				"%25 for a percent sign of its name"}},
		"a prefix with a number sign": {"command: a\ndata: [{name: x, path: 's3://b/c#d'}]",
			[]string{"job.yaml:2: `data[0].path` is \"s3://b/c#d\", which no URL is: write %20 for a space, %23 for # and " +
				"%25 for a percent sign of its name"}},
		"a folder with parameters": {"command: a\ndata: [{name: x, path: 'file:///a?b=c'}]",
			[]string{"job.yaml:2: `data[0].path` has parameters, which a folder does not take: leave them out, or write %3F " +
				"for a ? of its name"}},
		"no bucket": {"command: a\ndata: [{name: x, path: 's3:///y'}]",
			[]string{"job.yaml:2: `data[0].path` names no bucket: write s3://BUCKET/PREFIX"}},
		"a prefix apart": {"command: a\ndata: [{name: x, path: 's3://b?region=r&prefix=c'}]",
			[]string{"job.yaml:2: `data[0].path` has a prefix as a parameter: write it as a path, s3://b/PREFIX"}},
		"an unknown parameter": {"command: a\ndata: [{name: x, path: 's3://b/c?region=r&endpont=http://h'}]",
			[]string{"job.yaml:2: `data[0].path` has the parameter \"endpont\", which s3:// does not take: it takes " +
				"region, profile, endpoint"}},
		"a parameter of another store": {"command: a\ndata: [{name: x, path: 'gs://b/c?region=r'}]",
			[]string{"job.yaml:2: `data[0].path` has the parameter \"region\", which gs:// does not take: it takes endpoint"}},
		"a password": {"command: a\ndata: [{name: x, path: 's3://u:p@b/c'}]",
			[]string{"job.yaml:2: `data[0].path` names a user: leave the user out: the machine has the credentials"}},
		"past deadline": {"command: a\ndeadline: 2026-03-01T11:59:59Z",
			[]string{"job.yaml:2: `deadline` has passed already (2026-03-01T11:59:59Z): give a later one, or a span " +
				"such as in 6h"}},
		"deadline without zone": {"command: a\ndeadline: 2026-03-01 18:00",
			[]string{"job.yaml:2: `deadline` names no time zone: end it with Z for UTC, or with the " +
				"zone as +01:00, such as 2026-12-01T18:00Z"}},
		"a grace without end": {"command: a\ngrace: 720h",
			[]string{"job.yaml:2: `grace` is above 1h: give 1h or less, and save at intervals what takes longer"}},
		"no budget": {"command: a\nbudget: 0",
			[]string{"job.yaml:2: `budget.dollars` is not above zero: give at least what one step costs"}},
		"negative budget": {"command: a\nbudget: {dollars: -$4}",
			[]string{"job.yaml:2: `budget.dollars` is not above zero: give at least what one step costs"}},
		"ambiguous amount": {"command: a\nbudget: 4,50",
			[]string{"job.yaml:2: `budget` is wrong (\"4,50\" is not an amount such as $4.00): write it like $30.00"}},
		"no processor": {"command: a\nresources: {cpus: 0}",
			[]string{"job.yaml:2: `resources.cpus` is zero: leave it out, or give more than zero"}},
		"reversed range": {"command: a\nresources: {cpus: 8..2}",
			[]string{"job.yaml:2: `resources.cpus` is wrong (\"8..2\": the upper limit is below the lower): write " +
				"it like 2..8"}},
		"size without unit": {"command: a\nresources: {memory: 8}",
			[]string{"job.yaml:2: `resources.memory` is wrong (\"8\" is not a size with its unit, such as 8GiB, " +
				"8GiB+ or 8..64GiB): write it like 8GiB+"}},
		"accelerator": {"command: a\nresources: {accelerator: \"H100:8..1\"}",
			[]string{"job.yaml:2: `resources.accelerator` is \"H100:8..1\": write a kind and a count, such as " +
				"H100:8 or H100:1..8"}},
		"capacity": {"command: a\nresources:\n  capacity:\n    - spot\n    - ondemand",
			[]string{"job.yaml:5: `resources.capacity[1]` is \"ondemand\": it is one of spot, on-demand, reserved, any"}},
		"priority": {"command: a\npriority: high",
			[]string{"job.yaml:2: `priority` is \"high\": it is one of critical, normal, low"}},
		"span without unit": {"command: a\ngrace: 90",
			[]string{"job.yaml:2: `grace` is wrong (\"90\" is not a span with its unit, such as 90s, 1h30m or 2d): " +
				"write it like 90s"}},
		"span beyond any clock": {"command: a\ngrace: 9999999999h",
			[]string{"job.yaml:2: `grace` is wrong (\"9999999999h\" is longer than 290 years): write it like 90s"}},
		"negative span": {"command: a\nidle: -5m",
			[]string{"job.yaml:2: `idle` is wrong (\"-5m\" is not a span with its unit, such as 90s, 1h30m or 2d): " +
				"write it like 15m"}},
		"pattern": {"command: a\nprogress: {pattern: \"step (\"}",
			[]string{"job.yaml:2: `progress.pattern` is not a regular expression (missing closing ): `step (`): " +
				"scrimp uses Go's form, RE2"}},
		"pattern of no group": {"command: a\nprogress: step",
			[]string{"job.yaml:2: `progress.pattern` has no named group: name what is found, such as step (?P<step>\\d+)"}},
		"window": {"command: a\nwindow: 22:00-25:00",
			[]string{"job.yaml:2: `window` is \"22:00-25:00\": \"25:00\" is not a time of the day: write hours such as 22:00-06:00, with an offset such " +
				"as +02:00 unless they are in UTC"}},
		"window of a job that saves nothing": {"command: a\nwindow: 22:00-06:00",
			[]string{"job.yaml:2: `window` ends the job each day, and the job saves nothing: add checkpoint.dir, or work.time so " +
				"that it starts only where it can finish"}},
		"window shorter than the work": {"command: a\nwindow: 22:00-06:00\nwork: {time: 9h}",
			[]string{"job.yaml:2: `window` is open for 8h0m0s, the work takes 9h0m0s, and the job saves nothing: add checkpoint.dir"}},
		"window after the deadline": {"command: a\nwindow: 22:00-06:00\ncheckpoint: {dir: c}\ndeadline: in 2h",
			[]string{"job.yaml:2: `window` never opens before the deadline: give a later deadline, or other hours"}},
		"window of no length": {"command: a\nwindow: 22:00-22:00",
			[]string{"job.yaml:2: `window` ends when it begins: leave it out to run at any hour"}},
		"signal": {"command: a\nsignal: KILL",
			[]string{"job.yaml:2: `signal` is \"KILL\": write TERM, INT, HUP, USR1 or USR2, with @90s for how long " +
				"before the end"}},
		"name": {"command: a\nname: My Job",
			[]string{"job.yaml:2: `name` is \"My Job\": use small letters, digits and dashes, at most 40, such as my-job"}},
		"exit status": {"command: a\nretry: {codes: [300]}",
			[]string{"job.yaml:2: `retry.codes[0]` is 300: an exit status is 1 to 255"}},
		"outside": {"command: a\noutputs: [ok, ../up]",
			[]string{"job.yaml:2: `outputs[1]` is \"../up\", outside the work folder: name a folder below it"}},
		"env without value": {"command: a\nenv:\n  A:\n  B: 1",
			[]string{"job.yaml:3: `env.A` has no value: write \"\" for an empty one, or leave it out"}},
		"env name": {"command: a\nenv: {A-B: 1, SCRIMP_JOB: x}",
			[]string{"job.yaml:2: `env.A-B` is not the name of a variable: use letters, digits and _",
				"job.yaml:2: `env.SCRIMP_JOB` is set by scrimp itself: use another name"}},
		"secret in env": {"command: a\nenv: {HF_TOKEN: x}\nsecrets: [HF_TOKEN]",
			[]string{"job.yaml:3: `secrets[0]` names HF_TOKEN, which env sets too: keep it under secrets only"}},
		"best of no metric": {"command: a\ncheckpoint: {dir: c, best: true}",
			[]string{"job.yaml: `metric.name` is missing: name the metric that the program reports"}},
		"wrong kind": {"command: {a: b}\nresources: 3\nenv: [a]\nzones: a",
			[]string{"job.yaml:1: `command` is a map, not a single value: write it like exec python3 train.py " +
				"--steps $STEPS", "job.yaml:2: `resources` is not a map of fields: write one field a line, name: value",
				"job.yaml:3: `env` is not a map: write one entry a line, NAME: value",
				"job.yaml:4: `zones` is unknown: did you mean `resources.zones`?"}},
		"type of YAML": {"command: !!binary YQ==",
			[]string{"job.yaml:1: `command` has the type !!binary, which scrimp does not read: leave the type away"}},
		"the launcher says otherwise": {"command: accelerate launch --use_fsdp --fsdp_sharding_strategy 2 t.py --tp 4\nmodel: {sharding: fsdp, tensor_parallel: 2}",
			[]string{"job.yaml:2: `model.sharding` is fsdp, and the program is told zero2 (--fsdp_sharding_strategy 2): say the same in both, or leave it out here",
				"job.yaml:2: `model.tensor_parallel` is 2, and the program is told 4 (--tp 4): say the same in both, or leave it out here"}},
		"a model as none is": {"command: a\nmodel: {parameters: 1e30, hidden: 4000000000, sequence: 1T, tensor_parallel: 20000}",
			[]string{"job.yaml:2: `model.parameters` is above 100000000000000: give at most that",
				"job.yaml:2: `model.hidden` is above 1000000: give at most that",
				"job.yaml:2: `model.sequence` is above 100000000: give at most that",
				"job.yaml:2: `model.tensor_parallel` is above 10000: give at most that"}},
		"cut that does not divide": {"command: a\nnodes: 2\nresources: {accelerator: 'H100:4'}\nmodel: {tensor_parallel: 3, pipeline_parallel: 2}",
			[]string{"job.yaml:4: `model.tensor_parallel` times pipeline_parallel is 6, which does not divide the 8 accelerators: ask for a multiple of it"}},
		"no sharding": {"command: a\nmodel: {sharding: zero4}",
			[]string{"job.yaml:2: `model.sharding` is \"zero4\": it is one of none, zero1, zero2, zero3, fsdp"}},
		"alternatives": {"command: a\nany_of:\n  - name: x\n  - name: x\n    args: [--bf16]\nladder:\n  - use: y",
			[]string{"job.yaml:3: `any_of[0]` changes nothing: give it an engine, an image, other resources, env or args",
				"job.yaml:4: `any_of[1].name` is \"x\", as another's is: give each another",
				"job.yaml:7: `ladder[0].use` is \"y\", which any_of does not name: name an alternative there"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := spec.Parse(spec.Read, "dir/job.yaml", []byte(c.text), "folder", now)
			var problems spec.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("Parse = %v, want Problems", err)
			}
			if got := strings.Split(err.Error(), "\n"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
		})
	}
}

func TestParse_BoundsAliases(t *testing.T) {
	list := "x-a: &a [" + strings.Repeat("a, ", 2000) + "a]\n"
	v := "x-v: &v {resources: {zones: *a}}\n"
	_, _, err := spec.Parse(spec.Read, "job.yaml", []byte(list+v+"command: a\nany_of: ["+strings.Repeat("*v, ", 2000)+"*v]\n"),
		"f", now)
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Parse = %.200v, want it to refuse what aliases make large", err)
	}
	if _, _, err := spec.Parse(spec.Read, "job.yaml", []byte("command: a\nretry: &r {<<: *r}\n"), "f", now); err == nil {
		t.Error("a map that merges itself is read without a word")
	}
}

// A run refuses fields that it does not honour, with line, field, fix and the missing feature. Other uses get a note.
// Fields that only plans use do not prevent a run.
func TestParse_RunRefusesUnsupportedFields(t *testing.T) {
	const disk = "is not honoured until scrimp has disks that are rented by size"
	const compat = "is not honoured until scrimp has the variables of SkyPilot, dstack and SageMaker"
	for text, c := range map[string]struct{ run, rank, read string }{
		"window: 22:00-06:00\nwork: {time: 1h}": {"", "job.yaml:2: `window` is not counted by plan --catalog", ""},
		"resources: {disk: 100GiB+}": {"job.yaml:2: `resources.disk` " + disk, "job.yaml:2: `resources.disk` " + disk,
			"resources.disk"},
		"any_of:\n  - {args: [a]}\n  - {resources: {disk: 1TB}}": {"job.yaml:4: `any_of[1].resources.disk` " + disk,
			"job.yaml:4: `any_of[1].resources.disk` " + disk, "any_of[1].resources.disk"},
		"compat: skypilot":                 {"job.yaml:2: `compat` " + compat, "", "compat"},
		"compat: sagemaker":                {"job.yaml:2: `compat` " + compat, "", "compat"},
		"compat: slurm":                    {},
		"kind: inference":                  {},
		"nodes: 4":                         {}, // plans count it; submission refuses it
		"data: [s3://b/c]":                 {},
		"work: {epochs: 3, samples: 1.2M}": {},
		"model: {parameters: 7B}\nwork: {steps: 9, tokens: 2B}": {},
	} {
		for use, want := range map[spec.Use]string{spec.Run: c.run, spec.Rank: c.rank, spec.Read: ""} {
			_, _, err := spec.Parse(use, "dir/job.yaml", []byte("command: a\n"+text+"\n"), "f", now)
			said, _, _ := strings.Cut(fmt.Sprint(err), ": leave it out")
			if want == "" && err != nil || want != "" && (said != want || said == fmt.Sprint(err)) {
				t.Errorf("%s, use %d: %v, want %q and its fix", text, use, err, want)
			}
		}
		_, notes, _ := spec.Parse(spec.Read, "job.yaml", []byte("command: a\n"+text+"\n"), "f", now)
		if said := fieldsOf(notes); said != c.read {
			t.Errorf("%s: who judges it is told of %q, want %q", text, said, c.read)
		}
	}
}

func fieldsOf(notes []spec.Note) string {
	var fields []string
	for _, n := range notes {
		fields = append(fields, n.Field)
	}
	return strings.Join(fields, " ")
}

// The same rules apply to a job that came as JSON.
func TestRefused_JobWithoutFile(t *testing.T) {
	j, err := spec.Decode([]byte(`{"name":"a","command":"b","resources":{"disk":"1GiB+"},"compat":"slurm"}`))
	must.Do(t, err)
	var fields []string
	for _, p := range j.Refused(spec.Run) {
		if fields = append(fields, p.Field); p.Fix == "" || p.Cause == "" {
			t.Errorf("%+v says no cause or no fix", p)
		}
	}
	if strings.Join(fields, " ") != "resources.disk" || len(j.Refused(spec.Read)) > 0 {
		t.Errorf("refused: %v, and to read: %v", fields, j.Refused(spec.Read))
	}
	if list := spec.Default().Refused(spec.Run); len(list) > 0 {
		t.Errorf("what holds where a file says nothing is refused: %v", list)
	}
}

func TestNotes_OfARun(t *testing.T) {
	for text, want := range map[string]string{
		"data: [c]\nwork: {tokens: 2B}\nenv: {WANDB_API_KEY: k}": "data work env.WANDB_API_KEY",
		"work: {tokens: 2B, steps: 5}":                           "",
		"data: [{url: 's3://b/c', size: 1GB}, {url: 's3://b/c', region: r}, {url: 's3://b/c', size: 1GB, region: r}]": "data data[0].region data[1].size",
		"nodes: 1\nkind: experiment\npromise: 99%": "",
	} {
		_, notes, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+text+"\n"), "f", now)
		if got := fieldsOf(notes); err != nil || got != want {
			t.Errorf("%s: notes on %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestData_IsReadAsItIsWritten(t *testing.T) {
	for _, b := range []size.Bytes{0, 1, 1500, 120 * size.GiB, 200 * size.GB, 3 * size.TB, 1<<62 - 1} {
		want := spec.Data{Path: "s3://b/c", Size: b, Region: "us-east-1"}
		text, err := json.Marshal(spec.Job{Command: "a", Data: []spec.Data{want}})
		must.Do(t, err)
		j, err := spec.Decode(text)
		if err != nil || len(j.Data) != 1 || j.Data[0] != want {
			t.Errorf("%s is read as %+v, %v", text, j.Data, err)
		}
	}
	old, err := spec.Decode([]byte(`{"command":"a","data":[{"path":"s3://b/c","size":200000000000}]}`))
	if err != nil || len(old.Data) != 1 || old.Data[0].Size != 200*size.GB {
		t.Errorf("a job of an earlier release is read as %+v, %v", old.Data, err)
	}
	if got := (200 * size.GB).Exact() + " " + (120 * size.GiB).Exact() + " " + size.Bytes(1025).Exact(); got != "200GB 120GiB 1025B" {
		t.Errorf("sizes are written as %s", got)
	}
}

func TestValidate_JobWithoutFile(t *testing.T) {
	for _, text := range []string{
		`{"name":"a","command":"b","nodes":-1}`,
		`{"name":"a","command":"b","work":{"time":"-1h"}}`,
		`{"name":"a","command":"b","resources":{"cpus":"-4+"}}`,
		`{"name":"a","command":"b","priority":"high"}`,
		`{"command":"b"}`,
	} {
		j, err := spec.Decode([]byte(text))
		if err == nil {
			err = j.Validate(now)
		}
		if err == nil {
			t.Errorf("%s is taken as a job", text)
		}
	}
	if err := spec.FromCommand([]string{"python", "My train.py"}).Validate(now); err != nil {
		t.Errorf("the job of a command: %v", err)
	}
}

// A command without a job file is named after its script, and all its files are kept.
func TestFromCommand_NamesJobAfterScript(t *testing.T) {
	for command, want := range map[string]string{
		"python train.py --epochs 3": "train", "torchrun --nproc-per-node 2 src/Fine_tune.py": "fine-tune", "./run.sh 3": "run",
		"python3.11 -m pkg.trainer --x": "trainer", "Rscript fit.R": "fit", "sh -c true": "sh", "echo step": "echo",
		"python --config=conf.py": "python", "/opt/bin/train": "train", "tool -m x": "tool", "python -m": "python",
	} {
		j := spec.FromCommand(strings.Fields(command))
		if j.Name != want || !slices.Equal(j.Outputs, []string{spec.Written}) || j.Validate(now) != nil {
			t.Errorf("%s is %q with the outputs %q, want %q", command, j.Name, j.Outputs, want)
		}
	}
}

func TestWithEnv_ReturnsChangedCopy(t *testing.T) {
	j := spec.Job{Env: map[string]string{"A": "1", "B": "2"}, Secrets: []string{"S"}}
	k, err := j.WithEnv([]string{"B=x=y", "C="})
	if want := map[string]string{"A": "1", "B": "x=y", "C": ""}; err != nil || !reflect.DeepEqual(k.Env, want) {
		t.Errorf("WithEnv = %v, %v, want %v", k.Env, err, want)
	}
	if j.Env["B"] != "2" {
		t.Error("WithEnv changed the job it was called on")
	}
	for _, bad := range []string{"A", "=1", "A-B=1", "SCRIMP_JOB=1", "SCRIMP_ARRAY_JOB=1", "S=1"} {
		if _, err := j.WithEnv([]string{bad}); err == nil {
			t.Errorf("WithEnv(%q) is no error", bad)
		}
	}
}

func TestHash_FollowsContent(t *testing.T) {
	base, _ := parse(t, "name: a\ncommand: b\nenv: {X: \"1\"}\nbudget: $4")
	same, _ := parse(t, "budget: {dollars: 4.00}\nenv:\n  X: 1\ncommand: 'b'\nname: a")
	if base.Hash() != same.Hash() {
		t.Error("one job written in two ways has two hashes")
	}
	if want := "87ee3f1b"; !strings.HasPrefix(base.Hash(), want) {
		t.Errorf("Hash = %s, was %s…: logs name jobs by it", base.Hash(), want)
	}
	seen := map[string]string{base.Hash(): "base"}
	for _, more := range []string{"nodes: 2", "outputs: [x]", "outputs: ['']", "metric: {name: m}",
		"metric: {name: m, target: 0}", "deadline: in 1h", "tags: {a: b}", "tags: {a: ''}"} {
		j, _, err := spec.Parse(spec.Read, "job.yaml", []byte("name: a\ncommand: b\nenv: {X: 1}\nbudget: $4\n"+more), "f", now)
		if err != nil && more != "outputs: ['']" {
			t.Fatal(err)
		}
		if old, ok := seen[j.Hash()]; ok {
			t.Errorf("%q has the hash of %q", more, old)
		}
		seen[j.Hash()] = more
	}
}

func TestDefault_MatchesTags(t *testing.T) {
	d := spec.Default()
	if d.Nodes != (spec.Range{Min: 1, Max: 1}) || d.Grace != spec.Duration(20*time.Second) || d.Signal != "TERM" || d.Checkpoint.Keep != 3 ||
		d.Promise != 0.99 || d.Checkpoint.Interval != "auto" || d.Retry.Max != 10 {
		t.Errorf("Default = %+v", d)
	}
	d.Name, d.Command = "a", "b"
	if err := d.Validate(now); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

// same verifies that a job survives the log, and that its log form is a job file.
func same(t *testing.T, j spec.Job) {
	t.Helper()
	b, err := j.Encode()
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	k, err := spec.Decode(b)
	if err != nil || !reflect.DeepEqual(j, k) {
		t.Fatalf("Decode(Encode) = %+v, %v\nwant %+v\n%s", k, err, j, b)
	}
	if j.Hash() != k.Hash() {
		t.Fatalf("the hash changed on the way through the log: %s", b)
	}
	if again, err := k.Encode(); err != nil || string(again) != string(b) {
		t.Fatalf("Encode twice = %s\nthen %s", b, again)
	}
	if l, _, err := spec.ParseJSON(spec.Read, b, "other", now); err != nil || !reflect.DeepEqual(j, l) {
		t.Fatalf("ParseJSON(Encode) = %+v, %v\nwant %+v\n%s", l, err, j, b)
	}
	if strings.ContainsFunc(string(b), func(r rune) bool {
		return r >= 0x7f && r < 0xa0 || r == 0xfeff || r >= 0xfffe && r <= 0xffff
	}) {
		return // allowed unescaped in JSON, but not in YAML
	}
	l, _, err := spec.Parse(spec.Read, "log.json", b, "other", now)
	if err != nil || !reflect.DeepEqual(j, l) {
		t.Fatalf("Parse(Encode) = %+v, %v\nwant %+v\n%s", l, err, j, b)
	}
}

// JSON supports YAML's short forms; quoted text stays text, whatever YAML would make of it.
func TestParseJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"command":"a","name":"b","budget":"$5"}`:                           "name: b\ncommand: a\nbudget: $5\n",
		`{"args":["yes",1,true,"a: b"],"env":{"A":"~","B":"on"}}`:            "args: ['yes', '1', 'true', 'a: b']\nname: 'yes'\nenv: {A: '~', B: 'on'}\n",
		`{"command":"a","env":{"A":"\ud83d\ude00\/"}}`:                       "command: a\nname: a\nenv: {A: '😀/'}\n",
		"{\n\t\"command\":\t\"a\", \"progress\": \"step (?P<step>\\\\d+)\"}": "command: a\nname: a\nprogress: 'step (?P<step>\\d+)'\n",
		`{"command":["a","b"],"data":"c","nodes":"2..4"}`:                    "args: [a, b]\nname: a\ndata: c\nnodes: 2..4\n",
		`{"command":"python3 -m pkg.fit","work":{"steps":6000}}`:             "command: python3 -m pkg.fit\nname: fit\nwork: {steps: 6000}\n",
		`{"command":"a","work":{"steps":"1.2M"},"deadline":"in 6h"}`:         "command: a\nname: a\nwork: {steps: 1.2M}\ndeadline: in 6h\n",
	} {
		got, _, err := spec.ParseJSON(spec.Run, []byte(text), "", now)
		same, _, wrong := spec.Parse(spec.Run, "job.yaml", []byte(want), "", now)
		if err != nil || wrong != nil || !reflect.DeepEqual(got, same) {
			t.Errorf("%s: %+v, %v\nwant %+v, %v", text, got, err, same, wrong)
		}
	}
	for text, want := range map[string]string{
		`{"command":"a","x":`: "is not JSON (",
		`["a"]`:               "is not a map of fields: write one field a line, name: value",
		`{"command":"a","work":{"<<":{"steps":1}}}`: "`work.<<` is unknown",
		`{"command":"a","command":"b"}`:             "`command` stands twice: keep one",
	} {
		if _, _, err := spec.ParseJSON(spec.Run, []byte(text), "", now); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("command: run\nbudget: $4\ndeadline: in 6h\nresources: {cpus: 2+, memory: 8..64GiB, capacity: any}\n")
	f.Add("command: [a, b]\nenv: {A: 1}\nwork: {steps: 1.5M, time: 2d}\nmetric: {name: l, target: -0, min_delta: 1e-3}\n")
	f.Add("x-a: &a {name: b}\ncommand: run\nany_of: [{<<: *a, args: x, throughput: 1.6x}]\nladder: [{use: b, " +
		"for: 1.5d}]\n")
	f.Add("command: \"a\\u2028\\x7f\\n\"\ntags: {\"\": \"\\ud83d\"}\ndeadline: 2027-01-01T00:00:00.000000001+02:00\n")
	f.Add("data: [a, {url: s3://b, size: 1.5TiB}]\nretry: {codes: 0x1, max: 9223372036854775807}\ncommand: |\n  a\n  b\n")
	f.Fuzz(func(t *testing.T, text string) {
		j, _, err := spec.Parse(spec.Read, "job.yaml", []byte(text), "folder", now)
		if err != nil {
			var problems spec.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("Parse = %v, want Problems", err)
			}
			for _, p := range problems {
				if p.Cause == "" {
					t.Fatalf("a problem without a cause: %+v", p)
				}
			}
			return
		}
		if err := j.Validate(now); err != nil {
			t.Fatalf("Parse takes what Validate refuses: %v", err)
		}
		same(t, j)
	})
}

func TestProblems_AreJSON(t *testing.T) {
	_, _, err := spec.Parse(spec.Read, "job.yaml", []byte("command: a\n  \nresources:\n  cpus: 0\n"), "f", now)
	var p spec.Problems
	errors.As(err, &p)
	b, _ := json.Marshal(p)
	if want := `[{"file":"job.yaml","line":4,"column":9,"field":"resources.cpus","cause":"is zero","fix":"leave it out, or give more than zero"}]`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

// A checkpoint of all ranks needs several machines and a folder.
func TestParse_CheckpointOfAllRanksNeedsSeveralMachines(t *testing.T) {
	for text, field := range map[string]string{
		"command: x\nnodes: 4\ncheckpoint: {dir: c, ranks: all}":    "",
		"command: x\nnodes: 4\ncheckpoint: {dir: c, ranks: first}":  "",
		"command: x\ncheckpoint: {dir: c, ranks: first}":            "",
		"command: x\ncheckpoint: {dir: c, ranks: all}":              "checkpoint.ranks",
		"command: x\nnodes: 1\ncheckpoint: {dir: c, ranks: all}":    "checkpoint.ranks",
		"command: x\nnodes: 2\ncheckpoint: {ranks: all}":            "checkpoint.ranks",
		"command: x\nnodes: 2..4\ncheckpoint: {dir: c, ranks: all}": "checkpoint.ranks",
		"command: x\nnodes: 2+":                                     "nodes",
		"command: x\nnodes: 4..2":                                   "nodes",
		"command: x\nnodes: 0..2":                                   "nodes",
		"command: x\nnodes: 10000":                                  "nodes",
		"command: x\nnodes: 2\ncheckpoint: {dir: c, ranks: some}":   "checkpoint.ranks",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte(text), "folder", now)
		var wrong spec.Problems
		switch {
		case field == "" && err != nil:
			t.Errorf("%s\nis refused: %v", text, err)
		case field == "" && j.Checkpoint.AllRanks() != strings.Contains(text, "all"):
			t.Errorf("%s\nis of all ranks: %v", text, j.Checkpoint.AllRanks())
		case field != "" && (!errors.As(err, &wrong) || len(wrong) != 1 || wrong[0].Field != field || wrong[0].Fix == ""):
			t.Errorf("%s\nis refused with %v", text, err)
		}
	}
}

// Engines and their zones are one-word alternatives; with further fields an alternative stands for itself.
func TestParse_EnginesAsAlternatives(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string][]string{
		"any_of: [lab, slurm/gpu, local]":                             {"lab", "slurm/gpu", "local"},
		"any_of: lab":                                                 {"lab"},
		"any_of: [{engine: lab}]":                                     {"lab"},
		"any_of: [lab, {engine: local, args: [--bf16]}]":              {"lab"},
		"any_of: [{name: cluster, engine: slurm/gpu}]":                nil,
		"any_of: [{name: small, resources: {accelerator: 'L4:4'}}]\n": nil,
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+text), "", at)
		if err != nil || !slices.Equal(j.Places(), want) {
			t.Errorf("%s: held to %v and not %v: %v", text, j.Places(), want, err)
			continue
		}
		b, err := j.Encode()
		must.Do(t, err)
		if again, _, err := spec.ParseJSON(spec.Run, b, "", at); err != nil || again.Hash() != j.Hash() {
			t.Errorf("%s: as JSON %s it is another job: %v", text, b, err)
		}
	}
	for text, fix := range map[string]string{
		"any_of: [Lab]":                 "`any_of[0].engine` is \"Lab\"",
		"any_of: [slurm/]":              "`any_of[0].engine` is \"slurm/\"",
		"any_of: [lab, lab]":            "`any_of[1].engine` is \"lab\", as another's is: keep one",
		"any_of: [lab, {name: idle}]\n": "`any_of[1]` changes nothing: give it an engine",
	} {
		if _, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+text), "", at); err == nil ||
			!strings.Contains(err.Error(), fix) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
