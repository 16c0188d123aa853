package studyfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/study"
)

// judge sets what the file leaves open, and reports errors of the whole.
func (r *reader) judge(root *yaml.Node) {
	f := &r.f
	s := &f.Study
	if r.cap > 0 && (s.Trials == 0 || r.cap < s.Trials) {
		s.Trials = r.cap
	}
	r.terminates()
	s.Grid = r.method == "grid"
	if f.Free = s.Searcher == "" && r.method == ""; s.Searcher == "" {
		s.Searcher = r.searcher()
	}
	r.missing(root)
	if !f.Goal {
		f.Notes = append(f.Notes, "metric.goal is not said: the metric is minimised")
	}
	if len(r.problems) > 0 {
		return
	}
	if field, err := s.Check(); err != nil {
		switch {
		case field == "trials", field == "gpu_hours", field == "wall_clock":
			field = "budget." + field
		case strings.HasPrefix(field, "params"):
			field = "parameters"
		}
		r.wrong(root, field, err.Error(), "")
	}
}

// missing says which fields the file lacks that every study needs.
func (r *reader) missing(root *yaml.Node) {
	if r.loop && r.f.Study.Final {
		r.wrong(root, "final", "is not possible: your own program trains the trials", "train the best one there at the end")
	}
	if r.loop && r.f.Study.Proxy != nil {
		r.wrong(root, "proxy", "is not possible: your own program trains the trials", "train the best ones in full there")
	}
	if r.f.JobFile == "" && r.f.Job == nil && !r.loop {
		r.wrong(root, "job", "is missing", "write job: job.yaml, the file of the job that trains one configuration; "+
			"for a loop of your own: scrimp tune ask "+r.file)
	}
	if r.loop && r.f.Budget.IsZero() && r.f.Study.Trials == 0 && len(r.problems) == 0 {
		r.wrong(root, "budget", "is missing", "write budget: {usd: 25} or budget: {trials: 20}")
	}
	if r.f.Budget.IsZero() && len(r.problems) == 0 && !r.loop {
		r.wrong(root, "budget", "is missing", "write budget: {usd: 25}, the most that the whole search may cost")
	}
	if r.f.Study.Metric == "" {
		r.wrong(root, "metric.name", "is missing", "write metric: {name: loss, goal: minimize}")
	}
}

// searcher returns the searcher of the method.
func (r *reader) searcher() string {
	switch {
	case r.method == "bayes" && r.stop != nil:
		r.f.Notes = append(r.f.Notes, "method bayes decides itself when a trial ends: early_terminate is not used")
		return "default"
	case r.method == "bayes", r.method == "" && r.f.Study.Fidelity.Name != "" && r.stop == nil:
		return "default"
	case r.stop != nil:
		return "asha-stop"
	}
	return "random"
}

// terminates reads early_terminate: asynchronous successive halving.
func (r *reader) terminates() {
	if r.stop == nil {
		return
	}
	least, most := 1.0, 0.0
	r.each(r.stop, "early_terminate", func(name string, key, v *yaml.Node) {
		switch field := "early_terminate." + name; name {
		case "type":
			r.word(v, field, "hyperband")
		case "min_iter":
			least = r.number(v, field)
		case "max_iter":
			most = r.number(v, field)
		case "eta":
			if n := r.number(v, field); n != 3 {
				r.wrong(v, field, fmt.Sprintf("is %g", n), "write 3, or leave it out: the best third goes on at each rung")
			}
		default:
			r.wrong(key, field, "is not supported yet", "write type, min_iter and max_iter")
		}
	})
	switch fid := &r.f.Study.Fidelity; {
	case fid.Name != "":
	case most > 0:
		*fid = study.Fidelity{Name: study.Step, Min: least, Max: most}
		r.f.Notes = append(r.f.Notes, "early_terminate counts the steps that the program reports; write fidelity to "+
			"count epochs")
	default:
		r.wrong(r.stop, "early_terminate", "does not say how long a full training is",
			"write fidelity: {name: epoch, min: 1, max: 27} beside it, or max_iter")
	}
}
