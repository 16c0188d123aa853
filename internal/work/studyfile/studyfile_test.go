package studyfile

import (
	"errors"
	"math"
	"strings"
	"testing"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/study"
)

// sweep is a W&B sweep with a job and a budget.
const sweep = `job: job.yaml
method: bayes
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {distribution: log_uniform_values, min: 1e-5, max: 0.1}
  layers: {min: 1, max: 8}
  dropout: {min: 0.0, max: 0.5}
  batch: {values: [16, 32, 64]}
  opt: {value: adam}
  decay: {distribution: q_uniform, min: 0, max: 1, q: 0.25}
  noise: {distribution: normal, mu: 1, sigma: 2}
fidelity: {name: epoch, min: 1, max: 27}
budget: {usd: 100, trials: 40, wall_clock: 20h, trial_wall_clock: 90m}
run_cap: 30
parallel: 8
seed: 7
final: true
`

func TestParse_ReadsASweep(t *testing.T) {
	f, err := Parse("study.yaml", []byte(sweep))
	must.Do(t, err)
	s := f.Study
	if s.Searcher != "default" || s.Trials != 30 || f.Parallel != 8 || f.Budget != money.Picos(100e12) || !s.Final || s.Seed != 7 ||
		f.JobFile != "job.yaml" || s.Wall.Hours() != 20 || f.Trial.Minutes() != 90 || len(s.Params) != 7 {
		t.Errorf("it is read as %+v", f)
	}
	if p := s.Params; !p[0].Log || !p[1].Int || p[2].Int || p[3].Values[1] != "32" || p[4].Values[0] != `"adam"` || p[5].Q != 0.25 || p[6].Sigma != 2 {
		t.Errorf("its space is %+v", p)
	}
	for n, v := range s.Pool() {
		if v[0] < 1e-5 || v[0] > 0.1 || v[1] != math.Round(v[1]) || v[2] > 0.5 || math.Mod(v[5], 0.25) != 0 {
			t.Fatalf("configuration %d is %v", n, v)
		}
	}
}

