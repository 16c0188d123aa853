// Package studyfile reads study.yaml: the format of W&B sweeps, with a budget, a fidelity and the job to search. It
// also accepts the distribution names of Optuna and Ray. Unsupported fields are refused by name.
package studyfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune/replay"
)

// A File is the contents of study.yaml.
type File struct {
	Name     string
	JobFile  string // path of the job file; empty if Job has it
	Job      []byte // a job file inside study.yaml
	JobLine  int    // its first line there
	Study    study.Spec
	Budget   money.Amount  // of the whole study
	Trial    time.Duration // time limit of a trial; 0 for none
	Parallel int
	Goal     bool        // the file states the goal
	Free     bool        // the file names no searcher and no method
	Notes    []string    // remarks on how the file was read
	PerHour  *money.Rate // price of an hour of a worker; for the user's own loop only
	Warm     []string    // names of earlier studies, and CSV files, that the searcher learns from
}

// parallel is the default number of trials that train at once.
const parallel = 4

// maxText bounds a file.
const maxText = 1 << 20

// Is reports whether a file is meant as a study: it has parameters beside a job or a metric.
func Is(text []byte) bool {
	var f struct {
		Parameters, Metric, Job yaml.Node
	}
	return len(text) <= maxText && yaml.Unmarshal(text, &f) == nil && !f.Parameters.IsZero() &&
		(!f.Metric.IsZero() || !f.Job.IsZero())
}

// reader reads one file and collects its problems.
type reader struct {
	file     string
	f        File
	problems spec.Problems
	method   string
	stop     *yaml.Node
	cap      int
	loop     bool // the user's own program trains the trials
}

// Parse parses a study file. All errors are returned together, as spec.Problems.
func Parse(file string, text []byte) (*File, error) {
	return (&reader{file: path.Base(file), f: File{Parallel: parallel}}).parse(text)
}

// ParseLoop parses the file of a search whose trials the user's own program trains. It has no job, and parallel is the
// number of workers.
func ParseLoop(file string, text []byte) (*File, error) {
	return (&reader{file: path.Base(file), f: File{Parallel: 1}, loop: true}).parse(text)
}

func (r *reader) parse(text []byte) (*File, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	switch err := d.Decode(&doc); {
	case len(text) > maxText:
		r.wrong(nil, "", "is larger than 1 MiB", "give the study file itself")
	case errors.Is(err, io.EOF):
		r.wrong(nil, "", "is empty", "write job, metric, parameters and budget")
	case err != nil:
		r.wrong(nil, "", strings.TrimPrefix(err.Error(), "yaml: "), "correct the YAML")
	case doc.Content[0].Kind != yaml.MappingNode:
		r.wrong(doc.Content[0], "", "is no mapping", "write job, metric, parameters and budget as fields")
	default:
		r.fields(doc.Content[0])
		r.judge(doc.Content[0])
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b spec.Problem) int { return a.Line - b.Line })
		return nil, r.problems
	}
	return &r.f, nil
}

// wrong adds a problem.
func (r *reader) wrong(n *yaml.Node, field, cause, fix string) {
	p := spec.Problem{File: r.file, Field: field, Cause: cause, Fix: fix}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	if len(r.problems) < 50 {
		r.problems = append(r.problems, p)
	}
}

// each calls do with the fields of a mapping. A repeated field is an error.
func (r *reader) each(n *yaml.Node, field string, do func(name string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no mapping", "write its fields below it")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if seen[key.Value] {
			r.wrong(key, join(field, key.Value), "is there twice", "leave one out")
			continue
		}
		seen[key.Value] = true
		do(key.Value, key, value)
	}
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// others maps fields of sweeps with another meaning here to the fix.
var others = map[string]string{
	"program": "write the program into the command of the job", "command": "write the command into the job; ${args} " +
		"stands for the parameters there", "project": "write project into the job", "entity": "write team into the job",
	"run_env":    "write env into the job",
	"controller": "leave it out", "imports": "leave it out",
}

// fields reads the fields of the file.
func (r *reader) fields(root *yaml.Node) {
	f := &r.f
	parts := map[string]func(*yaml.Node){"metric": r.metric, "parameters": r.parameters, "budget": r.budget,
		"fidelity": r.fidelity, "plateau": r.plateau, "warm_start": r.warmStart, "proxy": r.proxy}
	r.each(root, "", func(name string, key, v *yaml.Node) {
		switch name {
		case "name":
			f.Name = r.text(v, name)
		case "description":
		case "job":
			if r.loop {
				r.wrong(key, name, "is given, and your own program trains the trials", "leave it out, or run scrimp tune "+r.file)
				return
			}
			r.job(v)
		case "usd_per_hour":
			if !r.loop {
				r.unknown(key)
				return
			}
			r.perHour(v)
		case "method":
			r.method = r.word(v, name, "random", "grid", "bayes")
		case "searcher":
			f.Study.Searcher = r.word(v, name, replay.Names()...)
		case "early_terminate":
			r.stop = v
		case "run_cap":
			r.cap = r.whole(v, name, 1, study.MaxTrials)
		case "parallel":
			f.Parallel = r.whole(v, name, 1, 1000)
		case "seed":
			f.Study.Seed = uint64(r.whole(v, name, 0, math.MaxInt32))
		case "final":
			f.Study.Final = r.truth(v, name)
		default:
			if part := parts[name]; part != nil {
				part(v)
				return
			}
			r.unknown(key)
		}
	})
}

