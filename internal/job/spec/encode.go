package spec

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Encode encodes the job for the log. It uses the names of the job file, so its output is a job file, too.
func (j Job) Encode() (json.RawMessage, error) { return json.Marshal(j) }

// Decode reads the output of Encode.
func Decode(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return j, fmt.Errorf("read a job: %w", err)
	}
	j.normalize()
	return j, nil
}

// normalize unifies values with two spellings.
func (j *Job) normalize() {
	if slices.Contains(j.Resources.Capacity, AnyCapacity) {
		j.Resources.Capacity = nil
	}
	for i := range j.AnyOf {
		if r := &j.AnyOf[i].Resources; slices.Contains(r.Capacity, AnyCapacity) {
			r.Capacity = nil
		}
	}
}

// Hash returns a hash of the job's content: jobs with the same value in every field have the same hash. It covers a
// fixed form of paths and values instead of JSON, and unset fields that are added later do not change it.
func (j Job) Hash() string {
	var lines []string
	visit(reflect.ValueOf(&j).Elem(), "", "", func(path string, v reflect.Value, _ reflect.StructTag) {
		inside := strings.ContainsAny(path, "[") || strings.HasPrefix(path, "env.") ||
			strings.HasPrefix(path, "tags.") || path == "metric.target"
		if v.IsZero() && !inside {
			return
		}
		text := fmt.Sprint(v.Interface())
		if t, ok := v.Interface().(encoding.TextMarshaler); ok {
			b, _ := t.MarshalText() // quantities, which cannot fail
			text = string(b)
		}
		if path == "notify.webhook" {
			path = "notify" // the only field there once was
		}
		lines = append(lines, path, text)
	})
	h := sha256.New()
	h.Write([]byte("job/1\n"))
	for _, s := range lines {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Default returns the default values of a job file. Command and name have none.
func Default() Job {
	var j Job
	defaults(reflect.ValueOf(&j).Elem())
	return j
}

func defaults(v reflect.Value) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		switch text, ok := tag.Lookup("default"); {
		case ok:
			if f.Kind() == reflect.Pointer && !f.Type().Implements(textType) {
				f.Set(reflect.New(f.Type().Elem()))
				f = f.Elem()
			}
			if err := setScalar(f, text); err != nil {
				panic(fmt.Sprintf("spec: default of %s: %v", fieldName(v.Type().Field(i)), err))
			}
		case f.Kind() == reflect.Struct && !reflect.PointerTo(f.Type()).Implements(textType):
			defaults(f)
		}
	}
}

// Written, as an output, stands for all files that the program creates or changes in its work folder, except for its
// checkpoints: the newest files, up to 1 GiB.
const Written = "*"

// FromCommand returns the job of a command without a job file. SCRIMP_CHECKPOINT_DIR names its checkpoint folder, and
// its files are kept.
func FromCommand(args []string) Job {
	return Job{Name: Label(nameOf(args)), Args: slices.Clone(args), Outputs: []string{Written},
		Checkpoint: Checkpoint{Dir: "checkpoints"}}
}

// scripts lists the extensions of scripts. If another program, such as python, runs a script, the job is named after
// the script.
var scripts = []string{".py", ".sh", ".bash", ".r", ".jl", ".js", ".ts", ".rb", ".pl", ".lua", ".ipynb"}

// nameOf returns the name of a command: its script, its Python module, or the program itself.
func nameOf(args []string) string {
	for _, arg := range args {
		if ext := path.Ext(arg); slices.Contains(scripts, strings.ToLower(ext)) && !strings.ContainsAny(arg, " =") {
			return strings.TrimSuffix(path.Base(arg), ext)
		}
	}
	program := path.Base(args[0])
	if i := slices.Index(args, "-m"); strings.HasPrefix(program, "python") && i > 0 && i+1 < len(args) {
		return args[i+1][strings.LastIndexByte(args[i+1], '.')+1:]
	}
	return program
}

// SeedVariable holds the seed of a run of scrimp ab. Nothing else sets it, so a job file may.
const SeedVariable = "SCRIMP_SEED"

// SampleVariable holds the part of the data that a stage of a pipeline works on, such as 0.01. The server sets it for
// the stages of a sample. A job file may, so that a program runs as on a sample.
const SampleVariable = "SCRIMP_SAMPLE"

// ArrayPrefix begins the names of the variables that the member of an array reads, such as SCRIMP_ARRAY_INDEX. The
// server sets them for members. The job file of a single job may, so that a member runs again by itself.
const ArrayPrefix = "SCRIMP_ARRAY_"

// ofArrays lists what follows ArrayPrefix.
var ofArrays = []string{"ID", "INDEX", "COUNT", "MIN", "MAX", "STEP"}

// reserved reports whether scrimp sets a variable itself.
func reserved(name string) bool {
	if of, is := strings.CutPrefix(name, ArrayPrefix); is {
		return !slices.Contains(ofArrays, of)
	}
	return strings.HasPrefix(name, "SCRIMP_") && name != SeedVariable && name != SampleVariable
}

// WithEnv returns a copy of the job with variables set or replaced, each given as NAME=VALUE.
func (j Job) WithEnv(pairs []string) (Job, error) {
	env := map[string]string{}
	maps.Copy(env, j.Env)
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		switch {
		case !ok || !envForm.MatchString(name):
			return j, fmt.Errorf("set %q in the environment: it is not NAME=VALUE", p)
		case reserved(name):
			return j, fmt.Errorf("set %s in the environment: scrimp sets it itself: use another name", name)
		case slices.Contains(j.Secrets, name):
			return j, fmt.Errorf("set %s in the environment: it is a secret of the job: export it in the shell instead", name)
		}
		env[name] = value
		j.Inherit = slices.DeleteFunc(slices.Clone(j.Inherit), func(s string) bool { return s == name })
	}
	if len(env) > 0 {
		j.Env = env
	}
	return j, nil
}
