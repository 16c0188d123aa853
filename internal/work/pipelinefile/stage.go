package pipelinefile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/pipelinefile/document"
)

// stage is a parsed stage.
type stage struct {
	pipeline.Stage
	key    *yaml.Node // the node of its name
	node   *yaml.Node // its fields, with templates filled in
	job    spec.Job
	after  []*yaml.Node
	params []param
}

// dvc lists the words of a stage that are not job-file fields.
var dvc = []string{"cmd", "wdir", "deps", "outs", "params", "metrics", "plots", "vars", "frozen", "always_changed",
	"desc", "meta", "foreach", "do", "matrix", "shards", "after", "dependencies", "gate", "examples", "deploy", "on_drift",
	"warm_start"}

// ours reports whether a word of a stage is not a job-file field.
func ours(word string) bool { return slices.Contains(dvc, word) || later[word] != "" }

// elsewhere maps job-file fields that a stage expresses differently to the fix.
var elsewhere = map[string]string{
	"name": "leave it out: the stage has its name already", "workdir": "write wdir", "outputs": "write outs",
	"team": "write it at the top of the file", "project": "write it at the top of the file",
	"secrets": "write it at the top of the file: stages share secrets",
	"inherit": "write it at the top of the file",
}

// foreach reads the stages of foreach and do.
func (r *reader) foreach(key, n, each, do *yaml.Node, field string) {
	switch {
	case do == nil || do.Kind != yaml.MappingNode:
		r.wrong(each, field+".do", "is missing", "write the fields of each stage below do")
	case len(n.Content) > 4:
		r.wrong(key, field, "has fields beside foreach and do", "write them below do")
	default:
		r.each(key, do, r.items(each, field+".foreach"))
	}
}

// entry reads a field of stages: a stage, or the stages of foreach or matrix.
func (r *reader) entry(key, n *yaml.Node) {
	field := "stages." + key.Value
	if n.Kind != yaml.MappingNode {
		r.wrong(key, field, "is no map of fields", "write cmd below it")
		return
	}
	each, do := document.In(n, "foreach"), document.In(n, "do")
	matrix, shards := document.In(n, "matrix"), document.In(n, "shards")
	switch {
	case shards != nil && (each != nil || do != nil || matrix != nil):
		r.wrong(shards, field+".shards", "stands beside foreach or matrix", "keep one of them")
	case shards != nil:
		r.each(key, n, r.shards(shards, field+".shards"))
	case each == nil && matrix == nil && do == nil:
		r.stage(key, key.Value, n, scope{vars: r.vars})
	case each != nil && matrix != nil:
		r.wrong(key, field, "has both foreach and matrix", "keep one of the two")
	case each != nil:
		r.foreach(key, n, each, do, field)
	case do != nil:
		r.wrong(do, field+".do", "stands without foreach", "write foreach beside it, or its fields into the stage")
	default:
		r.each(key, n, r.combinations(matrix, field+".matrix"))
	}
}

// instance is one of the stages of foreach or matrix.
type instance struct {
	name      string
	item, key *yaml.Node
}

func (r *reader) each(key, body *yaml.Node, list []instance) {
	group := r.named(key.Value)
	for _, i := range list {
		if len(r.problems) == maxProblems || r.nodes > maxNodes {
			return
		}
		name := key.Value + "@" + i.name
		r.groups[group] = append(r.groups[group], r.named(name))
		r.stage(key, name, body, scope{vars: r.vars, item: i.item, key: i.key})
	}
}

// items returns the instances of foreach: of a list, or of a map by its keys.
func (r *reader) items(n *yaml.Node, field string) (list []instance) {
	n = r.fill(n, scope{vars: r.vars}, field, false)
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			list = append(list, instance{nameOf(item, strconv.Itoa(i)), item, nil})
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			list = append(list, instance{n.Content[i].Value, n.Content[i+1], n.Content[i]})
		}
	}
	if len(list) == 0 {
		r.wrong(n, field, "is no list and no map with something in it", "write a list, or ${NAME} of one")
	}
	return list
}

// shards returns the instances of a stage whose work is divided: a number of them, or one for each value of a list. The
// templates of each have item.index from 0, item.count, and item.value of a list.
func (r *reader) shards(n *yaml.Node, field string) (list []instance) {
	n = r.fill(n, scope{vars: r.vars}, field, false)
	values, count := n.Content, len(n.Content)
	if n.Kind != yaml.SequenceNode {
		values, count = nil, r.whole(n, field, 1, pipeline.MaxStages)
	} else if count == 0 {
		r.wrong(n, field, "is a list with nothing in it", "write a number, or a list of what to divide")
	}
	for i := range min(count, pipeline.MaxStages) {
		index := str(n, strconv.Itoa(i))
		item := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		item.Content = []*yaml.Node{str(n, "index"), index, str(n, "count"), str(n, strconv.Itoa(count))}
		if values != nil {
			item.Content = append(item.Content, str(n, "value"), values[i])
		}
		list = append(list, instance{index.Value, &item, index})
	}
	return list
}

