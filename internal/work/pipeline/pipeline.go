// Package pipeline defines pipelines: stages, each a job, with their inputs and outputs. A stage's key identifies
// everything that its outputs depend on, so that outputs are not made twice.
package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"scrimp/internal/work/pipeline/order"
	"scrimp/internal/work/pipeline/workpath"
)

// Spec is a pipeline. Each stage follows those that it needs.
type Spec struct {
	Stages []Stage `json:"stages"`
	// Data lists the paths of which the samples take a part; empty: those that look like data.
	Data []string `json:"data,omitempty"`
}

// Stage is a job of a pipeline. Paths are relative to the work folder and use slashes.
type Stage struct {
	Name  string   `json:"name"`
	After []string `json:"after,omitempty"` // predecessors in addition to those whose outputs it reads
	Deps  []string `json:"deps,omitempty"`  // its input files and folders; empty for the whole work folder
	Outs  []string `json:"outs,omitempty"`  // its output files and folders
	// Metrics lists the outputs that are JSON files with reported figures.
	Metrics []string `json:"metrics,omitempty"`
	// Params holds further values that it reads, in JSON.
	Params map[string]string `json:"params,omitempty"`
	Always bool              `json:"always,omitempty"` // it runs each time, regardless of earlier runs
	Gate   *Gate             `json:"gate,omitempty"`
	// Gates are the gates of a stage that has several; all of them must pass. Gate is then nil.
	Gates []Gate `json:"gates,omitempty"`
	// Examples is the file of Outs with the value that each example has for the metrics; "": there is none.
	Examples string `json:"examples,omitempty"`
	// Deploy says that the stage puts a version of the model in place. Without it the stage named deploy does.
	Deploy bool `json:"deploy,omitempty"`
	// Drift lets the stage begin only if a file has drifted from a reference; nil: it begins without.
	Drift *Drift `json:"on_drift,omitempty"`
	// Warm lets the stage begin with what the deployed version has made; nil: it begins from scratch.
	Warm *Warm `json:"warm_start,omitempty"`
	// Program is the digest of everything else that affects its outputs: command, environment, image and setup.
	Program string `json:"program,omitempty"`
	// Needs lists the positions of its predecessors: those of After, those that make its inputs, and the one that its
	// gate names.
	Needs []int `json:"needs,omitempty"`
	// Sample is the part of the data that the stage works on, a decimal below 1; "": all of it. Of is then the name of the
	// stage whose sample it is. Stages read only what stages on the same part have made.
	Sample string `json:"sample,omitempty"`
	Of     string `json:"of,omitempty"`
}

// The bounds of pipelines.
const (
	MaxStages = 10_000
	MaxPaths  = 1000      // of one stage's deps, outs, params or after
	MaxText   = 4096      // bytes of a path or of a parameter's value
	MaxNeeds  = 1_000_000 // total number of dependencies
	maxName   = 100
	maxShown  = 10 // stages of a cycle that its problem names
)

// Problem is an error in a pipeline with its location.
type Problem struct {
	Stage string // its name; empty for the whole pipeline
	Field string // deps, outs, … of the stage
	Err   error
}

func (p *Problem) Error() string {
	where := "stages"
	if p.Stage != "" {
		where += "." + p.Stage
	}
	if p.Field != "" {
		where += "." + p.Field
	}
	return where + ": " + p.Err.Error()
}

func (p *Problem) Unwrap() error { return p.Err }

// wrong returns a Problem of the stage. The text says what is wrong with the field and how to fix it.
func (s *Stage) wrong(field, format string, a ...any) error {
	return &Problem{s.Name, field, fmt.Errorf(format, a...)}
}

var stageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_@.-]*$`)

// New sorts stages so that each follows those that it needs, and otherwise keeps their order. The error is a *Problem.
func New(stages []Stage) (*Spec, error) {
	if len(stages) == 0 {
		return nil, &Problem{Err: errors.New("there are none: write one at least")}
	}
	if len(stages) > MaxStages {
		return nil, &Problem{Err: fmt.Errorf("there are %d: write at most %d", len(stages), MaxStages)}
	}
	list := slices.Clone(stages)
	byName, labels := map[string]int{}, map[string]string{}
	for i := range list {
		s := &list[i]
		if err := s.check(); err != nil {
			return nil, err
		}
		if _, twice := byName[s.Name]; twice {
			return nil, &Problem{s.Name, "", errors.New("two stages have that name: rename one")}
		}
		if other, twice := labels[s.Label()]; twice {
			return nil, &Problem{s.Name, "", fmt.Errorf("the name differs from %s by signs only: rename one", other)}
		}
		byName[s.Name], labels[s.Label()] = i, s.Name
	}
	if err := needs(list, byName); err != nil {
		return nil, err
	}
	sorted, err := ordered(list)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(list))
	for to, from := range sorted {
		at[from] = to
	}
	spec := &Spec{Stages: make([]Stage, len(list))}
	for to, from := range sorted {
		s := list[from]
		for i, n := range s.Needs {
			s.Needs[i] = at[n]
		}
		slices.Sort(s.Needs)
		spec.Stages[to] = s
	}
	if err := spec.checkGates(); err != nil {
		return nil, err
	}
	if err := spec.checkWarms(); err != nil {
		return nil, err
	}
	return spec, nil
}

// Label returns the stage's name in the form of its job's name: lower-case letters, digits and dashes.
func (s *Stage) Label() string { return Label(s.Name) }

// Label returns a stage's name in the form of its job's name.
func Label(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, name), "-")
}

func (s *Stage) check() error {
	switch {
	case len(s.Name) > maxName || !stageName.MatchString(s.Name):
		return s.wrong("", "the name has to be 1 to %d letters, digits, dashes, dots, @ and underscores, the first a letter "+
			"or a digit", maxName)
	case len(s.After) > MaxPaths || len(s.Deps) > MaxPaths || len(s.Outs) > MaxPaths || len(s.Params) > MaxPaths:
		return s.wrong("", "give at most %d entries of each kind", MaxPaths)
	}
	for _, f := range []struct {
		name string
		list *[]string
	}{{"deps", &s.Deps}, {"outs", &s.Outs}, {"metrics", &s.Metrics}} {
		clean, err := workpath.CleanAll(*f.list)
		if err != nil {
			return s.wrong(f.name, "%w", err)
		}
		*f.list = clean
	}
	if err := workpath.Overlap(s.Outs, s.Deps); err != nil {
		return s.wrong("outs", "%w", err)
	}
	if err := s.checkExamples(); err != nil {
		return s.wrong("examples", "%w", err)
	}
	if err := s.checkDrift(); err != nil {
		return s.wrong("on_drift", "%w", err)
	}
	if err := s.checkWarm(); err != nil {
		return s.wrong("warm_start", "%w", err)
	}
	for _, m := range s.Metrics {
		if !workpath.Within(s.Outs, m) {
			return s.wrong("metrics", "%s is none of its outs", m)
		}
	}
	return s.checkParams()
}

func (s *Stage) checkParams() error {
	for name, v := range s.Params {
		if name == "" || len(name) > MaxText || len(v) > MaxText || !json.Valid([]byte(v)) || !utf8.ValidString(name+v) {
			return s.wrong("params", "%.60q: give a value of JSON of at most %d bytes", name, MaxText)
		}
	}
	return nil
}

// needs finds out which stages come before which. Stages are in the order in which they were written.
func needs(list []Stage, byName map[string]int) error {
	m, err := makersOf(list)
	if err != nil {
		return err
	}
	for i, sum := 0, 0; i < len(list); i++ {
		s := &list[i]
		s.Needs = nil
		for _, name := range s.After {
			n, there := byName[name]
			switch {
			case !there:
				return s.wrong("after", "there is no stage %s", name)
			case n == i:
				return s.wrong("after", "it comes after itself")
			}
			s.Needs = append(s.Needs, n)
		}
		for _, g := range s.All() {
			if n := named(list, byName, &g); n >= 0 && n != i {
				s.Needs = append(s.Needs, n)
			}
		}
		for _, d := range slices.Concat(s.Deps, s.Drift.Files()) {
			s.Needs = append(s.Needs, m.of(d)...)
		}
		slices.Sort(s.Needs)
		s.Needs = slices.Compact(s.Needs)
		if sum += len(s.Needs); sum > MaxNeeds {
			return s.wrong("deps", "with it, stages need others more than %d times: let one stage gather "+
				"what many make, and read what that one makes", MaxNeeds)
		}
	}
	return nil
}

// makers are the stages that make paths.
type makers struct {
	at    map[string]int   // by path
	below map[string][]int // by folder: those that make something in it
}

// makersOf finds out which stage makes which path. No two stages make the same path, or one within another.
func makersOf(list []Stage) (makers, error) {
	m := makers{map[string]int{}, map[string][]int{}}
	for i := range list {
		for _, o := range list[i].Outs {
			if other, twice := m.at[o]; twice {
				return m, list[i].wrong("outs", "%s is made by %s too", o, list[other].Name)
			}
			m.at[o] = i
		}
	}
	for i := range list {
		for _, o := range list[i].Outs {
			for up := path.Dir(o); up != "."; up = path.Dir(up) {
				if other, within := m.at[up]; within {
					return m, list[i].wrong("outs", "%s lies in %s, which %s makes", o, up, list[other].Name)
				}
				m.below[up] = append(m.below[up], i)
			}
		}
	}
	return m, nil
}

// of lists the stages that make a path, a folder above it, or something in it.
func (m *makers) of(p string) (list []int) {
	if n := m.maker(p); n >= 0 {
		list = append(list, n)
	}
	return append(list, m.below[p]...)
}

// maker is the stage that makes a path or a folder above it, or -1.
func (m *makers) maker(p string) int {
	for up := p; up != "."; up = path.Dir(up) {
		if n, made := m.at[up]; made {
			return n
		}
	}
	return -1
}

// ordered returns the positions of stages so that each follows those that it needs.
func ordered(list []Stage) ([]int, error) {
	sorted, cycle := order.Of(len(list), func(at int) []int { return list[at].Needs })
	if cycle == nil {
		return sorted, nil
	}
	var names []string
	for _, n := range cycle {
		names = append(names, list[n].Name)
	}
	if len(names) > maxShown {
		names[maxShown-1] = fmt.Sprintf("%d others, of which the last", len(names)-maxShown)
		names = slices.Delete(names, maxShown, len(names)-1)
	}
	return nil, &Problem{names[0], "", fmt.Errorf("the stages wait for each other: %s", strings.Join(names, " needs "))}
}

// Find returns the position of a stage by its name or label, or -1.
func (s *Spec) Find(name string) int {
	return slices.IndexFunc(s.Stages, func(x Stage) bool { return x.Name == name || x.Label() == name })
}

// Reads returns the positions of the stages whose outputs a stage reads.
func (s *Spec) Reads(stage int) (list []int) {
	for _, n := range s.Stages[stage].Needs {
		if s.Stages[n].Sample == s.Stages[stage].Sample && slices.ContainsFunc(s.Stages[n].Outs, s.Stages[stage].Takes) {
			list = append(list, n)
		}
	}
	return list
}

// Takes reports whether a stage reads some of a path: one that it names, or any path if it names none.
func (s *Stage) Takes(out string) bool { return len(s.Deps) == 0 || workpath.Touch(s.Deps, out) }

// Content is the content of a path: its digest, or "" if nothing exists.
type Content struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// Key identifies everything that a stage's outputs depend on: the content of all inputs, its parameters, its program,
// and the output paths. inputs has one entry per path of Deps, or the whole work folder as ".". The order of inputs and
// outputs does not matter.
func (s *Stage) Key(inputs []Content) string {
	inputs = append([]Content{}, inputs...) // an empty list and nil have the same form
	slices.SortFunc(inputs, func(a, b Content) int { return cmp.Compare(a.Path, b.Path) })
	outs, params := append([]string{}, s.Outs...), s.Params
	slices.Sort(outs)
	if params == nil {
		params = map[string]string{}
	}
	text, _ := json.Marshal(struct {
		Form    int               `json:"form"`
		Program string            `json:"program"`
		Inputs  []Content         `json:"inputs"`
		Params  map[string]string `json:"params"`
		Outs    []string          `json:"outs"`
		Sample  string            `json:"sample,omitempty"`
	}{1, s.Program, inputs, params, outs, s.Sample}) // only strings
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
