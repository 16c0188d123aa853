package terms_test

import (
	"encoding"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/terms"
)

var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// readers names, for each field that the core does not use, the file that uses it and the expression there.
var readers = map[string][2]string{
	"command": {"server/agents/assign.go", "j.Command"}, "args": {"server/agents/assign.go", "j.Args"},
	"workdir": {"cli/jobfile/jobfile.go", "j.Workdir"},
	"env":     {"server/agents/assign.go", "j.Env"}, "inherit": {"server/agents/assign.go", "j.Inherit"}, "secrets": {"cli/submit/submit.go", "jobfile.Secrets(j.Secrets)"},
	"outputs": {"server/agents/assign.go", "j.Outputs"}, "signal": {"server/agents/assign.go", "j.Signal"},
	"any_of.env": {"server/agents/assign.go", "v.Env"}, "any_of.args": {"server/agents/assign.go", "v.Args"},

	"checkpoint.keep":      {"server/agents/assign.go", "j.Checkpoint.Keep"},
	"checkpoint.ranks":     {"server/agents/assign.go", "j.Checkpoint.AllRanks"},
	"checkpoint.best":      {"server/agents/assign.go", "j.Checkpoint.Best"},
	"checkpoint.every_nth": {"server/agents/assign.go", "j.Checkpoint.EveryNth"},
	"checkpoint.given":     {"decide/runhistory/runhistory.go", "j.Checkpoint.Given"},
	"checkpoint.store":     {"server/agents/assign.go", "j.Checkpoint.Store"},
	"progress.pattern":     {"server/agents/assign.go", "j.Progress.Pattern"},
	"progress.saved":       {"server/agents/assign.go", "j.Progress.Saved"},
	"progress.file":        {"server/agents/assign.go", "j.Progress.File"},

	"data.path": {"server/terms/reads.go", "d.Path"}, "data.region": {"server/terms/reads.go", "d.Region"},
	"data.size": {"server/terms/reads.go", "d.Size"}, "data.stream": {"server/agents/assign.go", "x.Stream"},
	"model.config": {"decide/runhistory/row.go", "m.Config"},
	"model.layers": {"decide/runhistory/row.go", "m.Layers"},
	"model.hidden": {"decide/runhistory/row.go", "m.Hidden"}, "model.sequence": {"decide/runhistory/row.go", "m.Sequence"},
	"model.batch": {"decide/runhistory/row.go", "m.Batch"}, "model.precision": {"decide/runhistory/row.go", "m.Precision"},
	"model.tuning": {"decide/runhistory/row.go", "m.Tuning"}, "model.features": {"decide/runhistory/row.go", "m.Features"},
	"model.sharding":                 {"server/agents/assign.go", "m.Sharding"},
	"model.tensor_parallel":          {"server/agents/assign.go", "m.Tensor"},
	"model.pipeline_parallel":        {"server/agents/assign.go", "m.Pipeline"},
	"model.activation_checkpointing": {"server/agents/assign.go", "m.Checkpointing"},
	"work.epochs":                    {"decide/runhistory/row.go", "j.Work.Epochs"}, "work.samples": {"decide/runhistory/row.go", "j.Work.Samples"},
	"work.tokens": {"decide/runhistory/row.go", "j.Work.Tokens"},
}