// nameOf returns a scalar as a part of a name, or other.
func nameOf(n *yaml.Node, other string) string {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		return single(n)
	}
	return other
}

// combinations returns the instances of a matrix.
func (r *reader) combinations(n *yaml.Node, field string) []instance {
	n = r.fill(n, scope{vars: r.vars}, field, false)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.wrong(n, field, "is no map of lists", "write NAME: [value, value] below it")
		return nil
	}
	list := []instance{{item: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, values := n.Content[i], n.Content[i+1]
		if values.Kind != yaml.SequenceNode || len(values.Content) == 0 {
			r.wrong(values, join(field, name.Value), "is no list with something in it", "write a list of values")
			return nil
		}
		if len(list)*len(values.Content) > pipeline.MaxStages {
			r.wrong(n, field, fmt.Sprintf("has more than %d combinations", pipeline.MaxStages), "write fewer values")
			return nil
		}
		var more []instance
		for _, one := range list {
			for k, v := range values.Content {
				item := *one.item
				item.Content = append(slices.Clone(item.Content), name, v)
				label := one.name + "-" + nameOf(v, name.Value+strconv.Itoa(k))
				more = append(more, instance{strings.TrimPrefix(label, "-"), &item, nil})
			}
		}
		list = more
	}
	for i := range list {
		list[i].key = str(n, list[i].name)
	}
	return list
}

// named replaces invalid characters in a stage name by _.
func (r *reader) named(name string) string {
	good := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_@.-", c) {
			return c
		}
		return '_'
	}, name)
	if good != name {
		r.note("the stage %q is called %s here", name, good)
	}
	return good
}

// stage reads a stage. Its local vars apply to its templates, but not to wdir.
func (r *reader) stage(key *yaml.Node, name string, n *yaml.Node, s scope) {
	if len(r.stages) > pipeline.MaxStages { // New reports it
		return
	}
	name = r.named(name)
	field := "stages." + name
	folder := "."
	if w := document.In(n, "wdir"); !isNull(w) {
		folder = path.Clean(strings.ReplaceAll(r.fill(w, s, field+".wdir", false).Value, "\\", "/"))
		if path.IsAbs(folder) || folder == ".." || strings.HasPrefix(folder, "../") {
			r.wrong(w, field+".wdir", "is "+folder+", outside the folder of the file", "name a folder below it")
			folder = "."
		}
	}
	if v := document.In(n, "vars"); !isNull(v) {
		s.vars = r.withVars(s.vars, r.fill(v, s, field+".vars", false), folder, field+".vars")
	}
	if r.defaults != nil {
		n = merge(n, r.defaults, "", func(string) {})
	}
	x := &stage{key: key, node: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line, Column: key.Column}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		word, v := n.Content[i], n.Content[i+1]
		if slices.Contains([]string{"foreach", "do", "matrix", "shards", "vars", "meta", "desc"}, word.Value) {
			continue
		}
		known := s
		if word.Value == "notify" {
			known.vars = document.WithSecrets(s.vars, r.secrets)
		}
		v = r.fill(v, known, join(field, word.Value), word.Value == "cmd" || word.Value == "command")
		x.node.Content = append(x.node.Content, word, v)
	}
	x.Name = name
	r.words(x, folder, field)
}

// words reads the fields of a stage with filled templates.
func (r *reader) words(x *stage, folder, field string) {
	rest := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: x.key.Line, Column: x.key.Column}
	var shows, metrics []string
	frozen, cmd := false, (*yaml.Node)(nil)
	for i := 0; i+1 < len(x.node.Content); i += 2 {
		word, v := x.node.Content[i], x.node.Content[i+1]
		at := join(field, word.Value)
		paths := map[string]*[]string{"deps": &x.Deps, "outs": &x.Outs, "plots": &shows, "metrics": &metrics}
		switch to := paths[word.Value]; {
		case to != nil:
			*to = append(*to, r.paths(v, folder, at)...)
		case word.Value == "cmd":
			cmd = v
		case word.Value == "frozen":
			frozen = r.truth(v, at)
		case !r.rule(x, word.Value, v, folder, at):
			r.field(word, v, at, rest)
		}
	}
	if frozen {
		r.frozen[x.Name] = true
		r.note("%s is frozen: it does not run, and what lies at its outs is used as it is", x.Name)
		return
	}
	r.reports(x, shows, metrics)
	x.job = r.jobOf(x, rest, cmd, folder, field)
	if document.In(x.node, "always_changed") == nil && slices.ContainsFunc(x.job.Data, outside) {
		x.Always = true
		r.note("%s runs each time, because its data may have changed: write always_changed: false if it never does", x.Name)
	}
	r.stages = append(r.stages, x)
}

