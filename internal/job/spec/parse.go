package spec

import (
	"errors"
	"io"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Problem is an error in a job file.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // 0 without a location
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"` // path such as resources.cpus
	Cause  string `json:"cause"`
	Fix    string `json:"fix,omitempty"`
}

func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += ":" + strconv.Itoa(p.Line)
	}
	text := ""
	if at != "" {
		text = at + ": "
	}
	if p.Field != "" {
		text += "`" + p.Field + "` "
	}
	text += p.Cause
	if p.Fix != "" {
		text += ": " + p.Fix
	}
	return text
}

// Problems lists all errors of a job file.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// MaxText bounds a job file, in bytes: it is short.
const MaxText = 1 << 20

// Limits of the input besides: aliases must not make it long.
const (
	maxNodes    = 100_000
	maxProblems = 50
)

// Parse parses a job file for the use u. name is the default name of the job; if it is empty, the default is the
// program's name. now is the market time, for the deadline; its location is the zone of a deadline that names none, and
// time.UTC refuses such a deadline. Parse returns all errors together as Problems, including
// fields that u does not honour. Settings replace fields of the file.
func Parse(u Use, file string, text []byte, name string, now time.Time, settings ...Setting) (Job, []Note, error) {
	r := reader{file: path.Base(file), at: map[string]place{}}
	root, problem := document(text)
	if problem != nil {
		problem.File = r.file
		return Job{}, nil, Problems{*problem}
	}
	return parse(u, r, root, name, now, settings...)
}

// parse builds a job from the fields below root.
func parse(u Use, r reader, root *yaml.Node, name string, now time.Time, settings ...Setting) (Job, []Note, error) {
	var j Job
	r.value(root, reflect.ValueOf(&j).Elem(), "", "")
	r.set(&j, settings)
	if _, said := r.at["name"]; j.Name == "" && !said {
		if name == "" {
			name = ofProgram(j)
		}
		j.Name = Label(name)
	}
	j.Deadline = j.Deadline.Local(now.Location())
	r.judge(j, u, now, settings)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return j, nil, r.problems
	}
	j.normalize()
	return j, notes(j, u), nil
}

// Validate returns the errors of a job that did not come from a file, as Problems without lines. now is market time.
func (j Job) Validate(now time.Time) error {
	if p := check(j, now); len(p) > 0 {
		return p
	}
	return nil
}

// yamlLine finds the location in an error of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the only mapping of the text.
func document(text []byte) (*yaml.Node, *Problem) {
	const first = "scrimp init writes a first one"
	if len(text) > MaxText {
		return nil, &Problem{Cause: "is larger than 1 MiB", Fix: "keep what is large in the work folder"}
	}
	if at := slices.Index(text, 0); at >= 0 {
		return nil, &Problem{Cause: "holds a zero byte, so it is no text", Fix: "give the job file itself"}
	}
	var doc yaml.Node
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, &Problem{Cause: "is empty", Fix: first}
	}
	if err != nil {
		return nil, notYAML(err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, &Problem{Cause: "holds no job", Fix: first}
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, &Problem{Line: root.Line, Column: root.Column, Cause: "is not a map of fields",
			Fix: "write one field a line, name: value"}
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, notYAML(err)
	default:
		return nil, &Problem{Line: second.Line, Cause: "holds several documents",
			Fix: "keep one job a file, without a line of ---"}
	}
	return root, nil
}

func notYAML(err error) *Problem {
	m := yamlLine.FindStringSubmatch(err.Error())
	p := &Problem{Cause: "is not YAML (" + strings.TrimPrefix(err.Error(), "yaml: ") + ")",
		Fix: "look at the indentation, and quote a value that holds `: ` or ` #`"}
	if m != nil && m[1] != "" {
		p.Line, _ = strconv.Atoi(m[1])
		p.Cause = "is not YAML (" + err.Error()[len(m[0]):] + ")"
	}
	return p
}

// Label makes a name of letters, digits and dashes from any text.
func Label(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	label := strings.Trim(b.String(), "-")
	if len(label) > MaxName {
		label = strings.Trim(label[:MaxName], "-")
	}
	if label == "" {
		return "job"
	}
	return label
}
