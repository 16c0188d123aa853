package pipelinefile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// options are the fields that DVC has for an out, a metric or a plot; what is said of the others changes nothing here.
var options = []string{"cache", "persist", "remote", "push", "desc", "type", "labels", "meta", "checkpoint", "x", "y",
	"title", "template", "x_label", "y_label", "header", "hash", "files"}

// paths are those of a list, each with its options or without.
func (r *reader) paths(list *yaml.Node, folder, field string) (all []string) {
	for _, n := range items(list) {
		switch {
		case n.Kind == yaml.ScalarNode && !isNull(n):
			all = append(all, joined(folder, n.Value))
		case n.Kind == yaml.MappingNode && !strings.HasSuffix(field, ".deps"):
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := n.Content[i]
				if slices.Contains(options, name.Value) && len(n.Content) > 2 {
					r.wrong(name, field, "has "+name.Value+" beside a path", "move it two more spaces to the right, below the path")
					continue
				}
				r.options(n.Content[i+1], join(field, name.Value))
				all = append(all, joined(folder, name.Value))
			}
		default:
			r.wrong(n, field, "has an entry that is no path", "write one path in each line, behind a dash")
		}
	}
	return all
}

// joined is a path of a stage below the folder of the file. An address stays as it is: New refuses it.
func joined(folder, p string) string {
	if p == "" || strings.Contains(p, "://") || path.IsAbs(p) {
		return p
	}
	return path.Join(folder, strings.ReplaceAll(p, "\\", "/"))
}

func (r *reader) options(n *yaml.Node, field string) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map of options", "write cache: false and the like below the path")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch name, v := n.Content[i], n.Content[i+1]; {
		case !slices.Contains(options, name.Value):
			r.wrong(name, join(field, name.Value), "is no option of an out", "leave it out")
		case name.Value == "persist" && r.truth(v, join(field, "persist")):
			r.note("%s: persist is left out: a stage begins without what an earlier run has made", field)
		case name.Value == "checkpoint" && r.truth(v, join(field, "checkpoint")):
			r.wrong(name, join(field, "checkpoint"), "is not supported", "write checkpoint: {dir: …} in the stage")
		case name.Value == "remote":
			r.note("%s: remote is left out: outs are kept where scrimp keeps them", field)
		}
	}
}

// reports adds plots, metrics and examples to the outs of a stage, unless they lie in one. Gates read the metrics that
// are JSON.
func (r *reader) reports(x *stage, plots, metrics []string) {
	for _, m := range slices.Concat(plots, metrics, examplesOf(x)) {
		if !slices.ContainsFunc(x.Outs, func(o string) bool { return o == m || strings.HasPrefix(m, o+"/") }) {
			x.Outs = append(x.Outs, m)
		}
	}
	for _, m := range metrics {
		if path.Ext(m) == ".json" {
			x.Metrics = append(x.Metrics, m)
		} else {
			r.note("%s of %s is kept, but only JSON is read for gates", m, x.Name)
		}
	}
}

func (r *reader) truth(v *yaml.Node, field string) bool {
	if v.Kind == yaml.ScalarNode && (v.Value == "true" || v.Value == "false") {
		return v.Value == "true"
	}
	r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), "write true or false")
	return false
}
