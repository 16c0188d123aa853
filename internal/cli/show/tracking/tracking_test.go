package tracking

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	api "scrimp/client"
	"scrimp/internal/test/must"
	"scrimp/money"
)

var opened = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) *time.Time { return new(opened.Add(time.Duration(minutes) * time.Minute)) }

func dollars(t testing.TB, text string) money.Amount {
	t.Helper()
	a, err := money.Parse(text)
	must.Do(t, err)
	return a
}

// example returns a search with a trial of each outcome.
func example(t testing.TB) *Search {
	curve := func(values ...float64) (list []api.TrialPoint) {
		for i, v := range values {
			list = append(list, api.TrialPoint{Unit: float64(i + 1), Value: v, At: at(10 * (i + 1)), CostUSD: 0.5 * float64(i+1)})
		}
		return list
	}
	params := func(lr, layers, opt string) map[string]string {
		return map[string]string{"lr": lr, "layers": layers, "opt": opt, "noise": lr}
	}
	g := api.Group{ID: "quadratic", User: "ann", Currency: money.USD, Submitted: opened, Finished: at(90), Spent: dollars(t, "3.5"),
		Study: &api.StudyState{Metric: "val/auc", Maximize: true, Searcher: "asha-promo",
			Fidelity: &api.StudyFidelity{Name: "epoch", Min: 1, Max: 3}, Params: []api.StudyParam{
				{Name: "lr", Min: 1e-5, Max: 0.1, Log: true}, {Name: "layers", Min: 0.5, Max: 8.5, Int: true},
				{Name: "opt", Values: []string{`"adam"`, `3`, `[1,2]`}}, {Name: "noise", Mu: 1, Sigma: 2}}}}
	return &Search{Group: g, Trials: []api.Trial{
		{ID: "quadratic.0", State: "succeeded", Params: params("0.001", "4", "adam"), Unit: 3, Values: 3, Last: new(0.8),
			Best: new(0.9), BestAt: 2, Cost: dollars(t, "2"), Curve: curve(0.5, 0.9, 0.8)},
		{ID: "quadratic.1", State: "stopped", Why: "pruned", Params: params("0.01", "8", "3"), Unit: 1, Values: 1, Last: new(0.4),
			Best: new(0.4), BestAt: 1, Cost: dollars(t, "1"), Curve: curve(0.4)},
		{ID: "quadratic.2", State: "failed", Params: params("0.02", "1", "[1,2]"), Cost: dollars(t, "0.5")},
		{ID: "quadratic.3", State: "running", Params: params("0.03", "2", "adam"), Cost: dollars(t, "0")},
	}, Lines: []api.GroupMember{
		{ID: "quadratic.0", Started: at(1), Finished: at(60), Cost: dollars(t, "2"), OnDemand: new(dollars(t, "5.25")),
			Lost: dollars(t, "0.25"), Interruptions: 2},
		{ID: "quadratic.1", Started: at(2), Finished: at(30), Cost: dollars(t, "1")},
		{ID: "quadratic.2", Started: at(3), Finished: at(9), Cost: dollars(t, "0.5"), Lost: dollars(t, "0.5")},
		{ID: "quadratic.3"},
	}}
}

// frozen is a trial as a plain reader of Optuna's journal sees it.
type frozen struct {
	State         int                `json:"state"`
	Params        map[string]float64 `json:"params"`
	Distributions map[string]string  `json:"distributions"`
	Values        map[string]float64 `json:"intermediate_values"`
	Value         *float64           `json:"value"`
	Start         *string            `json:"datetime_start"`
	Complete      *string            `json:"datetime_complete"`
	Attrs         map[string]any     `json:"user_attrs"`
}

