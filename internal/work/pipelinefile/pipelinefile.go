// Package pipelinefile reads pipeline.yaml and dvc.yaml: stages in DVC's format, each with optional fields of a job
// file, and a budget for the whole. Unsupported fields are refused by name, or noted if they have no effect.
package pipelinefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/nearest"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/pipelinefile/document"
	"scrimp/internal/work/pipelinefile/trigger"
	"scrimp/internal/work/schedule"
)

// A File is the contents of a pipeline file.
type File struct {
	// Whole is the job file of the whole pipeline: name, owner, tags, budget and secrets, if given. It has no command.
	Whole  spec.Job
	AtOnce int // maximum number of stages that run at once
	Spec   *pipeline.Spec
	Jobs   []spec.Job // of the stages of Spec, by position
	Notes  []string   // remarks on how the file was read
	// Schedule says when the pipeline runs; nil without a schedule. Total is the budget of all its runs; nil if not
	// given.
	Schedule *schedule.Spec
	Total    *money.Amount
	// Sample is the run on a part of the data that comes first; nil: there is none. Spec and Jobs are without it.
	Sample *pipeline.Sample
	Index  document.Index // the lines of the file
}

// parallel is the default number of stages that run at once.
const parallel = 4

// maxProblems bounds the reported problems.
const maxProblems = 50

// reader reads one file and collects its problems.
type reader struct {
	file     string
	now      time.Time
	read     func(path string) ([]byte, error)
	f        File
	problems spec.Problems
	empty    map[spec.Problem]bool // where texts are whose templates could not be filled
	nodes    int                   // that have been copied
	bytes    int                   // that templates have produced
	files    map[string]*yaml.Node
	vars     *yaml.Node
	defaults *yaml.Node
	secrets  *yaml.Node // names; nil: none
	stages   []*stage
	frozen   map[string]bool
	groups   map[string][]string // the stages of foreach and matrix, by their common name
	outs     map[string]bool     // of all stages
	when     trigger.Schedule
}

// Parse parses a pipeline file. read returns the files that it names, by their path below the work folder; its error is
// fs.ErrNotExist for a missing one. now is the market time, for deadlines. All errors are returned together, as
// spec.Problems.
func Parse(file string, text []byte, now time.Time, read func(path string) ([]byte, error)) (*File, error) {
	r := &reader{file: path.Base(file), now: now, read: read, f: File{AtOnce: parallel}, files: map[string]*yaml.Node{},
		frozen: map[string]bool{}, groups: map[string][]string{}, empty: map[spec.Problem]bool{}}
	switch doc, err := document.Read("pipeline.yaml", text); {
	case err != nil:
		r.wrong(nil, "", err.Error(), "correct it")
	case isNull(doc):
		r.wrong(nil, "", "is empty", "write stages: and a stage with cmd below it")
	case doc.Kind != yaml.MappingNode:
		r.wrong(doc, "", "is no map", "write stages: and a stage with cmd below it")
	default:
		r.all(r.plain(doc, "", 0))
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
	again := func(q spec.Problem) bool { // many stages come from one text
		return p.Line > 0 && p.Line == q.Line && p.Column == q.Column && p.Cause == q.Cause && p.File == q.File
	}
	unfilled := r.empty[spec.Problem{File: p.File, Line: p.Line, Column: p.Column}]
	if !unfilled && len(r.problems) < maxProblems && !slices.ContainsFunc(r.problems, again) {
		r.problems = append(r.problems, p)
	}
}

// trigger reads the schedule of the file and the drift of stages.
func (r *reader) trigger() *trigger.Reader {
	return &trigger.Reader{Wrong: r.wrong, Note: r.note, Now: r.now}
}

// note adds a remark.
func (r *reader) note(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); len(r.f.Notes) < maxProblems && !slices.Contains(r.f.Notes, text) {
		r.f.Notes = append(r.f.Notes, text)
	}
}

