// Package launcher reads from the command of a training run, and from the configuration files that
// it names, how the run is divided over accelerators: sharding (ZeRO, FSDP), tensor and pipeline
// parallelism, activation checkpointing. It knows the flags of accelerate, DeepSpeed, Hugging Face's
// Trainer, Lightning, Megatron-LM, torchtitan and torchtune, and reads no file itself.
package launcher

import (
	"slices"
	"strconv"
	"strings"
)

// Ways to share out what replicas hold: none, the optimiser (ZeRO 1), gradients too (2), weights too
// (3, and FSDP).
const (
	None  = "none"
	Zero1 = "zero1"
	Zero2 = "zero2"
	Zero3 = "zero3"
	FSDP  = "fsdp"
)

// What activation checkpointing keeps for the way back.
const (
	Selective = "selective"
	Full      = "full"
)

// Said is a setting, and the flag or file that says it. The zero value says nothing.
type Said struct{ Value, Where string }

// Settings are how a run is divided.
type Settings struct {
	Sharding  Said // None, Zero1, Zero2, Zero3 or FSDP
	Tensor    Said // tensor parallel degree, a number
	Pipeline  Said // pipeline stages, a number
	Recompute Said // activation checkpointing: None, Selective or Full
	Files     []string
	// a sharding that a switch stands for (--use_deepspeed) where nothing says which
	usual Said
}

// Settled is s with what its switches stand for, once all files are read.
func (s Settings) Settled() Settings {
	if s.Sharding.Value == "" {
		s.Sharding = s.usual
	}
	return s
}

// Stage is the stage of ZeRO that a sharding is: FSDP shares out what stage 3 does.
func Stage(sharding string) int {
	switch sharding {
	case Zero1:
		return 1
	case Zero2:
		return 2
	case Zero3, FSDP:
		return 3
	}
	return 0
}

// Words splits a command as a shell does, without expanding anything.
func Words(command string) (words []string) {
	var b strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			words = append(words, b.String())
		}
		b.Reset()
		begun = false
	}
	for _, r := range strings.ReplaceAll(command, "\\\n", " ") {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case strings.ContainsRune(" \t\n;&|()", r):
			end()
		default:
			b.WriteRune(r)
			begun = true
		}
	}
	end()
	return words
}

// Read is what the words of a command say. Of two flags that say the same the last counts, as
// programs have it.
func Read(words []string) (s Settings) {
	for i, w := range words {
		name, value, joined := strings.Cut(w, "=")
		next := ""
		if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			next = words[i+1]
		}
		if !joined {
			value = next
		}
		if strings.HasPrefix(name, "-") || strings.Contains(name, ".") && joined { // torchtune's overrides have no dashes
			s.flag(plain(name), value, strings.TrimSpace(name+" "+value))
			continue
		}
		switch w { // recipes of torchtune
		case "full_finetune_distributed", "lora_finetune_distributed", "qat_distributed":
			s.Sharding = Said{FSDP, w}
		}
	}
	return s
}

// plain is the name of a flag without dashes before it and groups: --parallelism.tensor_parallel_degree
// is tensor-parallel-degree.
func plain(flag string) string {
	flag = strings.ToLower(strings.TrimLeft(flag, "-"))
	if i := strings.LastIndexByte(flag, '.'); i >= 0 {
		group := flag[:i]
		if flag = flag[i+1:]; flag == "mode" || flag == "strategy" {
			flag = group[strings.LastIndexByte(group, '.')+1:] + "-" + flag
		}
	}
	return strings.ReplaceAll(flag, "_", "-")
}

// degrees are the flags that cut a model, by what they cut: layers, or the row of layers.
var degrees = map[string]bool{ // true: tensor parallel
	"tp": true, "tp-size": true, "tp-degree": true, "tensor-parallel": true, "tensor-parallel-size": true,
	"tensor-parallel-degree": true, "tensor-model-parallel-size": true, "autotp-size": true,
	"pp": false, "pp-size": false, "pp-degree": false, "pipeline-parallel": false, "pipeline-parallel-size": false,
	"pipeline-parallel-degree": false, "pipeline-model-parallel-size": false,
}