// The journal has the operations that Optuna's JournalStorage replays: their codes, the fields that it requires, and
// each parameter as the number that its distribution turns into the value.
func TestOptuna_WritesAJournalOfEachTrial(t *testing.T) {
	text, err := Optuna(example(t))
	must.Do(t, err)
	var trials []frozen
	var directions []int
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		var op struct {
			Code       *int           `json:"op_code"`
			Worker     string         `json:"worker_id"`
			Name       string         `json:"study_name"`
			Study      *int           `json:"study_id"`
			Directions []int          `json:"directions"`
			Attr       map[string]any `json:"user_attr"`
			frozen
		}
		if err := json.Unmarshal([]byte(line), &op); err != nil || op.Code == nil || op.Worker == "" {
			t.Fatalf("line %d: %v in %s", n, err, line)
		}
		switch {
		case *op.Code == 0 && n == 0:
			if directions = op.Directions; op.Name != "quadratic" {
				t.Errorf("the study is %q", op.Name)
			}
		case op.Study == nil || *op.Study != 0:
			t.Errorf("line %d is of no study: %s", n, line)
		case *op.Code == 2 && len(op.Attr) == 1:
		case *op.Code == 4:
			trials = append(trials, op.frozen)
		default:
			t.Errorf("line %d has the operation %d: %s", n, *op.Code, line)
		}
	}
	if !slices.Equal(directions, []int{2}) || len(trials) != 4 {
		t.Fatalf("directions %v (2 is maximize), %d trials", directions, len(trials))
	}
	for n, want := range []int{1, 2, 3, 0} { // complete, pruned, fail, running
		if trials[n].State != want || (trials[n].Complete != nil) != (want != 0) {
			t.Errorf("trial %d has state %d, completed %v", n, trials[n].State, trials[n].Complete)
		}
	}
	one := trials[0]
	if *one.Value != 0.9 || one.Values["2"] != 0.9 || len(one.Values) != 3 || *one.Start != "2026-03-01T12:01:00.000000" ||
		one.Attrs["cost_usd"] != 2.0 || one.Attrs["saved_usd"] != 3.25 || one.Attrs["lost_usd"] != 0.25 || one.Attrs["interruptions"] != 2.0 {
		t.Errorf("trial 0 is %+v", one)
	}
	if _, known := trials[1].Attrs["saved_usd"]; known {
		t.Error("nobody knows what trial 1 would have cost on-demand")
	}
	if *trials[1].Value != 0.4 || trials[2].Value != nil || trials[1].Params["opt"] != 1 || trials[2].Params["opt"] != 2 {
		t.Errorf("values %v and %v, opt %v", trials[1].Value, trials[2].Value, trials[2].Params)
	}
	for name, want := range map[string]string{
		"lr":     `{"attributes":{"high":0.1,"log":true,"low":0.00001,"step":null},"name":"FloatDistribution"}`,
		"layers": `{"attributes":{"high":8,"log":false,"low":1,"step":1},"name":"IntDistribution"}`,
		"opt":    `{"attributes":{"choices":["adam",3,"[1,2]"]},"name":"CategoricalDistribution"}`,
		"noise":  `{"attributes":{"high":0.03,"log":false,"low":0.001,"step":null},"name":"FloatDistribution"}`,
	} {
		if one.Distributions[name] != want {
			t.Errorf("%s is distributed as %s, want %s", name, one.Distributions[name], want)
		}
	}
}

// A trial of a proxy is exported with the values that it ran with, in the distribution that all trials share.
func TestExports_ShowWhatATrialOfTheProxyRanWith(t *testing.T) {
	s := example(t)
	s.Group.Study.Params = append(s.Group.Study.Params, api.StudyParam{Name: "part", Values: []string{"1"}},
		api.StudyParam{Name: "side", Min: 224, Max: 224, Int: true})
	s.Group.Study.Proxy = &api.StudyProxyState{StudyProxy: api.StudyProxy{Set: map[string]string{"part": "0.25", "side": "96",
		"cache": `"off"`}}}
	for i := range s.Trials {
		s.Trials[i].Proxy = i != 1
		s.Trials[i].Params["part"], s.Trials[i].Params["side"] = "1", "224"
	}
	rows, err := csv.NewReader(strings.NewReader(TrialsCSV(s))).ReadAll()
	must.Do(t, err)
	column := func(name string) int { return slices.Index(rows[0], name) }
	for i, want := range [][]string{{"true", "0.25", "96"}, {"false", "1", "224"}, {"true", "0.25", "96"}} {
		if row := rows[i+1]; row[column("proxy")] != want[0] || row[column("part")] != want[1] || row[column("side")] != want[2] {
			t.Errorf("trial %d is %v, want %v", i, row, want)
		}
	}
	files, err := MLflow(s, "/x")
	must.Do(t, err)
	_, runs := store(t, files)
	if on, full := runs["quadratic.0"], runs["quadratic.1"]; on["params/part"] != "0.25" || on["params/cache"] != "off" ||
		full["params/part"] != "1" || full["params/cache"] != "" {
		t.Errorf("MLflow has %v and %v", on, full)
	}
	for i, want := range []float64{1, 0, 1} { // the index of the choice
		line, err := s.optunaTrial(&s.Trials[i])
		must.Do(t, err)
		params, shared := line["params"].(object), line["distributions"].(object)
		if params["part"] != want || params["side"] != map[bool]float64{true: 96, false: 224}[i != 1] ||
			shared["part"] != `{"attributes":{"choices":[1,0.25]},"name":"CategoricalDistribution"}` ||
			shared["side"] != `{"attributes":{"high":224,"log":false,"low":96,"step":null},"name":"FloatDistribution"}` {
			t.Errorf("trial %d has %v by %v", i, params, shared)
		}
		if _, is := line["user_attrs"].(object)["proxy_cache"]; is != (i != 1) {
			t.Errorf("trial %d has the attributes %v", i, line["user_attrs"])
		}
	}
}