// unknown says that the file has a field which no study has.
func (r *reader) unknown(key *yaml.Node) {
	fix, known := others[key.Value]
	if !known {
		fix = "write job, metric, parameters, budget, parallel, fidelity, method, searcher, early_terminate, run_cap, " +
			"seed, final, proxy, plateau, warm_start or name"
	}
	r.wrong(key, key.Value, "is no field of a study", fix)
}

func (r *reader) job(v *yaml.Node) {
	switch v.Kind {
	case yaml.ScalarNode:
		r.f.JobFile = r.text(v, "job")
	case yaml.MappingNode:
		text, err := yaml.Marshal(v)
		if err != nil {
			r.wrong(v, "job", err.Error(), "write the job file beside it, and its name here")
		}
		r.f.Job, r.f.JobLine = text, v.Line
	default:
		r.wrong(v, "job", "is neither the name of a job file nor a job", "write job: job.yaml")
	}
}

func (r *reader) metric(v *yaml.Node) {
	r.each(v, "metric", func(name string, key, v *yaml.Node) {
		switch name {
		case "name":
			r.f.Study.Metric = r.text(v, "metric.name")
		case "goal":
			r.f.Goal = true
			r.f.Study.Maximize = strings.HasPrefix(r.word(v, "metric.goal", "minimize", "maximize", "minimise",
				"maximise"), "max")
		default:
			r.wrong(key, "metric."+name, "is not supported yet", "leave it out")
		}
	})
}

func (r *reader) budget(v *yaml.Node) {
	amount := func(v *yaml.Node, field string) {
		a, err := spec.ParseBudget(v.Value)
		if err != nil || v.Kind != yaml.ScalarNode {
			r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write an amount above zero and up to $%.0f, "+
				"such as $25", quantity.Dollars.Most))
			return
		}
		r.f.Budget = a
	}
	if v.Kind == yaml.ScalarNode {
		amount(v, "budget")
		return
	}
	r.each(v, "budget", func(name string, key, v *yaml.Node) {
		field := "budget." + name
		switch name {
		case "usd", "dollars":
			amount(v, field)
		case "trials":
			r.f.Study.Trials = r.whole(v, field, 1, study.MaxTrials)
		case "gpu_hours", "wall_clock", "trial_wall_clock":
			if r.loop {
				r.wrong(key, field, "counts machines, and your own program has none that scrimp rents", "write usd or trials")
				return
			}
			r.limit(name, field, v)
		default:
			r.wrong(key, field, "is not supported yet", "write usd, trials, gpu_hours, wall_clock or trial_wall_clock")
		}
	})
}

// limit reads a limit of the machines of a search.
func (r *reader) limit(name, field string, v *yaml.Node) {
	switch name {
	case "gpu_hours":
		r.f.Study.GPUHours = r.positive(v, field)
	case "wall_clock":
		r.f.Study.Wall = r.span(v, field)
	default:
		r.f.Trial = r.span(v, field)
	}
}

// perHour reads the price of an hour of a worker.
func (r *reader) perHour(v *yaml.Node) {
	rate, err := money.ParseRate(strings.TrimPrefix(strings.TrimSpace(v.Value), "$"))
	if err != nil || v.Kind != yaml.ScalarNode || rate <= 0 || rate.Float() > quantity.Price.Most {
		r.wrong(v, "usd_per_hour", fmt.Sprintf("is %.40q", v.Value), "write a price above zero and at most 1000000, such as "+
			"$2.50")
		return
	}
	r.f.PerHour = &rate
}

func (r *reader) fidelity(v *yaml.Node) {
	fid := &r.f.Study.Fidelity
	fid.Name, fid.Min = study.Epoch, 1
	r.each(v, "fidelity", func(name string, key, v *yaml.Node) {
		switch field := "fidelity." + name; name {
		case "name":
			fid.Name = strings.TrimSuffix(r.word(v, field, study.Epoch, study.Step, "epochs", "steps"), "s")
		case "min":
			fid.Min = r.number(v, field)
		case "max":
			fid.Max = r.number(v, field)
		default:
			r.wrong(key, field, "is no field of a fidelity", "write name, min and max")
		}
	})
}

// text reads a text.
func (r *reader) text(v *yaml.Node, field string) string {
	if v.Kind != yaml.ScalarNode || v.Value == "" || v.Tag == "!!null" || len(v.Value) > study.MaxBytes {
		r.wrong(v, field, "is no text of 1 to 1024 bytes", "write one")
		return ""
	}
	return v.Value
}

// word reads one of the given words.
func (r *reader) word(v *yaml.Node, field string, words ...string) string {
	if v.Kind == yaml.ScalarNode && slices.Contains(words, v.Value) {
		return v.Value
	}
	r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), "write "+strings.Join(words, ", "))
	return ""
}

// number reads a finite number.
func (r *reader) number(v *yaml.Node, field string) (x float64) {
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" || v.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), "write a number")
		return 0
	}
	return x
}

// truth is true or false.
func (r *reader) truth(v *yaml.Node, field string) (is bool) {
	if err := v.Decode(&is); err != nil {
		r.wrong(v, field, "is neither true nor false", "write true or false")
	}
	return is
}

// whole reads a whole number within bounds.
func (r *reader) whole(v *yaml.Node, field string, least, most int) int {
	var n int
	var exact float64 // YAML reads 1.5 as the whole number 1
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" || v.Decode(&n) != nil || v.Decode(&exact) != nil ||
		exact != float64(n) || n < least || n > most {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return least
	}
	return n
}

// span reads a duration.
func (r *reader) span(v *yaml.Node, field string) time.Duration {
	d, err := spec.ParseDuration(v.Value)
	if err != nil || d <= 0 {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), "write a time such as 90m or 2h")
	}
	return d
}