// flag takes in one flag.
func (s *Settings) flag(name, value, where string) {
	if tensor, ok := degrees[name]; ok {
		if n, err := strconv.Atoi(value); err == nil && n >= 1 && n <= 10000 {
			if tensor {
				s.Tensor = Said{value, where}
			} else {
				s.Pipeline = Said{value, where}
			}
		}
		return
	}
	switch name {
	case "config-file", "deepspeed-config-file", "deepspeed-config", "deepspeed", "ds-config":
		if low := strings.ToLower(value); strings.HasSuffix(low, ".json") || strings.HasSuffix(low, ".yaml") ||
			strings.HasSuffix(low, ".yml") {
			s.Files = append(s.Files, value)
		}
	default:
		s.sharding(name, value, where)
		s.recompute(name, value, where)
	}
}

// strategies are what programs call a sharding.
var strategies = map[string]string{
	"full-shard": FSDP, "hybrid-shard": FSDP, "1": FSDP, "4": FSDP, "fsdp": FSDP, "fsdp2": FSDP, "true": FSDP, "": FSDP,
	"shard-grad-op": Zero2, "hybrid-shard-zero2": Zero2, "2": Zero2, "5": Zero2,
	"no-shard": None, "3": None, "false": None, "ddp": None, "none": None,
	"deepspeed-stage-1": Zero1, "deepspeed-stage-2": Zero2, "deepspeed-stage-3": Zero3, "deepspeed": Zero2,
	"deepspeed-stage-2-offload": Zero2, "deepspeed-stage-3-offload": Zero3,
}

// stages are ZeRO's by number.
var stages = map[string]string{"0": None, "1": Zero1, "2": Zero2, "3": Zero3}

// sharding takes in a flag that says what is shared out.
func (s *Settings) sharding(name, value, where string) {
	set := func(v string, ok bool) {
		if ok {
			s.Sharding = Said{v, where}
		}
	}
	word, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(value)), "_", "-"), " ")
	switch name {
	case "zero-stage", "zero":
		v, ok := stages[word]
		set(v, ok)
	case "fsdp-sharding-strategy", "fsdp":
		v, ok := strategies[word]
		if !ok && name == "fsdp" { // a switch, and a word of something else behind it
			v, ok = FSDP, true
		}
		set(v, ok)
	case "strategy", "trainer-strategy":
		if _, err := strconv.Atoi(word); err == nil || slices.Contains([]string{"", "true", "false"}, word) {
			break // it names no strategy
		}
		v, ok := strategies[word]
		set(v, ok)
	case "use-fsdp":
		if word != "false" {
			s.usual = Said{FSDP, where}
		}
	case "use-deepspeed": // accelerate's plugin takes stage 2 where nothing says another
		if word != "false" {
			s.usual = Said{Zero2, where}
		}
	case "use-torch-fsdp2", "use-megatron-fsdp", "use-custom-fsdp":
		set(FSDP, true)
	case "use-distributed-optimizer":
		s.usual = Said{Zero1, where}
	}
}

// recompute takes in a flag that says what is computed again.
func (s *Settings) recompute(name, value, where string) {
	word := strings.ToLower(value)
	switch name {
	case "gradient-checkpointing", "activation-checkpointing", "fsdp-activation-checkpointing",
		"enable-activation-checkpointing":
		if word == "false" || word == "0" || word == None {
			s.Recompute = Said{None, where}
		} else {
			s.Recompute = Said{Full, where}
		}
	case "recompute-activations":
		s.Recompute = Said{Selective, where}
	case "recompute-granularity", "activation-checkpoint-mode":
		if word == Full || word == Selective || word == None {
			s.Recompute = Said{word, where}
		}
	}
}