// store reads an MLflow file store plainly: a run is a folder with meta.yaml, params, metrics and tags.
func store(t *testing.T, files []File) (experiments []map[string]any, runs map[string]map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.Path))
		if strings.HasSuffix(f.Path, "/") {
			_ = os.MkdirAll(at, 0o755)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Do(t, os.WriteFile(at, []byte(f.Text), 0o600))
	}
	read := func(parts ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{dir}, parts...)...))
		must.Do(t, err)
		return string(text)
	}
	runs = map[string]map[string]string{}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		meta := map[string]any{}
		if err := yaml.Unmarshal([]byte(read(e.Name(), "meta.yaml")), &meta); err != nil || meta["experiment_id"] != e.Name() {
			t.Fatalf("experiment %s: %v %v", e.Name(), err, meta)
		}
		experiments = append(experiments, meta)
		inside, _ := os.ReadDir(filepath.Join(dir, e.Name()))
		for _, r := range inside {
			if !r.IsDir() {
				continue
			}
			run, meta := map[string]string{}, map[string]any{}
			if err := yaml.Unmarshal([]byte(read(e.Name(), r.Name(), "meta.yaml")), &meta); err != nil ||
				meta["run_id"] != r.Name() || meta["experiment_id"] != e.Name() || meta["lifecycle_stage"] != "active" {
				t.Fatalf("run %s: %v %v", r.Name(), err, meta)
			}
			for k, v := range meta {
				if n, is := v.(int); is {
					run["meta/"+k] = strconv.Itoa(n)
				}
			}
			for _, kind := range []string{"params", "metrics", "tags"} {
				all, _ := os.ReadDir(filepath.Join(dir, e.Name(), r.Name(), kind))
				for _, k := range all {
					run[kind+"/"+k.Name()] = read(e.Name(), r.Name(), kind, k.Name())
				}
			}
			runs[run["tags/mlflow.runName"]] = run
		}
	}
	return experiments, runs
}

// Names that MLflow's file store accepts.
var (
	runID        = regexp.MustCompile(`^[a-zA-Z0-9][\w\-]{0,255}$`)
	experimentID = regexp.MustCompile(`^[a-zA-Z0-9][\w\-]{0,63}$`)
	storeName    = regexp.MustCompile(`^[/\w.\- :]*$`)
)

// malformed checks files by the rules with which MLflow's file store reads them, and returns the first that it would
// refuse. It reads metadata as YAML that has every field of an experiment or a run; a line of a metric as time in
// milliseconds, value and step with one space between them; parameters and tags as they are.
func malformed(files []File) string {
	for _, f := range files {
		parts := strings.Split(f.Path, "/")
		if !experimentID.MatchString(parts[0]) || len(parts) > 2 && !runID.MatchString(parts[1]) {
			return f.Path + ": an ID that MLflow refuses"
		}
		switch {
		case parts[len(parts)-1] == "meta.yaml":
			need := []string{"artifact_location", "creation_time", "experiment_id", "last_update_time", "lifecycle_stage", "name"}
			if len(parts) == 3 {
				need = []string{"artifact_uri", "end_time", "experiment_id", "lifecycle_stage", "run_id", "run_name", "run_uuid",
					"start_time", "status", "user_id"}
			}
			meta := map[string]any{}
			if err := yaml.Unmarshal([]byte(f.Text), &meta); err != nil {
				return f.Path + ": " + err.Error()
			}
			for _, name := range need {
				if _, has := meta[name]; !has {
					return f.Path + ": lacks " + name
				}
			}
		case len(parts) != 4 || parts[3] == "": // the folder of a run's artifacts
		case len(parts[3]) > 250 || !storeName.MatchString(parts[3]):
			return f.Path + ": a name that MLflow refuses"
		case parts[2] == "params" && len(f.Text) > 6000:
			return f.Path + ": a value that is too long"
		case parts[2] == "metrics":
			if f.Text == "" {
				return f.Path + ": a metric without a value"
			}
			for line := range strings.Lines(f.Text) {
				part := strings.Split(strings.TrimSpace(line), " ")
				if len(part) != 3 {
					return f.Path + ": " + line
				}
				_, noTime := strconv.ParseInt(part[0], 10, 64)
				_, noValue := strconv.ParseFloat(part[1], 64)
				_, noStep := strconv.ParseInt(part[2], 10, 64)
				if noTime != nil || noValue != nil || noStep != nil {
					return f.Path + ": " + line
				}
			}
		}
	}
	return ""
}

