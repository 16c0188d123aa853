package jobimport

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/job/spec"
)

// draft collects the fields of the job file.
type draft struct {
	to        string // the job file as commands name it
	name      string
	command   string // for sh -c
	script    string // for bash -c, if sh would not understand it
	args      []string
	setup     string
	workdir   string
	image     string
	env       map[string]string
	secrets   []string
	resources *yaml.Node
	choices   []choice // the job may run on any of them
	kinds     []string // accelerators that suit a choice without one
	ordered   bool     // the choices or the kinds are in order of preference
	nodes     string
	maxPrice  string
	wallClock string
	retry     *yaml.Node
	signal    string
	grace     string
	idle      string
	priority  string
	team      string
	project   string
	tags      map[string]string
	data      []*yaml.Node
	remarks   map[string]string // comments on fields
	capacity  string            // comment on a capacity that the job does not name
	lost      []Lost
}

// A choice is one of several sets of resources that a file allows.
type choice struct {
	resources *yaml.Node
	kinds     []string // accelerators; the job needs one of them
}

// alternatives returns the resources of the first choice as the job's own, and the others as alternatives. The job's
// own resources count as a choice, so they must name an accelerator, or the job could run on machines without one. An
// alternative replaces the job's resources, so each repeats the common ones.
func (d *draft) alternatives() (resources *yaml.Node, others, rungs []*yaml.Node) {
	choices := d.choices
	if len(choices) == 0 {
		choices = []choice{{resources: node.Object()}}
	}
	var all []*yaml.Node
	for _, c := range choices {
		r := node.Object(slices.Clone(c.resources.Content)...)
		node.Each(d.resources, func(key, v *yaml.Node) {
			if node.Find(r, key.Value) == nil && (key.Value != "accelerator" || len(c.kinds) == 0) {
				node.Set(r, key.Value, v)
			}
		})
		kinds := c.kinds
		if len(kinds) == 0 && node.Find(r, "accelerator") == nil {
			kinds = d.kinds
		}
		for _, kind := range kinds {
			with := node.Object(slices.Clone(r.Content)...)
			node.Set(with, "accelerator", node.Text(kind))
			all = append(all, with)
		}
		if len(kinds) == 0 {
			all = append(all, r)
		}
	}
	if len(all) == 1 {
		return all[0], nil, nil
	}
	rungs = append(rungs, node.Flow(node.Object(node.Text("capacity"), node.Text(spec.AnyCapacity))))
	for i, r := range all[1:] {
		name := fmt.Sprintf("choice-%d", i+2)
		others = append(others, node.Object(node.Text("name"), node.Text(name), node.Text("resources"), r))
		rungs = append(rungs, node.Flow(node.Object(node.Text("use"), node.Text(name))))
	}
	if !d.ordered {
		rungs = nil
	}
	return all[0], others, rungs
}

func newDraft(name string) *draft {
	return &draft{name: spec.Label(name), env: map[string]string{}, tags: map[string]string{},
		remarks: map[string]string{}, resources: node.Object()}
}

func (d *draft) lose(n *yaml.Node, field, why string) {
	d.lost = append(d.lost, Lost{Field: field, Why: why, Line: n.Line})
}

// onNodes sets the number of machines that each run the commands.
func (d *draft) onNodes(n string) {
	if n != "1" {
		d.nodes = n
	}
}

// otherwiseOnDemand adds a remark to a job without a capacity: what the other system takes then, and what scrimp does.
func (d *draft) otherwiseOnDemand(said string) {
	lacks := func(c choice) bool { return node.Find(c.resources, "capacity") == nil }
	if !lacks(choice{resources: d.resources}) || len(d.choices) > 0 && !slices.ContainsFunc(d.choices, lacks) {
		return
	}
	d.capacity = said + "; without resources.capacity scrimp takes what is cheapest and in time, spot too."
}

// inImage sets the container image of the program, if the text is one.
func (d *draft) inImage(image string) bool {
	if !spec.IsImage(image) {
		return false
	}
	d.image = image
	d.remarks["image"] = "Only engines whose machines are containers (Kubernetes) take it. Elsewhere leave it out, and " +
		"put what it holds into setup."
	return true
}

