package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// loaded is a trial as Optuna loads it.
type loaded struct {
	Job    string             `json:"job"`
	State  string             `json:"state"`
	Params map[string]any     `json:"params"`
	Values map[string]float64 `json:"values"`
	Value  *float64           `json:"value"`
	Proxy  bool               `json:"proxy"`
}

// read loads an exported journal with Optuna, and once more after Optuna has copied it to SQLite.
const read = `
import json, sys, warnings
warnings.simplefilter("ignore")
import optuna
from optuna.storages import JournalStorage
try:
    from optuna.storages.journal import JournalFileBackend
except ImportError:
    from optuna.storages import JournalFileStorage as JournalFileBackend
optuna.logging.set_verbosity(optuna.logging.ERROR)
name, journal, db = sys.argv[1:]
file = JournalStorage(JournalFileBackend(journal))
optuna.copy_study(from_study_name=name, from_storage=file, to_storage=db)
for storage in (file, db):
    s = optuna.load_study(study_name=name, storage=storage)
    print(json.dumps({"best": s.best_trial.user_attrs["scrimp_job"], "of_scrimp": s.user_attrs["best"], "trials": [{
        "job": t.user_attrs["scrimp_job"], "state": t.state.name, "params": t.params,
        "values": t.intermediate_values, "value": t.value, "proxy": t.user_attrs.get("proxy", False)} for t in s.trials]}))
`

// Optuna loads an exported search with each trial's state, parameters and values, and finds the same best trial. It
// copies the search to its own SQLite storage.
func TestTuneExport_IsLoadedByOptuna(t *testing.T) {
	lane.Component(t, "python")
	t.Parallel()
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import optuna").Run() != nil {
		t.Skip("python3-optuna is not installed")
	}
	h := newHome(t)
	h.write("job.yaml", `name: job
command: 'e=0; while [ $e -lt 4 ]; do e=$((e+1)); [ "$SCRIMP_PARAM_KIND$e" = c2 ] && exit 3; echo "epoch $e loss $(awk "BEGIN {
  print ($SCRIMP_PARAM_X - 3) ^ 2 + $SCRIMP_PARAM_N + 1 / $e }")"; done'
progress: {pattern: 'epoch (?P<epoch>\d+) loss (?P<loss>\S+)'}
`)
	space := `job: job.yaml
metric: {name: loss, goal: minimize}
searcher: asha-stop
parameters:
  x: {min: 0.0, max: 10.0}
  rate: {distribution: log_uniform_values, min: 1e-5, max: 0.1}
  n: {distribution: int_uniform, min: 1, max: 8}
  kind: {values: [a, 2, true, c]}
  fraction: {value: 1}
fidelity: {name: epoch, min: 1, max: 4}
budget: {usd: 5, trials: 7}
parallel: 1
`
	for name, more := range map[string]string{"plain": "", "proxied": "proxy: {set: {fraction: 0.25}, promote: 2}\n"} {
		h.write("study.yaml", "name: "+name+"\n"+space+more)
		h.do("tune", "-y", "study.yaml")
		h.do("tune", "export", name, "--format", "optuna", "-o", name+".journal")
		var trials []client.Trial
		for line := range strings.Lines(h.do("tune", "export", name, "--json")) {
			var one client.Trial
			must.Do(t, json.Unmarshal([]byte(line), &one))
			trials = append(trials, one)
		}
		var g client.Group
		must.Do(t, json.Unmarshal([]byte(h.do("tune", "status", name, "--json")), &g))
		out, err := exec.Command(python, "-c", read, name, filepath.Join(h.dir, name+".journal"),
			"sqlite:///"+filepath.Join(h.dir, name+".db")).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			var got struct {
				Best     string   `json:"best"`
				OfScrimp string   `json:"of_scrimp"`
				Trials   []loaded `json:"trials"`
			}
			must.Do(t, json.Unmarshal([]byte(line), &got))
			sameTrials(t, trials, got.Trials, name == "proxied")
			if best := bestInFull(trials); got.Best != best || got.OfScrimp != g.Study.Best.ID {
				t.Errorf("%s: Optuna's best is %s, want %s; scrimp's is %s, want %s", name, got.Best, best, got.OfScrimp,
					g.Study.Best.ID)
			}
		}
	}
}

// bestInFull returns the trained trial with the smallest value, without those of a proxy.
func bestInFull(trials []client.Trial) (id string) {
	least := 1e300
	for _, t := range trials {
		if t.State == "succeeded" && !t.Proxy && t.Best != nil && *t.Best < least {
			id, least = t.ID, *t.Best
		}
	}
	return id
}

// sameTrials compares what Optuna has loaded with the trials of the search.
func sameTrials(t *testing.T, trials []client.Trial, got []loaded, proxied bool) {
	t.Helper()
	if len(trials) != len(got) {
		t.Fatalf("Optuna has loaded %d of %d trials", len(got), len(trials))
	}
	states := map[string]int{}
	for n, want := range trials {
		g := got[n]
		values, state := map[string]float64{}, map[string]string{"stopped": "PRUNED", "failed": "FAIL", "succeeded": "COMPLETE"}[want.State]
		for _, v := range want.Curve {
			values[strconv.Itoa(int(v.Unit))] = v.Value
		}
		if want.Proxy && state == "COMPLETE" {
			state = "PRUNED"
		}
		if states[state]++; g.Job != want.ID || g.State != state || !maps.Equal(g.Values, values) || g.Proxy != want.Proxy {
			t.Errorf("trial %d is %+v, want %+v", n, g, want)
		}
		if state != "FAIL" && (g.Value == nil || *g.Value != *want.Best) {
			t.Errorf("%s has the value %v, want %v", want.ID, g.Value, *want.Best)
		}
		for name, text := range want.Params {
			if want.Proxy && name == "fraction" {
				text = "0.25"
			}
			if v := g.Params[name]; !alike(fmt.Sprint(v), text) {
				t.Errorf("%s: %s is %v, want %s", want.ID, name, v, text)
			}
		}
		if len(g.Params) != len(want.Params) {
			t.Errorf("%s has the parameters %v, want %v", want.ID, g.Params, want.Params)
		}
	}
	if states["COMPLETE"] == 0 || states["FAIL"] == 0 || proxied && states["PRUNED"] == 0 {
		t.Errorf("the search has trials by state %v: it should have some of each", states)
	}
}

// alike reports whether two texts are the same or the same number.
func alike(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, no := strconv.ParseFloat(b, 64)
	return a == b || err == nil && no == nil && x == y
}
