package jobimport_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	must.Do(t, err)
	count := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") || filepath.Ext(file) == "" {
			continue
		}
		count++
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must.Do(t, err)
			r, err := jobimport.Convert(file, text)
			must.Do(t, err)
			golden.Check(t, filepath.Base(file)+".golden", string(r.YAML))
			type asks struct{ Accelerator string }
			var j struct {
				Resources asks
				AnyOf     []struct{ Resources asks } `yaml:"any_of"`
			}
			must.Do(t, yaml.Unmarshal(r.YAML, &j))
			for _, v := range j.AnyOf {
				if v.Resources.Accelerator != "" && j.Resources.Accelerator == "" {
					t.Errorf("it may run on machines without an accelerator, and on %s", v.Resources.Accelerator)
				}
			}
		})
	}
	if count < 5 {
		t.Errorf("only %d files converted", count)
	}
}

func TestConvert_ErrorStatesReason(t *testing.T) {
	for text, want := range map[string]string{
		"": "convert f.yaml: it is empty",
		"a: b": "convert f.yaml: it is neither a SkyPilot task (run:), nor a dstack " +
			"task (type: task), nor an sbatch script (#SBATCH)",
		"command: a": "convert f.yaml: it has a command, so it is scrimp's own form already: " +
			"run it with scrimp run",
		"type: service\ncommands: [a]": "convert f.yaml: its type is service, and only a task is a job that " +
			"comes to an end",
		"commands: [a]": "convert f.yaml: its type is nothing, and only a task is a job that " +
			"comes to an end",
		"name: p\n---\nrun: a\n---\nrun: b": "convert f.yaml: it is a pipeline of several tasks: convert each by " +
			"itself, from a file of its own",
		"resources: {cpus: 2}":      "convert f.yaml: it runs nothing, so there is no job in it",
		"#!/bin/sh\n#SBATCH -n 2\n": "convert f.yaml: it runs nothing, so there is no job in it",
	} {
		_, err := jobimport.Convert("dir/f.yaml", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("Convert(%q) = %v, want %s", text, err, want)
		}
	}
	_, err := jobimport.Convert("f.yaml", []byte("run: a\nresources: {cpus: many}"))
	var problems spec.Problems
	if !errors.As(err, &problems) {
		t.Errorf("Convert of cpus: many = %v, want the problems of the job file", err)
	}
}

func TestTimeLimits(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "1:30": 90 * time.Second, "2:00:00": 2 * time.Hour,
		"1-12": 36 * time.Hour, "1-12:30": 36*time.Hour + 30*time.Minute, "1-00:00:01": 24*time.Hour + time.Second,
	} {
		r, err := jobimport.Convert("a.sh", []byte("#SBATCH --time="+in+"\nrun\n"))
		if err != nil || time.Duration(r.Job.Budget.WallClock) != want {
			t.Errorf("--time=%s is %v (%v), want %v", in, time.Duration(r.Job.Budget.WallClock), err, want)
		}
	}
}

// The memory in dstack's accelerator request becomes part of the name if it distinguishes kinds, disappears for a kind
// with one size, and is reported if no kind has it.
func TestConvert_KeepsMemoryOfAccelerator(t *testing.T) {
	for gpu, want := range map[string]string{
		"A100:80GB:8": "A100-80GB:8", "nvidia:A100:80GB:8": "A100-80GB:8", "A100:40GB..:4": "A100:4",
		"A100:40GB": "A100-40GB", "A100:..40GB:2": "A100-40GB:2", "A100:41GB..80GB:1..8": "A100-80GB:1..8",
		"V100:32GB:2": "V100-32GB:2", "L4:24GB:2": "L4:2", "H100:80GB:2..4": "H100-80GB:2..4", "H100:90GB..": "H100-94GB",
		"a100:80gb:8": "a100-80GB:8", "{name: A100, memory: 80GB, count: 8}": "A100-80GB:8",
		"{name: [A100], memory: 80GB.., count: 2..}": "A100-80GB:2+", "A100-80GB:8": "A100-80GB:8",
		"A100:80GiB": "A100-80GB", "A100:60GB:8": "lost A100:8", "NEW9:80GB": "lost NEW9", "A100,H100:80GB:8": "A100-80GB:8 H100-80GB:8",
		"A100,L4:24GB": "lost A100 L4",
	} {
		r, err := jobimport.Convert("f.yaml", []byte("type: task\ncommands: [a]\nresources: {gpu: \""+gpu+"\"}\n"))
		if strings.HasPrefix(gpu, "{") {
			r, err = jobimport.Convert("f.yaml", []byte("type: task\ncommands: [a]\nresources: {gpu: "+gpu+"}\n"))
		}
		if err != nil {
			t.Errorf("%s: %v", gpu, err)
			continue
		}
		got := r.Job.Resources.Accelerator
		for _, v := range r.Job.AnyOf {
			got = strings.TrimSpace(got + " " + v.Resources.Accelerator)
		}
		for _, l := range r.Lost {
			if strings.Contains(fmt.Sprint(l), "GB") || strings.Contains(fmt.Sprint(l), "GiB") {
				got = "lost " + got
			}
		}
		if got != want {
			t.Errorf("%s became %q, want %q (%v)", gpu, got, want, r.Lost)
		}
	}
}

// FuzzConvert verifies that every conversion is a valid job file, and that nothing panics.
func FuzzConvert(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, ".golden") {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := jobimport.Convert("f.yaml", []byte(text))
		if err != nil {
			return
		}
		j, _, err := spec.Parse(spec.Run, "job.yaml", r.YAML, "f", time.Time{})
		if err != nil || j.Hash() != r.Job.Hash() {
			t.Fatalf("%v\n%s", err, r.YAML)
		}
	})
}

func ExampleConvert() {
	r, err := jobimport.Convert("train.sh", []byte("#!/bin/sh\n#SBATCH --mem=4G --partition=gpu\nexec ./train\n"))
	if err != nil {
		panic(err)
	}
	fmt.Println(r.System, r.Job.Command)
	for _, l := range r.Lost {
		fmt.Println(l)
	}
	// Output:
	// Slurm exec ./train
	// line 2: `--partition`: offers are chosen by what they have, by price and by deadline; zones and capacity narrow them
}

// What a file says and no job file may say is an error that names the line of the file, and not of the converted one.
func TestConvert_NamesTheLineOfWhatNoJobFileMaySay(t *testing.T) {
	t.Parallel()
	_, err := jobimport.Convert("bad.yaml", []byte("name: bad\n\nresources:\n  accelerators: {A100: x}\nrun: a\n"))
	if err == nil || !strings.Contains(err.Error(), "bad.yaml:4: `resources.accelerator` is \"A100:x\"") ||
		strings.Contains(err.Error(), "job.yaml") {
		t.Errorf("%v", err)
	}
}