// bashOnly matches text that plain sh does not understand.
var bashOnly = regexp.MustCompile(
	`(?m)\[\[|^\s*source\s|<\(|\bpipefail\b|\bdeclare\s|\bconda activate\b|\w=\(|\$\{\w+(\[|//|\^|,,)|\bfunction\s|&>`)

// run sets the program. It uses bash for text that only bash understands.
func (d *draft) run(text string) {
	text = strings.TrimRight(text, "\n ")
	if bashOnly.MatchString(text) {
		d.script = text
	} else {
		d.command = text
	}
}

// prepare adds setup commands, which run under sh.
func (d *draft) prepare(text string) {
	text = strings.TrimRight(text, "\n ")
	if bashOnly.MatchString(text) {
		text = "bash /dev/fd/3 3<<'SETUP'\n" + text + "\nSETUP"
	}
	d.setup = text
}

// write renders the draft as a job file.
func (d *draft) write(system System, base string) ([]byte, error) {
	if d.command == "" && d.script == "" && len(d.args) == 0 {
		return nil, fmt.Errorf("it runs nothing, so there is no job in it")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Converted from %s, a file of %s.\n", base, system)
	if len(d.lost) > 0 {
		out.WriteString("# Not carried over:\n")
		for _, l := range d.lost {
			fmt.Fprintf(&out, "#   %s\n", strings.ReplaceAll(l.String(), "\n", " "))
		}
	}
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(d.fields()); err != nil {
		return nil, fmt.Errorf("write the job file: %w", err)
	}
	out.WriteString("\n# What the other file could not say. The folder makes interruptions cheap, the rest is held " +
		"by scrimp:\n# checkpoint: {dir: checkpoints}\n# deadline: in 24h\n")
	if d.wallClock == "" {
		out.WriteString("# budget: $30\n")
	} else {
		fmt.Fprintf(&out, "# budget: {dollars: $30, wall_clock: %s}\n", d.wallClock)
	}
	return out.Bytes(), nil
}

// fields returns the non-empty fields of the job file, in the order of the reference.
func (d *draft) fields() *yaml.Node {
	root := node.Object()
	resources, others, rungs := d.alternatives()
	at := "resources"
	if len(resources.Content) == 0 {
		at = "command"
	}
	d.remarks[at] = strings.TrimSpace(d.remarks[at] + " " + d.capacity)
	put := func(key string, v *yaml.Node) {
		if v == nil || (v.Kind == yaml.MappingNode || v.Kind == yaml.SequenceNode) && len(v.Content) == 0 {
			return
		}
		k := node.Text(key)
		if remark := d.remarks[key]; remark != "" {
			k.HeadComment = "# " + remark
		}
		root.Content = append(root.Content, k, v)
	}
	one := func(key, value string) {
		if value != "" {
			put(key, node.Text(value))
		}
	}
	one("name", d.name)
	switch {
	case d.script != "":
		put("command", node.List(node.Text("bash"), node.Text("-c"), node.Text(d.script)))
	case len(d.args) > 0:
		put("command", node.Flow(node.List(node.Texts(d.args)...)))
	default:
		one("command", d.command)
	}
	one("setup", d.setup)
	one("workdir", d.workdir)
	one("image", d.image)
	put("env", node.Object(node.Pairs(d.env)...))
	slices.Sort(d.secrets)
	put("secrets", node.Flow(node.List(node.Texts(slices.Compact(d.secrets))...)))
	put("data", node.List(d.data...))
	put("resources", resources)
	put("any_of", node.List(others...))
	put("ladder", node.List(rungs...))
	one("nodes", d.nodes)
	one("max_price", d.maxPrice)
	if d.wallClock != "" {
		put("budget", node.Object(node.Text("wall_clock"), node.Text(d.wallClock)))
	}
	put("retry", d.retry)
	one("signal", d.signal)
	one("grace", d.grace)
	one("idle", d.idle)
	one("priority", d.priority)
	one("team", d.team)
	one("project", d.project)
	put("tags", node.Object(node.Pairs(d.tags)...))
	return root
}
