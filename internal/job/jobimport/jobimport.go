// Package jobimport converts job files of other systems to scrimp's own: SkyPilot tasks, dstack tasks and sbatch
// scripts. It lists every field without an equivalent, with the reason.
package jobimport

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/job/jobimport/slurm"
	"scrimp/internal/job/spec"
)

// System is the system that a file belongs to.
type System string

// The supported systems.
const (
	SkyPilot System = "SkyPilot"
	Dstack   System = "dstack"
	Slurm    System = "Slurm"
)

// Result is a converted file.
type Result struct {
	System System
	YAML   []byte   // a job file that spec.Parse accepts, with comments
	Job    spec.Job // the job in YAML
	Lost   []Lost   // in line order
}

// Lost is a field that could not be converted.
type Lost struct {
	Field string `json:"field"` // the file's own name: resources.image_id, --array
	Why   string `json:"why"`
	Line  int    `json:"line"` // line in the source file, from 1
}

func (l Lost) String() string { return fmt.Sprintf("line %d: `%s`: %s", l.Line, l.Field, l.Why) }

// Convert converts a job file of another system, which it detects. A file that it cannot identify, or that does not
// hold exactly one job, is an error.
func Convert(file string, text []byte) (Result, error) { return ConvertTo(file, "job.yaml", text) }

// ConvertTo converts as Convert does; advice names the job file as to.
func ConvertTo(file, to string, text []byte) (Result, error) {
	base := path.Base(file)
	stem := strings.TrimSuffix(strings.TrimSuffix(base, path.Ext(base)), ".dstack")
	if stem == "" || stem == "task" || stem == "job" {
		stem = path.Base(path.Dir(file))
	}
	d := newDraft(stem)
	d.to = to
	system, err := d.read(base, string(text))
	if err != nil {
		return Result{}, fmt.Errorf("convert %s: %w", base, err)
	}
	slices.SortStableFunc(d.lost, func(a, b Lost) int { return a.Line - b.Line })
	out, err := d.write(system, base)
	if err != nil {
		return Result{}, fmt.Errorf("convert %s: %w", base, err)
	}
	// The time matters only for deadlines, and no draft has one.
	j, _, err := spec.Parse(spec.Run, "job.yaml", out, stem, time.Time{})
	if err != nil {
		return Result{}, fmt.Errorf("convert %s: %w", base, node.InSource(err, base, out, text))
	}
	return Result{System: system, YAML: out, Job: j, Lost: d.lost}, nil
}

// read detects the system of the file and reads it into the draft.
func (d *draft) read(base, text string) (System, error) {
	if slurm.IsScript(text) {
		return Slurm, d.slurm(base, text)
	}
	root, err := mapping(text)
	if err != nil {
		return "", err
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return node.Find(root, k) != nil })
	}
	switch {
	case has("command"):
		return "", errors.New("it has a command, so it is scrimp's own form already: run it with scrimp run")
	case has("commands") || has("type") && !has("run"):
		return Dstack, d.dstack(root)
	case has("run", "num_nodes", "envs", "file_mounts", "setup") || has("resources"):
		return SkyPilot, d.skypilot(root)
	}
	return "", errors.New("it is neither a SkyPilot task (run:), nor a dstack task (type: task), nor an sbatch " +
		"script (#SBATCH)")
}

// mapping returns the only map of a YAML file.
func mapping(text string) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var docs []*yaml.Node
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, fmt.Errorf("it is neither an sbatch script nor YAML: %w", err)
		}
		if len(doc.Content) > 0 && doc.Content[0].Kind == yaml.MappingNode {
			docs = append(docs, doc.Content[0])
		} else if len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" {
			return nil, errors.New("it is not a map of fields")
		}
	}
	switch {
	case len(docs) == 0:
		return nil, errors.New("it is empty")
	case len(docs) > 1 && len(docs[0].Content) == 2 && node.Find(docs[0], "name") != nil, len(docs) > 2:
		return nil, errors.New("it is a pipeline of several tasks: convert each by itself, from a file of its own")
	case len(docs) > 1:
		return nil, errors.New("it holds several documents: keep one a file")
	}
	return docs[0], nil
}

// Detect returns the other system whose job file a text is. It returns false for scrimp's own job files, and for what
// it cannot identify.
func Detect(text string) (System, bool) {
	if slurm.IsScript(text) {
		return Slurm, true
	}
	root, err := mapping(text)
	if err != nil {
		return "", false
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return node.Find(root, k) != nil })
	}
	switch {
	case has("command", "args"):
		return "", false
	case has("commands") || has("type") && !has("run"):
		return Dstack, true
	case has("run", "num_nodes", "envs", "file_mounts"):
		return SkyPilot, true
	}
	return "", false
}
