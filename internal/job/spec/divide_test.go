package spec_test

import (
	"testing"

	"scrimp/internal/job/launcher"
	"scrimp/internal/job/spec"
)

// The launcher fills the job file's unset parallelism. FSDP and ZeRO 3 are equal.
func TestDivided_FillsFromLauncher(t *testing.T) {
	for text, want := range map[string]spec.Model{
		"command: accelerate launch --use_fsdp t.py":                                            {Sharding: "fsdp"},
		"command: torchrun t.py --tensor-parallel-size 4 --pp 2 --gradient_checkpointing":       {Tensor: 4, Pipeline: 2, Checkpointing: "full"},
		"args: [deepspeed, t.py, --zero_stage, '3']\nmodel: {sharding: fsdp}":                   {Sharding: "fsdp"},
		"command: torchrun t.py\nmodel: {sharding: zero1, activation_checkpointing: selective}": {Sharding: "zero1", Checkpointing: "selective"},
		"command: accelerate launch --use_deepspeed t.py\nmodel: {sharding: zero3}":             {Sharding: "zero3"},
	} {
		j, _ := parse(t, text)
		if got, bad := j.Divided(j.Launcher()); got.Model != want || len(bad) > 0 {
			t.Errorf("%s: %+v (%v), to be %+v", text, got.Model, bad, want)
		}
	}
	j, _ := parse(t, "command: deepspeed t.py --deepspeed ds.json\nmodel: {sharding: zero2}")
	s := j.Launcher()
	if _, err := s.File("ds.json", []byte(`{"zero_optimization": {"stage": 3}}`)); err != nil {
		t.Fatal(err)
	}
	if _, bad := j.Divided(s); len(bad) != 1 || bad[0].Field != "model.sharding" {
		t.Errorf("the file says stage %d, the job zero2: %v", launcher.Stage(s.Sharding.Value), bad)
	}
}
