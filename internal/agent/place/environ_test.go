package place

import (
	"slices"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// The program gets one process for each accelerator that it may see; the job's own setting wins.
func TestVariables_CountVisibleAccelerators(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		accelerators  int
		machine, job  string
		procs, onNode string
	}{
		{0, "", "", "1", ""},
		{8, "", "", "8", "8"},
		{8, "CUDA_VISIBLE_DEVICES=0,1,2,3", "", "4", "4"},
		{8, "CUDA_VISIBLE_DEVICES=0,1,2,3", "CUDA_VISIBLE_DEVICES=5", "1", "1"},
		{8, "", "CUDA_VISIBLE_DEVICES=", "1", ""},
		{8, "", "CUDA_VISIBLE_DEVICES=-1", "1", ""},
		{8, "", "PET_NPROC_PER_NODE=2", "2", "8"},
	} {
		s := Environment{Base: []string{c.machine}, Accelerators: c.accelerators, Task: api.Assignment{Env: map[string]string{}}}
		if name, value, ok := strings.Cut(c.job, "="); ok {
			s.Task.Env[name] = value
		}
		got := map[string]string{}
		for _, kv := range s.Variables() {
			name, value, _ := strings.Cut(kv, "=")
			got[name] = value
		}
		if got["PET_NPROC_PER_NODE"] != c.procs || got["SLURM_GPUS_ON_NODE"] != c.onNode {
			t.Errorf("%+v: %s processes for torchrun, %q accelerators for Slurm", c, got["PET_NPROC_PER_NODE"], got["SLURM_GPUS_ON_NODE"])
		}
	}
}

// A part of a machine numbers its accelerators like nvidia-smi. A granted list contains indices, or is unknown.
func TestVariables_NumberAcceleratorsAsNvidiaSMI(t *testing.T) {
	t.Parallel()
	s := Environment{Base: []string{"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, Task: api.Assignment{Part: &api.Part{Devices: []int{2, 5}}}}
	env := s.Variables()
	for _, want := range []string{"CUDA_VISIBLE_DEVICES=2,5", "CUDA_DEVICE_ORDER=PCI_BUS_ID"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	for text, want := range map[string][]int{"2,5": {2, 5}, "0": {0}, " 1, 3 ": {1, 3}, "": nil, "-1": nil, "GPU-8f2e": nil, "1,MIG-2": nil} {
		if is := Visible([]string{"PATH=/bin", "CUDA_VISIBLE_DEVICES=" + text}); !slices.Equal(is, want) {
			t.Errorf("%q grants %v, want %v", text, is, want)
		}
	}
}