// outside reports whether an input lies at an address. The key of a stage has the content of files of the work folder,
// and only the address of an input elsewhere.
func outside(d spec.Data) bool { return strings.Contains(d.Path, "://") }

// rule reads a field that says when a stage runs or what its outputs have to fulfil. It reports whether it is one.
func (r *reader) rule(x *stage, word string, v *yaml.Node, folder, at string) bool {
	switch word {
	case "wdir":
		if v.Kind != yaml.ScalarNode {
			r.wrong(v, at, "is no path", "write a folder below that of the file")
		}
	case "params":
		x.params = r.params(v, folder, at)
	case "always_changed":
		x.Always = r.truth(v, at)
	case "after", "dependencies":
		x.after = append(x.after, items(v)...)
	case "gate":
		if x.Gates = r.gates(v, at); v.Kind != yaml.SequenceNode && len(x.Gates) == 1 {
			x.Gate, x.Gates = &x.Gates[0], nil
		}
	case "on_drift":
		x.Drift = r.trigger().Drift(v, at, func(p string) string { return joined(folder, p) })
	case "warm_start":
		x.Warm = r.trigger().Warm(v, at, func(p string) string { return joined(folder, p) })
	case "examples":
		r.examples(x, v, folder, at)
	case "deploy":
		if x.Deploy = r.truth(v, at); !x.Deploy {
			r.wrong(v, at, "is false", "leave it out: the stage with deploy: true deploys, or else the one named deploy")
		}
	default:
		return false
	}
	return true
}

// field adds a job-file field, or refuses one that has no place in a stage.
func (r *reader) field(word, v *yaml.Node, at string, rest *yaml.Node) {
	switch {
	case later[word.Value] != "":
		cause, fix, _ := strings.Cut(later[word.Value], ": ")
		r.wrong(word, at, cause, fix)
	case elsewhere[word.Value] != "":
		r.wrong(word, at, "is no field of a stage", elsewhere[word.Value])
	default:
		rest.Content = append(rest.Content, word, v)
	}
}

// jobOf returns the job file of a stage.
func (r *reader) jobOf(x *stage, rest, cmd *yaml.Node, folder, field string) spec.Job {
	add := map[string]any{"name": spec.Label(x.Name)}
	renamed := map[string]string{"outputs": "outs"}
	if len(x.Outs) > 0 {
		add["outputs"] = x.Outs
	}
	program := document.In(rest, "command")
	direct := document.In(rest, "args") != nil || program != nil && program.Kind == yaml.SequenceNode
	switch {
	case cmd != nil && (direct || program != nil):
		r.wrong(cmd, field+".cmd", "stands beside command or args", "keep one of them")
	case direct && folder != ".":
		r.wrong(document.In(x.node, "wdir"), field+".wdir", "does not reach a program without a shell",
			"write cmd instead of args")
	case cmd == nil && program == nil && !direct:
		r.wrong(x.key, field+".cmd", "is missing", "write what the stage runs, such as cmd: python train.py")
		add["command"] = "true" // a placeholder, so that other errors are reported, too
	case !direct:
		if renamed["command"] = "cmd"; cmd == nil {
			cmd, renamed["command"] = program, "command"
		}
		add["command"] = r.command(cmd, folder, join(field, renamed["command"]))
	}
	return r.job(rest, field, add, renamed)
}

// command returns the shell program of a stage. The commands of a list run in turn, each in its own shell, and the
// first failure ends the stage.
func (r *reader) command(n *yaml.Node, folder, field string) string {
	var list []string
	for _, c := range items(n) {
		if c.Kind != yaml.ScalarNode || strings.TrimSpace(c.Value) == "" || isNull(c) {
			r.wrong(c, field, "is no command", "write a text, or a list of texts")
			return "true"
		}
		list = append(list, c.Value)
	}
	text := strings.Join(list, "")
	switch len(list) {
	case 0:
		r.wrong(n, field, "is no command", "write a text, or a list of texts")
		return "true"
	case 1:
	default:
		text = "(\n" + strings.Join(list, "\n) && (\n") + "\n)"
	}
	if folder != "." {
		text = "cd " + document.Word(folder) + " || exit\n" + text
	}
	return text
}

// settle does what needs all stages: dependencies, and the values of params.
func (r *reader) settle() {
	for _, s := range r.stages {
		for _, n := range s.after {
			name := n.Value
			switch group, isGroup := r.groups[name]; {
			case n.Kind != yaml.ScalarNode || isNull(n):
				r.wrong(n, "stages."+s.Name+".after", "has an entry that is no stage", "write names of stages")
			case isGroup:
				s.After = append(s.After, slices.DeleteFunc(slices.Clone(group), func(g string) bool { return r.frozen[g] })...)
			case !r.frozen[name]:
				s.After = append(s.After, name)
			}
		}
		r.take(s)
	}
}