// whole lists the job-file fields that apply to the whole pipeline.
var whole = []string{"name", "team", "project", "tags", "budget", "secrets", "inherit"}

// later maps unsupported or misplaced words of this file or a stage to the fix.
var later = map[string]string{
	"deadline": "is not supported yet: leave it out",
	"on_data":  "is a condition of a schedule: write it below schedule",
	"on_drift": "is a field of a stage: write it into the stage that trains",
	"sample":   "is a field of the file: write it at the top",
	"live":     "is of an old DVC: write metrics and plots",
}

// shown lists fields of dvc.yaml that only affect DVC's display.
var shown = []string{"metrics", "plots", "params", "artifacts", "datasets", "schema"}

// all reads the fields of the file.
func (r *reader) all(root *yaml.Node) {
	r.vars = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if n := r.load("params.yaml", nil, true); n != nil {
		r.vars = n
	}
	if n := document.In(root, "vars"); n != nil {
		r.vars = r.withVars(r.vars, n, ".", "vars")
	}
	r.secrets = document.In(root, "secrets")
	if r.defaults = document.In(root, "defaults"); r.defaults != nil {
		r.checkDefaults()
	}
	r.f.Index.Root, r.f.Index.Known = root, append([]string{"schedule", "sample"}, whole...)
	own := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, v := root.Content[i], root.Content[i+1]
		switch name := key.Value; {
		case slices.Contains(whole, name):
			own.Content = append(own.Content, key, r.fill(v, scope{vars: r.vars}, name, false))
		case name == "parallel":
			r.f.AtOnce = r.whole(r.fill(v, scope{vars: r.vars}, name, false), name, 1, 1000)
		case name == "schedule":
			r.when = r.trigger().Schedule(r.fill(v, scope{vars: document.WithSecrets(r.vars, r.secrets)}, name, false))
			r.f.Schedule, r.f.Total = r.when.Spec, r.when.Total
		case name == "sample":
			r.f.Sample = r.trigger().Sample(r.fill(v, scope{vars: r.vars}, name, false),
				func(n *yaml.Node, field string) []string { return r.paths(n, ".", field) }, r.gates)
		case slices.Contains([]string{"stages", "vars", "defaults"}, name) || strings.HasPrefix(name, "x-"):
		case slices.Contains(shown, name):
			r.note("%s of the file is left out: it only says what DVC shows", name)
		default:
			r.unknown(key)
		}
	}
	r.f.Whole = r.job(own, "", map[string]any{"command": "true"}, nil)
	r.f.Whole.Command = ""
	if document.In(own, "name") == nil {
		r.f.Whole.Name = ""
	}
	r.allStages(document.In(root, "stages"))
	if len(r.problems) == 0 {
		r.trigger().CheckSample(document.In(root, "sample"), r.f.Sample, r.f.Spec)
	}
}

// unknown says that the file has a field which no pipeline has, or none yet.
func (r *reader) unknown(key *yaml.Node) {
	name := key.Value
	if later[name] != "" {
		cause, fix, _ := strings.Cut(later[name], ": ")
		r.wrong(key, name, cause, fix)
		return
	}
	known := append([]string{"stages", "vars", "defaults", "parallel", "schedule", "sample"}, whole...)
	fix := "write " + strings.Join(known, ", ")
	if near := nearest.Of(name, known); near != "" {
		fix = "did you mean `" + near + "`?"
	}
	r.wrong(key, name, "is no field of a pipeline", fix)
}

// checkDefaults refuses DVC words among the defaults: each stage sets its own.
func (r *reader) checkDefaults() {
	if r.defaults.Kind != yaml.MappingNode {
		r.wrong(r.defaults, "defaults", "is no map", "write fields of a job file below it, such as resources")
		r.defaults = nil
		return
	}
	for i := 0; i+1 < len(r.defaults.Content); i += 2 {
		key := r.defaults.Content[i]
		if ours(key.Value) || elsewhere[key.Value] != "" || key.Value == "command" || key.Value == "args" {
			r.wrong(key, "defaults."+key.Value, "is no default",
				"write it where it belongs; defaults takes what stages may share, such as resources")
		}
	}
}