// Distributions of Optuna and Ray have their original meaning.
func TestParse_ReadsNamesOfOthers(t *testing.T) {
	for text, want := range map[string]study.Param{
		"{type: float, low: 0.1, high: 1, log: true}":              {Min: 0.1, Max: 1, Log: true},
		"{distribution: IntDistribution, low: 1, high: 9}":         {Min: 1, Max: 9, Int: true},
		"{distribution: CategoricalDistribution, choices: [a, 1]}": {Values: []string{`"a"`, "1"}},
		"{type: loguniform, lower: 0.001, upper: 0.1}":             {Min: 0.001, Max: 0.1, Log: true},
		"{distribution: inv_log_uniform_values, min: 1, max: 50}":  {Min: 1, Max: 50, Log: true},
		"{distribution: inv_log_uniform, min: 0, max: 1}":          {Min: 1 / math.E, Max: 1, Log: true},
		"{type: randint, lower: 0, upper: 10}":                     {Min: 0, Max: 9, Int: true},
		"{type: choice, categories: [true, false]}":                {Values: []string{"true", "false"}},
		"{distribution: log_uniform, min: 0, max: 1}":              {Min: 1, Max: math.E, Log: true},
		"{type: quniform, lower: 0, upper: 10, q: 2}":              {Min: 0, Max: 10, Q: 2},
	} {
		f, err := Parse("s.yaml", []byte("job: j\nmetric: {name: m, goal: maximize}\nbudget: $5\nmethod: random\nparameters:\n  p: "+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := f.Study.Params[0]
		want.Name = "p"
		if got.Min != want.Min || got.Max != want.Max || got.Int != want.Int || got.Log != want.Log || got.Q != want.Q ||
			strings.Join(got.Values, " ") != strings.Join(want.Values, " ") || !f.Study.Maximize {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}

// Each error is refused with its line, its field and a fix.
func TestParse_NamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ from, to, field string }{
		{"job: job.yaml\n", "", "job"},
		{"metric: {name: val_loss, goal: minimize}", "metric: {goal: minimize}", "metric.name"},
		{"goal: minimize", "goal: down", "metric.goal"},
		{"budget: {usd: 100, trials: 40, wall_clock: 20h, trial_wall_clock: 90m}\n", "", "budget"},
		{"usd: 100", "usd: 0", "budget.usd"},
		{"usd: 100", "gpu_hours: 3", "budget"},
		{"usd: 100", "usd: 100, gpu_hours: 0", "budget.gpu_hours"},
		{"usd: 100", "usd: 100, gpu_hours: 1e9", "budget.gpu_hours"},
		{"usd: 100", "usd: .nan", "budget.usd"},
		{"method: bayes", "method: magic", "method"},
		{"max: 1, q: 0.25", "max: 1, q: 0", "parameters.decay.q"},
		{"max: 1, q: 0.25", "max: 1, q: -1", "parameters.decay.q"},
		{"q_uniform, min: 0, max: 1, q: 0.25", "normal, mu: 3, sigma: 0", "parameters.decay.sigma"},
		{"seed: 7", "sead: 7", "sead"},
		{"seed: 7", "plateau: {patience: 3}", "plateau"},
		{"seed: 7", "plateau: {min_gain_per_usd: 1, point_value: 1}", "plateau"},
		{"seed: 7", "plateau: {patience: 0, min_gain_per_usd: 1}", "plateau.patience"},
		{"seed: 7", "plateau: {min_gain_per_usd: -1}", "plateau.min_gain_per_usd"},
		{"seed: 7", "plateau: {point_value: much}", "plateau.point_value"},
		{"seed: 7", "plateau: {min_gain_per_usd: 1, min_delta: 2}", "plateau.min_delta"},
		{"seed: 7", "warm_start: []", "warm_start"},
		{"seed: 7", "warm_start: [a, a]", "warm_start"},
		{"seed: 7", "proxy: 1", "proxy"},
		{"seed: 7", "program: train.py", "program"},
		{"parallel: 8", "parallel: 0", "parallel"},
		{"run_cap: 30", "run_cap: 1e9", "run_cap"},
		{"min: 1e-5, max: 0.1", "min: 0, max: 0.1", "parameters.lr.min"},
		{"min: 1e-5, max: 0.1", "min: 1, max: 0.1", "parameters.lr.min"},
		{"min: 1e-5, max: 0.1", "min: 1e-5", "parameters.lr.max"},
		{"log_uniform_values", "beta", "parameters.lr.distribution"},
		{"  layers: {min: 1, max: 8}", "  layers: {parameters: {lr: {min: 0.1, max: 1}}}", "parameters.layers.parameters"},
		{"values: [16, 32, 64]", "values: []", "parameters.batch.values"},
		{"values: [16, 32, 64]", "probabilities: [1]", "parameters.batch.probabilities"},
		{"values: [16, 32, 64]", "values: [16, 16]", "parameters"},
		{"values: [16, 32, 64]", "values: [16, 32, 64], min: 8", "parameters.batch.min"},
		{"opt: {value: adam}", "opt: {value: adam, values: [sgd]}", "parameters.opt.values"},
		{"opt: {value: adam}", "opt: {value: 1, sigma: 2}", "parameters.opt.sigma"},
		{"opt: {value: adam}", "opt: adam", "parameters.opt"},
		{"opt: {value: adam}", "lr: {value: 1}", "parameters.lr"},
		{"min: 1, max: 27", "min: 1, max: 0", "fidelity"},
		{"fidelity: {name: epoch, min: 1, max: 27}\n", "", "fidelity"},
		{"method: bayes", "method: grid", "parameters"},
		{"final: true", "early_terminate: {type: hyperband, s: 2}", "early_terminate.s"},
		{sweep, "", ""},
		{sweep, "[1, 2]", ""},
		{sweep, "a: [", ""},
	} {
		_, err := Parse("study.yaml", []byte(strings.Replace(sweep, c.from, c.to, 1)))
		list, ok := errors.AsType[spec.Problems](err)
		if !ok || list[0].Field != c.field || list[0].File != "study.yaml" {
			t.Errorf("%q for %q: %v, want a problem of %q", c.to, c.from, err, c.field)
		}
	}
}

// A number beyond its bound is refused with the bound.
func TestParse_NamesTheBoundOfANumber(t *testing.T) {
	for _, c := range []struct{ from, to, bound string }{
		{"min: 1, max: 27", "min: 1e17, max: 1e18", "1000000000000"}, {"min: 1, max: 27", "min: 1, max: 5000", "at most 1000 times"},
		{"q: 0.25", "q: 1e-300", "1e-15"}, {"sigma: 2", "sigma: 1e-300", "1e-15"}, {"sigma: 2", "sigma: 1e300", "1e+15"},
		{"usd: 100", "usd: 1e308", "$1000000000000"}, {"usd: 100", "usd: 2000000000000", "$1000000000000"},
	} {
		_, err := Parse("study.yaml", []byte(strings.Replace(sweep, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.bound) {
			t.Errorf("%s: %v, want the bound %s", c.to, err, c.bound)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sweep)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("s.yaml", []byte(text))
		if err != nil {
			return
		}
		if field, err := file.Study.Check(); err != nil || len(file.Study.Pool()) == 0 {
			t.Errorf("%q is taken, and is not valid: %s, %v", text, field, err)
		}
	})
}