// Every field of a job file changes the terms, is used by a named file, or is refused: none is ignored.
func TestJobFile_EveryFieldIsHonouredOrRefused(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	leaves(reflect.TypeFor[spec.Job](), nil, "", func(name string, path []int, f reflect.StructField) {
		seen[name] = true
		var j, without spec.Job
		made, plain := group(reflect.ValueOf(&j).Elem(), path), group(reflect.ValueOf(&without).Elem(), path)
		if !fill(made, f.Tag) || reflect.DeepEqual(made.Interface(), plain.Interface()) {
			t.Errorf("%s: no value of it is known here", name)
			return
		}
		told := func(j spec.Job) string {
			return fmt.Sprintf("%+v", terms.Of(j, now, func(d time.Duration) time.Duration { return d }, nil))
		}
		refused := slices.ContainsFunc(j.Refused(spec.Run), func(p spec.Problem) bool {
			return withoutIndex(p.Field) == name
		})
		reader, named := readers[name]
		changes := told(j) != told(without)
		switch {
		case named:
			text, err := os.ReadFile("../../" + reader[0])
			if err != nil || !strings.Contains(string(text), reader[1]) {
				t.Errorf("%s: internal/%s does not read %s (%v)", name, reader[0], reader[1], err)
			}
			if changes || refused {
				t.Errorf("%s: it needs no reader here: the core is told of it, or it is refused", name)
			}
		case changes == refused && name != "nodes": // more than one node is refused at submission
			t.Errorf("%s: the core is told of it: %v, it is refused: %v; one of the two, or name what reads it", name, changes,
				refused)
		}
	})
	for name := range readers {
		if !seen[name] {
			t.Errorf("%s is no field any more", name)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d fields were looked at", len(seen))
	}
}

func withoutIndex(field string) string { return strings.ReplaceAll(field, "[0]", "") }

var text = reflect.TypeFor[encoding.TextUnmarshaler]()

// leaves calls f for each field below t that is not a group, with its name in the file and its index path.
func leaves(t reflect.Type, path []int, name string, f func(name string, path []int, field reflect.StructField)) {
	for i := range t.NumField() {
		field := t.Field(i)
		own, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		own = strings.TrimPrefix(name+"."+own, ".")
		at := append(slices.Clone(path), i)
		inner := field.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !reflect.PointerTo(inner).Implements(text) {
			leaves(inner, at, own, f)
			continue
		}
		f(own, at, field)
	}
}

// group returns the field at path, and adds an element to each list on the way.
func group(v reflect.Value, path []int) reflect.Value {
	for _, i := range path {
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			v = v.Index(0)
		}
		v = v.Field(i)
	}
	return v
}

// fill sets a value other than the default.
func fill(v reflect.Value, tag reflect.StructTag) bool {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), tag)
	}
	eg := strings.TrimPrefix(tag.Get("eg"), "$")
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(eg)) == nil
	}
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), tag)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v"}))
	case reflect.String:
		words := strings.Split(tag.Get("enum"), ",")
		at := slices.IndexFunc(words, func(w string) bool { return w != tag.Get("default") })
		if v.SetString(words[max(at, 0)]); tag.Get("enum") == "" {
			v.SetString(eg)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(tag.Get("default") != "true")
	default:
		return false
	}
	return true
}

// Ranges in the job file become ranges in the requirements.
func TestNeed_KeepsRanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{cpus: 4}":                "4 4 0 0  0 0",
		"{cpus: 4+}":               "4 0 0 0  0 0",
		"{cpus: 4..16}":            "4 16 0 0  0 0",
		"{memory: 1..2MiB}":        "0 0 1048576 2097152  0 0",
		"{memory: 1MiB}":           "0 0 1048576 1048576  0 0",
		"{accelerator: H100}":      "0 0 0 0 H100 1 1",
		"{accelerator: H100:8}":    "0 0 0 0 H100 8 8",
		"{accelerator: H100:2+}":   "0 0 0 0 H100 2 0",
		"{accelerator: H100:1..8}": "0 0 0 0 H100 1 8",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nresources: "+text+"\n"), "j", now)
		n := terms.Need(j)
		got := fmt.Sprint(n.CPUs, n.MaxCPUs, n.Memory, n.MaxMemory, " "+n.Accelerator+" ", n.Accelerators, n.MaxAccelerators)
		if got = strings.Join(strings.Fields(got), " "); err != nil || got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: the planner is told %q (%v), want %q", text, got, err, want)
		}
	}
}
