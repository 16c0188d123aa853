// Package pipelinefile reads pipeline.yaml and dvc.yaml: stages in the words of DVC, each with any field of a job file
// beside them, and a budget for the whole. What is not supported is refused by name, or noted where it changes nothing.
package pipelinefile

import (
	"encoding/json"
	"errors"
	"fmt"
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
	"scrimp/internal/work/schedule"
)

// A File is what a pipeline file says.
type File struct {
	// Whole is the job file of the whole: name, owner, tags, budget and secrets, as far as they are given. It
	// has no command.
	Whole  spec.Job
	AtOnce int // stages that run at once, at most
	Spec   *pipeline.Spec
	Jobs   []spec.Job // of the stages of Spec, by position
	Notes  []string   // what to know of how the file was read
	// Schedule says when the pipeline runs; nil: the file does not. Total is the budget of all of its runs, nil where the
	// file does not say.
	Schedule *schedule.Spec
	Total    *money.Amount
}

// parallel is how many stages run at once where the file does not say.
const parallel = 4

// maxProblems bounds what is said at once.
const maxProblems = 50

// reader reads one file and keeps what is wrong with it.
type reader struct {
	file     string
	now      time.Time
	read     func(path string) ([]byte, error)
	f        File
	problems spec.Problems
	nodes    int // that have been copied
	bytes    int // that templates have filled in
	files    map[string]*yaml.Node
	vars     *yaml.Node
	defaults *yaml.Node
	stages   []*stage
	frozen   map[string]bool
	groups   map[string][]string // the stages of foreach and matrix, by the name that they share
	outs     map[string]bool     // of all stages
}

// Parse reads a pipeline file. read gives the files that it names, by their path below the work folder; its error is
// one of fs.ErrNotExist where there is none. now is the market time against which deadlines are held. All that is wrong
// is returned together, as spec.Problems.
func Parse(file string, text []byte, now time.Time, read func(path string) ([]byte, error)) (*File, error) {
	r := &reader{file: path.Base(file), now: now, read: read, f: File{AtOnce: parallel}, files: map[string]*yaml.Node{},
		frozen: map[string]bool{}, groups: map[string][]string{}}
	switch doc, err := parse("pipeline.yaml", text); {
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

// wrong notes a problem.
func (r *reader) wrong(n *yaml.Node, field, cause, fix string) {
	p := spec.Problem{File: r.file, Field: field, Cause: cause, Fix: fix}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	again := func(q spec.Problem) bool { // many stages are made of one text
		return p.Line > 0 && p.Line == q.Line && p.Column == q.Column && p.Cause == q.Cause && p.File == q.File
	}
	if len(r.problems) < maxProblems && !slices.ContainsFunc(r.problems, again) {
		r.problems = append(r.problems, p)
	}
}

// note notes what to know.
func (r *reader) note(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); len(r.f.Notes) < maxProblems && !slices.Contains(r.f.Notes, text) {
		r.f.Notes = append(r.f.Notes, text)
	}
}

// whole are the fields of a job file that are said of the whole pipeline.
var whole = []string{"name", "team", "project", "tags", "budget", "secrets", "inherit"}

// later are words of this file, or of a stage, that are not supported yet or belong elsewhere, with what to do.
var later = map[string]string{
	"deadline": "is not supported yet: leave it out",
	"on_data":  "is not supported yet: start scrimp pipeline run when new data is there",
	"on_drift": "is not supported yet: measure it in a stage and put a gate on its metric",
	"sample":   "is not supported yet: write a stage that draws the sample, and a gate on its metric",
	"shards":   "is not supported yet: write foreach with a list of the shards",
	"live":     "is of an old DVC: write metrics and plots",
}

// shown are fields of dvc.yaml that only say what DVC shows.
var shown = []string{"metrics", "plots", "params", "artifacts", "datasets", "schema"}

// all reads the fields of the file.
func (r *reader) all(root *yaml.Node) {
	r.vars = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if n := r.load("params.yaml", nil, true); n != nil {
		r.vars = n
	}
	if n := in(root, "vars"); n != nil {
		r.vars = r.withVars(r.vars, n, ".", "vars")
	}
	if r.defaults = in(root, "defaults"); r.defaults != nil {
		r.checkDefaults()
	}
	own := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, v := root.Content[i], root.Content[i+1]
		switch name := key.Value; {
		case slices.Contains(whole, name):
			own.Content = append(own.Content, key, r.fill(v, scope{vars: r.vars}, name, false))
		case name == "parallel":
			r.f.AtOnce = r.whole(r.fill(v, scope{vars: r.vars}, name, false), name, 1, 1000)
		case name == "schedule":
			r.schedule(r.fill(v, scope{vars: r.vars}, name, false))
		case name == "stages" || name == "vars" || name == "defaults" || strings.HasPrefix(name, "x-"):
		case slices.Contains(shown, name):
			r.note("%s of the file is left out: it only says what DVC shows", name)
		default:
			r.unknown(key)
		}
	}
	r.f.Whole = r.job(own, "", map[string]any{"command": "true"}, nil)
	r.f.Whole.Command = ""
	if in(own, "name") == nil {
		r.f.Whole.Name = ""
	}
	r.allStages(in(root, "stages"))
}

// unknown says that the file has a field which no pipeline has, or none yet.
func (r *reader) unknown(key *yaml.Node) {
	name := key.Value
	if later[name] != "" {
		cause, fix, _ := strings.Cut(later[name], ": ")
		r.wrong(key, name, cause, fix)
		return
	}
	fix := "write stages, vars, defaults, parallel, schedule, " + strings.Join(whole, ", ")
	known := append([]string{"stages", "vars", "defaults", "parallel", "schedule"}, whole...)
	if near := nearest.Of(name, known); near != "" {
		fix = "did you mean `" + near + "`?"
	}
	r.wrong(key, name, "is no field of a pipeline", fix)
}

// checkDefaults refuses words of DVC among the defaults: each stage says its own.
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

// allStages reads the stages and orders them.
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

// order makes the pipeline of the stages.
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
			if n := in(s.node, wrong.Field); n != nil {
				at = n
			}
			field = strings.TrimSuffix(field+"."+wrong.Field, ".")
		}
		r.wrong(at, field, wrong.Err.Error(), "")
		return
	}
	r.f.Spec = p
	for _, s := range p.Stages {
		r.f.Jobs = append(r.f.Jobs, jobs[s.Name].job)
	}
	var unread []string
	for _, s := range p.Stages {
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

// job reads the fields of a job file. add are further ones; renamed says what the file calls them.
func (r *reader) job(n *yaml.Node, field string, add map[string]any, renamed map[string]string) spec.Job {
	fields, _ := texts(n).(map[string]any)
	for name, v := range add {
		fields[name] = v
	}
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
		r.wrong(find(n, p.Field), join(field, p.Field), p.Cause, p.Fix)
	}
	return j
}

// find is the value of a field such as resources.cpus or any_of[0].image, or the nearest above it.
func find(n *yaml.Node, field string) *yaml.Node {
	for part := range strings.SplitSeq(strings.ReplaceAll(field, "[", ".["), ".") {
		below := in(n, part)
		if index, isIndex := strings.CutPrefix(part, "["); isIndex && n.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil && i < len(n.Content) {
				below = n.Content[i]
			}
		}
		if below == nil {
			return n
		}
		n = below
	}
	return n
}

// whole is a whole number within bounds.
func (r *reader) whole(v *yaml.Node, field string, least, most int) int {
	n, err := strconv.Atoi(v.Value)
	if v.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return least
	}
	return n
}
