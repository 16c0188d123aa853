package jobimport_test

import (
	"strings"
	"testing"

	"scrimp/internal/job/jobimport"
	"scrimp/internal/work/groups"
)

// sbatchJob converts a script with the directives and returns the job's accelerators and what was lost.
func sbatchJob(t *testing.T, directives, program string) (r jobimport.Result, kinds, lost string) {
	t.Helper()
	text := "#!/bin/bash\n"
	for line := range strings.SplitSeq(directives, "\n") {
		text += "#SBATCH " + line + "\n"
	}
	r, err := jobimport.ConvertTo("train.sbatch", "my jobs/fold.yaml", []byte(text+program+"\n"))
	if err != nil {
		t.Fatalf("%s: %v", directives, err)
	}
	kinds = r.Job.Resources.Accelerator
	for _, v := range r.Job.AnyOf {
		kinds += " " + v.Resources.Accelerator
	}
	for _, l := range r.Lost {
		lost += l.String() + "\n"
	}
	return r, kinds, lost
}

// A feature that names an accelerator is the kind; every other word of a constraint is reported, as is a job that gets
// no GPU though its partition names one.
func TestConvert_ConstraintIsTheKindOrReported(t *testing.T) {
	for directives, want := range map[string]struct{ kinds, lost string }{
		"--gres=gpu:4 --constraint=\"a100|h100\"":       {"A100:4 H100:4", ""},
		"--constraint=\"a100|h100\"":                    {"A100 H100", "no number of GPUs"},
		"--constraint=a100":                             {"A100", "no number of GPUs"},
		"--gres=gpu:2 -C \"[a100|v100]&nvlink\"":        {"A100:2 V100:2", "nvlink: "},
		"--gres=gpu:2 -C \"a100&nvlink\"":               {"A100:2", "nvlink: "},
		"--gres=gpu:2 -C \"a100|bigmem\"":               {"A100:2", "bigmem: "},
		"--gres=gpu:4 -C \"a100&80gb\"":                 {"A100-80GB:4", ""},
		"--gres=gpu:a100:4 -C a100_80g":                 {"A100-80GB:4", ""},
		"--gres=gpu:v100:4 -C a100":                     {"V100:4", "another accelerator than V100"},
		"--gres=gpu:4 -C haswell":                       {"any:4", "haswell: "},
		"-C haswell":                                    {"", "haswell: "},
		"--gres=gpu:4 -p gpu_h100":                      {"H100:4", ""},
		"--gres=gpu:4 -p a100,h100":                     {"A100:4 H100:4", ""},
		"--gres=gpu:4 -p gpu,h100":                      {"any:4", "zones and capacity"},
		"--gres=tmpfs:100G,gpu:a100:4":                  {"A100:4", "only accelerators"},
		"--gres=gpu:a100:4,tmpfs:100G":                  {"A100:4", "only accelerators"},
		"--gres=gpu:a100:4,gpu:v100:2":                  {"A100:4", "only the first kind"},
		"-p gpu_h100":                                   {"", "it names H100, and the script asks for no GPUs"},
		"--gres=gpu:4 -p gpu_h100 -C \"a100|v100\"":     {"A100:4 V100:4", "names another accelerator"},
		"--gres=gpu:a100:2 -p a100-large -C \"x86&ib\"": {"A100:2", "x86, ib: "},
	} {
		_, kinds, lost := sbatchJob(t, directives, "python train.py")
		if kinds != want.kinds || !strings.Contains(lost, want.lost) || (want.lost == "") != (lost == "") {
			t.Errorf("%s: %q and lost %q, want %q and %q", directives, kinds, lost, want.kinds, want.lost)
		}
	}
}

func TestConvert_RangeOfMachinesIsKeptOrReported(t *testing.T) {
	for value, want := range map[string]string{"1-4": "1..4", "2-4": "2..4", "3": "3", "2-2": "2", "1": ""} {
		r, _, lost := sbatchJob(t, "--nodes="+value, "srun python train.py")
		nodes, _ := r.Job.Nodes.MarshalText()
		if want == "" {
			nodes = nil
		}
		if string(nodes) != want || lost != "" {
			t.Errorf("--nodes=%s with srun: %q, lost %q, want %q", value, nodes, lost, want)
		}
		_, _, lost = sbatchJob(t, "--nodes="+value, "python train.py")
		if strings.Contains(lost, "--nodes") != (want != "") {
			t.Errorf("--nodes=%s without srun: lost %q", value, lost)
		}
	}
	for _, value := range []string{"4-1", "0", "1,3", "1-4:2", "many"} {
		if _, _, lost := sbatchJob(t, "--nodes="+value, "srun python train.py"); !strings.Contains(lost, "--nodes") {
			t.Errorf("--nodes=%s vanishes: %q", value, lost)
		}
	}
}