// allStages reads the stages and sorts them.
func (r *reader) allStages(n *yaml.Node) {
	switch {
	case n == nil:
		r.wrong(nil, "stages", "is missing", "write stages: and a stage with cmd below it")
		return
	case n.Kind != yaml.MappingNode:
		r.wrong(n, "stages", "is no map of stages", "write NAME: and its fields below it")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if len(r.problems) == maxProblems || r.nodes > maxNodes {
			return
		}
		r.entry(n.Content[i], n.Content[i+1])
	}
	r.settle()
	if len(r.problems) > 0 {
		return
	}
	r.order(n)
}

// order builds the pipeline from the stages.
func (r *reader) order(at *yaml.Node) {
	list, jobs := make([]pipeline.Stage, len(r.stages)), make(map[string]*stage, len(r.stages))
	for i, s := range r.stages {
		list[i], jobs[s.Name] = s.Stage, s
	}
	p, err := pipeline.New(list)
	if wrong, ok := errors.AsType[*pipeline.Problem](err); ok {
		field := "stages"
		if s := jobs[wrong.Stage]; s != nil {
			at, field = s.key, "stages."+s.Name
			if n := document.In(s.node, wrong.Field); n != nil {
				at = n
			}
			field = strings.TrimSuffix(field+"."+wrong.Field, ".")
		}
		r.wrong(at, field, wrong.Err.Error(), "")
		return
	}
	r.f.Spec = p
	r.trigger().Check(r.when, p)
	var unread []string
	r.f.Jobs = make([]spec.Job, 0, len(p.Stages)) // job files are large: growing the list would copy them often
	r.f.Index.Stages = make([]document.Stage, 0, len(p.Stages))
	for _, s := range p.Stages {
		own := jobs[s.Name]
		r.f.Jobs = append(r.f.Jobs, own.job)
		r.f.Index.Stages = append(r.f.Index.Stages, document.Stage{Name: s.Name, Key: own.key, Fields: own.node})
		if len(s.Deps) == 0 {
			unread = append(unread, s.Name)
		}
	}
	if len(unread) > 3 {
		unread = append(unread[:3], fmt.Sprintf("and %d others", len(unread)-3))
	}
	if len(unread) > 0 {
		r.note("%s: without deps, whatever changes in the work folder runs it again", strings.Join(unread, ", "))
	}
}

// job parses the fields of a job file. add holds further fields; renamed maps fields to the file's names.
func (r *reader) job(n *yaml.Node, field string, add map[string]any, renamed map[string]string) spec.Job {
	fields, _ := texts(n).(map[string]any)
	maps.Copy(fields, add)
	text, err := json.Marshal(fields)
	if err != nil {
		r.wrong(n, field, err.Error(), "write fields of a job file")
		return spec.Job{}
	}
	j, notes, err := spec.ParseJSON(spec.Run, text, "pipeline", r.now)
	for _, note := range notes {
		r.note("%s %s", join(field, note.Field), note.Text)
	}
	list, ok := errors.AsType[spec.Problems](err)
	if err != nil && !ok {
		r.wrong(n, field, err.Error(), "write fields of a job file")
	}
	for _, p := range list {
		first := strings.FieldsFunc(p.Field, func(c rune) bool { return c == '.' || c == '[' })
		if len(first) > 0 && renamed[first[0]] != "" {
			p.Field = renamed[first[0]] + strings.TrimPrefix(p.Field, first[0])
		}
		r.wrong(document.Find(n, p.Field), join(field, p.Field), p.Cause, p.Fix)
	}
	return j
}

// whole parses a whole number within bounds.
func (r *reader) whole(v *yaml.Node, field string, least, most int) int {
	n, err := strconv.Atoi(v.Value)
	if v.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return least
	}
	return n
}