// The export keeps the rules by which MLflow reads a file store, and the check finds each planted fault.
func TestMLflow_KeepsTheRulesOfItsFileStore(t *testing.T) {
	s := example(t)
	s.Trials[0].Curve[0].Value = math.Inf(-1)
	s.Trials[0].Curve[1].Value = math.NaN()
	files, err := MLflow(s, "/data/ml runs")
	must.Do(t, err)
	if wrong := malformed(files); wrong != "" {
		t.Error(wrong)
	}
	twice := map[string]bool{}
	for i, f := range files {
		if twice[f.Path] {
			t.Errorf("%s is written twice", f.Path)
		}
		twice[f.Path] = true
		for name, change := range map[string]func(*File){
			"/metrics/": func(f *File) { f.Text = strings.Replace(f.Text, " ", "  ", 1) },
			"meta.yaml": func(f *File) { f.Text = strings.Replace(f.Text, "lifecycle_stage", "stage", 1) },
			"/params/":  func(f *File) { f.Path += "$" },
			"/tags/":    func(f *File) { f.Path = "-" + f.Path },
		} {
			if !strings.Contains(f.Path, name) {
				continue
			}
			bad := slices.Clone(files)
			if change(&bad[i]); malformed(bad) == "" {
				t.Errorf("%s: the check finds no fault in %+v", name, bad[i])
			}
		}
	}
}

func TestMLflow_WritesARunOfEachTrial(t *testing.T) {
	files, err := MLflow(example(t), "/data/ml runs")
	must.Do(t, err)
	experiments, runs := store(t, files)
	if len(experiments) != 1 || experiments[0]["name"] != "quadratic" || len(runs) != 4 ||
		!strings.HasPrefix(experiments[0]["artifact_location"].(string), "file:///data/ml%20runs/") {
		t.Fatalf("experiments %v, %d runs", experiments, len(runs))
	}
	run := runs["quadratic.0"]
	start := opened.UnixMilli()
	for name, want := range map[string]string{
		"params/lr": "0.001", "params/opt": "adam", "tags/scrimp.cost_usd": "2", "tags/scrimp.saved_usd": "3.25",
		"tags/scrimp.lost_usd": "0.25", "tags/scrimp.interruptions": "2", "meta/status": "3",
		"meta/start_time": strconv.FormatInt(start+60_000, 10), "meta/end_time": strconv.FormatInt(start+3_600_000, 10),
	} {
		if run[name] != want {
			t.Errorf("%s is %q, want %q", name, run[name], want)
		}
	}
	sum := 0.0
	for n, line := range strings.Split(strings.TrimSpace(run["metrics/val_auc"]), "\n") {
		f := strings.Fields(line)
		v, err := strconv.ParseFloat(f[1], 64)
		if len(f) != 3 || err != nil || f[2] != strconv.Itoa(n+1) || f[0] != strconv.FormatInt(start+int64(n+1)*600_000, 10) {
			t.Errorf("line %d of the metric is %q", n, line)
		}
		sum += v
	}
	if math.Abs(sum-2.2) > 1e-12 {
		t.Errorf("the values add up to %g, want 2.2", sum)
	}
	if f := strings.Fields(run["metrics/cost_usd"]); len(f) != 3 || f[1] != "2" {
		t.Errorf("the cost is %q", run["metrics/cost_usd"])
	}
	for name, want := range map[string]string{"quadratic.1": "5", "quadratic.2": "4", "quadratic.3": "1"} {
		if runs[name]["meta/status"] != want {
			t.Errorf("%s has status %s, want %s", name, runs[name]["meta/status"], want)
		}
	}
	if _, known := runs["quadratic.1"]["metrics/saved_usd"]; known {
		t.Error("nobody knows what trial 1 would have cost on-demand")
	}
}

// A name from outside never leaves the folder, and a metric that would hide a figure of the bill is refused.
func TestMLflow_KeepsHostileNamesInItsFolder(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "..", ".", "a/b", "a\\b", "é", strings.Repeat("x", 1000)} {
		s := example(t)
		s.Group.Study.Metric = name
		files, err := MLflow(s, "/tmp/x")
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		for _, f := range files {
			if !filepath.IsLocal(f.Path) || strings.Count(strings.TrimSuffix(f.Path, "/"), "/") > 3 ||
				slices.Contains(strings.Split(f.Path, "/"), "..") {
				t.Errorf("%q: writes %s", name, f.Path)
			}
		}
	}
	s := example(t)
	s.Group.Study.Metric = "cost_usd"
	if _, err := MLflow(s, "/tmp/x"); err == nil || !strings.Contains(err.Error(), "export csv or optuna") {
		t.Errorf("a metric named cost_usd: %v", err)
	}
}