func TestConvert_QuotesHoldValuesTogether(t *testing.T) {
	r, _, lost := sbatchJob(t, `--export=NONE,A=1,B="x y",C='p,q',D=it's --job-name="my run" # a comment`,
		`srun --export=ALL,E="u v" -n 1 python train.py`)
	want := map[string]string{"A": "1", "B": "x y", "C": "p,q", "D": "it's"}
	for name, value := range want {
		if r.Job.Env[name] != value {
			t.Errorf("%s is %q, want %q", name, r.Job.Env[name], value)
		}
	}
	if len(r.Job.Env) != len(want) || r.Job.Name != "my-run" || lost != "" || r.Job.Command != "python train.py" {
		t.Errorf("%v, name %q, command %q, lost %q", r.Job.Env, r.Job.Name, r.Job.Command, lost)
	}
}

// Each --array that the advice names is one that scrimp run accepts, with the name of the written file.
func TestConvert_AdviceForArraysIsAccepted(t *testing.T) {
	for value, want := range map[string][]string{
		"0-9": {"0-9"}, "0-9%4": {"0-9%4"}, "7": {"7-7"}, "1,3,5-9:2": {"1-1", "3-3", "5-9:2"},
		"1,4-6%2": {"1-1%2", "4-6%2"},
	} {
		_, _, lost := sbatchJob(t, "--array="+value, "python train.py")
		var got []string
		for _, part := range strings.Split(lost, "--array ")[1:] {
			indexes := strings.Trim(strings.Fields(part)[0], ",")
			if _, _, err := groups.ParseIndexes(indexes); err != nil {
				t.Error(err)
			}
			got = append(got, indexes)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || !strings.Contains(lost, "scrimp run 'my jobs/fold.yaml' --array") {
			t.Errorf("--array=%s: %q, want %v", value, lost, want)
		}
	}
	if _, _, lost := sbatchJob(t, "--array=a-b", "x"); !strings.Contains(lost, `"a-b" names no indexes`) {
		t.Error(lost)
	}
}

func TestConvert_DependencyNamesAfter(t *testing.T) {
	for value, want := range map[string]string{
		"afterok:123": "scrimp run 'my jobs/fold.yaml' --after JOB,", "afterany:1:2": "--after JOB:any,",
		"singleton": "--after JOB (success)", "afternotok:5": "waits for the end of others only",
	} {
		if _, _, lost := sbatchJob(t, "-d "+value, "x"); !strings.Contains(lost, want) {
			t.Errorf("%s: %q, want %q", value, lost, want)
		}
	}
	if _, _, lost := sbatchJob(t, "--begin=22:00", "x"); !strings.Contains(lost, "window: 22:00-06:00") {
		t.Error(lost)
	}
}

// A job that the other system would run on demand says in its file that scrimp may take spot.
func TestConvert_FileSaysWhichCapacityIsTaken(t *testing.T) {
	const remark = "without resources.capacity scrimp takes"
	for text, want := range map[string]bool{
		"run: a\n": true, "run: a\nresources: {cpus: 4}\n": true, "run: a\nresources: {cloud: aws}\n": true,
		"run: a\nresources: {instance_type: p5.48xlarge}\n":            true,
		"run: a\nresources: {use_spot: true}\n":                        false,
		"run: a\nresources: {any_of: [{use_spot: true, cpus: 4}]}\n":   false,
		"type: task\ncommands: [a]\n":                                  true,
		"type: task\ncommands: [a]\nresources: {gpu: H100}\n":          true,
		"type: task\ncommands: [a]\nspot_policy: auto\n":               false,
		"type: task\ncommands: [a]\nspot_policy: spot\n":               false,
		"type: task\ncommands: [a]\nspot_policy: on-demand\nname: x\n": false,
	} {
		r, err := jobimport.Convert("f.yaml", []byte(text))
		if err != nil || strings.Contains(string(r.YAML), remark) != want {
			t.Errorf("%q: %v, want the remark: %v, in\n%s", text, err, want, r.YAML)
		}
	}
}
