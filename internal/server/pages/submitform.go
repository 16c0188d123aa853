package pages

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/job/spec"
)

// formField is a field of the form that describes a job.
type formField struct {
	Name, Label, Hint, Note string
	Value                   string
	Area                    bool     // takes several lines
	Options                 []option // choices; nil: any text
	Most                    int      // characters
	Wrong                   []client.JobProblem
	fields                  []string // fields of the job file that it sets
}

// formFields lists the fields of the form with the values of a request.
func formFields(f url.Values, teams []string) []formField {
	list := []formField{
		{Name: "name", Label: "Name", Hint: "train-lm", Most: 100, fields: []string{"name"}},
		{Name: "command", Label: "Command", Hint: "exec python3 train.py", Area: true, Most: 128 << 10,
			Note: "A shell runs it in the job's work folder.", fields: []string{"command"}},
		{Name: "image", Label: "Container image", Hint: "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", Most: 300,
			Note:   "For machines that run containers. Without one, the machine's own software runs the command.",
			fields: []string{"image"}},
		{Name: "accelerator", Label: "Accelerators", Hint: "A100:8, H100:1..8 or any:1", Most: 100,
			fields: []string{"resources.accelerator", "resources"}},
		{Name: "nodes", Label: "Machines", Hint: "1, or 2..4", Most: 20, fields: []string{"nodes"}},
		{Name: "capacity", Label: "Capacity", fields: []string{"resources.capacity"}, Options: []option{
			{Value: "", Text: "whatever is cheapest"}, {Value: "spot", Text: "spot only"},
			{Value: "on-demand", Text: "on-demand only"}}},
		{Name: "time", Label: "Time that it takes", Hint: "2h", Most: 40,
			Note:   "On a machine of speed 1. Without it, the cost comes from earlier runs of the name.",
			fields: []string{"work.time", "work"}},
		{Name: "checkpoint", Label: "Checkpoint folder", Hint: "checkpoints", Most: 300,
			Note: "Where the program saves. Without one, an interruption repeats everything.", fields: []string{"checkpoint"}},
		{Name: "deadline", Label: "Deadline", Hint: "in 6h, or 2026-12-01T18:00Z", Most: 60, fields: []string{"deadline"},
			Note: "A span, or a time with its zone: Z is UTC, +01:00 an offset from it."},
		{Name: "budget", Label: "Budget", Hint: "$25.00", Most: 40, fields: []string{"budget"}},
	}
	if len(teams) > 0 {
		of := formField{Name: "team", Label: "Team", fields: []string{"team"},
			Options: []option{{Value: "", Text: "your own"}}}
		for _, t := range teams {
			of.Options = append(of.Options, option{Value: t, Text: t})
		}
		list = append(list, of)
	}
	for i := range list {
		list[i].Value = strings.TrimSpace(strings.ReplaceAll(f.Get(list[i].Name), "\r\n", "\n"))
		for k := range list[i].Options {
			list[i].Options[k].Chosen = list[i].Options[k].Value == list[i].Value
		}
	}
	return list
}

// settings returns the values of the form as settings of job-file fields.
func settings(f []formField) (list []spec.Setting) {
	for _, of := range f {
		if of.Value != "" && of.Name != "command" {
			field := of.fields[0]
			switch of.Name {
			case "checkpoint":
				field = "checkpoint.dir"
			case "budget":
				field = "budget.dollars"
			}
			list = append(list, spec.Setting{Flag: field, Field: field, Text: of.Value})
		}
	}
	return list
}

// written returns the job file of a form.
func written(f []formField, now time.Time) (string, error) {
	command := ""
	for _, of := range f {
		if of.Name == "command" {
			command = of.Value
		}
	}
	quoted, err := json.Marshal(command)
	if err != nil {
		return "", err
	}
	text := append([]byte("command: "), quoted...)
	j, _, err := spec.Parse(spec.Run, "the form", text, "", now.UTC(), settings(f)...) // the server knows no reader's zone
	if err != nil {
		return "", err
	}
	out, err := j.YAML()
	return string(out), err
}

// blame puts each problem beside the field of the form that caused it. It returns the others.
func blame(f []formField, p *client.Problem) (others []client.JobProblem) {
	for _, one := range problemsOf(p) {
		at := slices.IndexFunc(f, func(of formField) bool {
			return slices.ContainsFunc(of.fields, func(path string) bool {
				return one.Field == path || strings.HasPrefix(one.Field, path+".")
			})
		})
		if at < 0 {
			others = append(others, one)
			continue
		}
		f[at].Wrong = append(f[at].Wrong, one)
	}
	return others
}

// problemsOf lists what is wrong, by field.
func problemsOf(p *client.Problem) []client.JobProblem {
	if len(p.Problems) > 0 {
		return p.Problems
	}
	return []client.JobProblem{{Field: p.Field, Line: p.Line, Cause: cmp.Or(p.Detail, p.Title), Fix: p.Fix}}
}

// WrongIn reports whether a problem is about one of the page's own fields: rerun or from.
func (p *submitPage) WrongIn(field string) bool {
	return slices.ContainsFunc(p.Wrong, func(one client.JobProblem) bool { return one.Field == field && one.Line == 0 })
}

// WrongFile reports whether a problem is about the job file.
func (p *submitPage) WrongFile() bool {
	return slices.ContainsFunc(p.Wrong, func(one client.JobProblem) bool {
		return one.Line > 0 || one.Field != "rerun" && one.Field != "from"
	})
}
