package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scrimp/internal/cli/show/planning"
)

const fullTune = "name: ft8b\nmodel: {config: meta-llama/Llama-3.1-8B, batch: 2, sequence: 2048%s}\nwork: {tokens: 200M}\n" +
	"resources: {accelerator: 'H100:8'}\ncheckpoint: {dir: ckpt}\ncommand: %s\n"

// A full fine-tune of 8B fits on H100:8 with sharded weights, whether the job file, the launcher's flags or a file that
// it names says so. Otherwise sharding is proposed.
func TestRank_FullFineTuneUsesSharding(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("ds.json", `{"zero_optimization": {"stage": 3}}`)
	h.write("fsdp.yaml", "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n")
	plan := func(model, command string) (v planning.Ranking, text string, err error) {
		h.write("job.yaml", strings.Replace(strings.Replace(fullTune, "%s", model, 1), "%s", command, 1))
		text, err = h.try("plan", "--catalog", "--json", "job.yaml")
		_ = json.Unmarshal([]byte(text[strings.IndexByte(text+"{", '{'):]), &v) // err reports invalid output
		return v, text, err
	}
	for name, c := range map[string]struct{ model, command string }{
		"job file":         {", sharding: fsdp", "torchrun t.py"},
		"ZeRO in the file": {", sharding: zero3", "torchrun t.py"},
		"accelerate":       {"", "accelerate launch --use_fsdp --fsdp_sharding_strategy FULL_SHARD t.py"},
		"its file":         {"", "accelerate launch --config_file fsdp.yaml t.py"},
		"DeepSpeed":        {"", "deepspeed t.py --deepspeed ds.json"},
		"tensor parallel":  {", activation_checkpointing: full", "torchrun t.py --tensor-parallel-size 8"},
	} {
		v, text, err := plan(c.model, c.command)
		if err != nil || !v.Answer.Feasible || !strings.Contains(string(v.Answer.Plans[0].ID), "8") {
			t.Errorf("%s: %v %s", name, err, text)
			continue
		}
		if !strings.Contains(strings.Join(v.Assumed, "; "), "divided as its file or its launcher says") {
			t.Errorf("%s: it is not said: %q", name, v.Assumed)
		}
	}
	v, text, err := plan("", "torchrun t.py")
	if err == nil || v.Answer.Feasible || !strings.Contains(text, "ZeRO stage 3 (FSDP)") {
		t.Errorf("unshared: %v %s", err, text)
	}
	if _, text, err := plan(", sharding: zero1", "deepspeed t.py --deepspeed ds.json"); err == nil || !strings.Contains(text, "the program is told zero3 (ds.json)") {
		t.Errorf("%v %s", err, text)
	}
}

// The program sees its job file's parallelism, and a job that contradicts its launcher's file is refused.
func TestRun_ProgramSeesItsParallelism(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: divided\nmodel: {sharding: fsdp, activation_checkpointing: full}\n"+
		"command: 'echo has $SCRIMP_SHARDING $SCRIMP_ACTIVATION_CHECKPOINTING ${SCRIMP_TENSOR_PARALLEL-unset}'\n")
	h.do("run", "-y", "job.yaml")
	if log := h.do("logs", "divided"); log != "has fsdp full unset\n" {
		t.Errorf("its log is %q", log)
	}
	h.write("ds.json", `{"zero_optimization": {"stage": 3}}`)
	h.write("job.yaml", "name: other\nmodel: {sharding: zero1}\ncommand: 'true --deepspeed_config ds.json'\n")
	if out, err := h.try("run", "-y", "job.yaml"); err == nil || !strings.Contains(out, "the program is told zero3 (ds.json)") {
		t.Errorf("%v %s", err, out)
	}
}

// Boosted trees of a job file are its steps, and rows of a possibly wide table its samples.
func TestRank_BoostedTreesByColumns(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	hours := func(model string) float64 {
		h.write("job.yaml", "name: grown\ncommand: python t.py\nmodel: {"+model+"}\nwork: {steps: 500, samples: 10M}\nresources: {accelerator: 'T4:1'}\n")
		var v planning.Ranking
		if err := json.Unmarshal([]byte(h.out("plan", "--catalog", "--json", "job.yaml")), &v); err != nil || !v.Answer.Feasible {
			t.Fatalf("%s: %v %+v", model, err, v.Answer.Counts)
		}
		return v.Answer.Plans[0].WorkHours
	}
	dozen, wide := hours("shape: trees"), hours("shape: trees, features: 120")
	if named := hours("shape: trees features=120"); wide < 7*dozen || named != wide {
		t.Errorf("a dozen columns take %g h, 120 take %g and %g", dozen, wide, named)
	}
	h.write("job.yaml", "name: grown\ncommand: python t.py\nmodel: {shape: trees}\nwork: {samples: 10M}\nresources: {accelerator: 'T4:1'}\n")
	if text, err := h.try("plan", "--catalog", "job.yaml"); err == nil || !strings.Contains(strings.Join(strings.Fields(text), " "), "give work.steps") {
		t.Errorf("%v %s", err, text)
	}
}

// No training job gets Inferentia, whether or not it names an accelerator.
func TestRank_NoInferenceAcceleratorForTraining(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for kind, want := range map[string]bool{"experiment": false, "inference": true} {
		h.write("job.yaml", "name: any\nkind: "+kind+"\ncommand: python t.py\nwork: {time: 10h}\ncheckpoint: {dir: c}\n")
		var v planning.Ranking
		if err := json.Unmarshal([]byte(h.out("plan", "--catalog", "--json", "--limit", "0", "job.yaml")), &v); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range v.Answer.Plans {
			found = found || strings.Contains(string(p.ID), "/inf")
		}
		if found != want || (v.Answer.Counts["inference_only"] > 0) == want {
			t.Errorf("%s: on Inferentia %v, counts %v", kind, found, v.Answer.Counts)
		}
	}
	h.write("job.yaml", "name: old\ncommand: python t.py\nmodel: {config: gpt2, precision: fp8}\nwork: {tokens: 1B}\nresources: {accelerator: 'V100:1+'}\n")
	text, _ := h.try("plan", "--catalog", "--json", "job.yaml")
	if !strings.Contains(text, `"no_precision"`) {
		t.Errorf("fp8 on a V100: %s", text)
	}
}
