// Package launcher reads a training run's parallelism from its command and from the configuration files that the
// command names: sharding (ZeRO, FSDP), tensor and pipeline parallelism, and activation checkpointing. It knows the
// flags of accelerate, DeepSpeed, Hugging Face's Trainer, Lightning, Megatron-LM, torchtitan and torchtune. It does not
// read files itself.
package launcher

import (
	"slices"
	"strconv"
	"strings"
)

// Values of Sharding: none; the optimizer state (ZeRO 1); also gradients (2); also weights (3, and FSDP).
const (
	None  = "none"
	Zero1 = "zero1"
	Zero2 = "zero2"
	Zero3 = "zero3"
	FSDP  = "fsdp"
)

// Modes of activation checkpointing.
const (
	Selective = "selective"
	Full      = "full"
)

// Said is a setting and its source, a flag or a file. The zero value is unset.
type Said struct{ Value, Where string }

// Settings holds a run's parallelism.
type Settings struct {
	Sharding  Said // None, Zero1, Zero2, Zero3 or FSDP
	Tensor    Said // tensor parallel degree, a number
	Pipeline  Said // pipeline stages, a number
	Recompute Said // activation checkpointing: None, Selective or Full
	Files     []string
	// usual is the sharding of a switch (--use_deepspeed) unless something else sets it.
	usual Said
}

// Settled returns s with the defaults of its switches; call it after reading all files.
func (s Settings) Settled() Settings {
	if s.Sharding.Value == "" {
		s.Sharding = s.usual
	}
	return s
}

// Stage returns the ZeRO stage of a sharding: FSDP counts as stage 3.
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

// Words splits a command as a shell does, without expansions.
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

// Read reads the settings from the words of a command. As in the programs, the last of several equal flags wins.
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

// plain returns the name of a flag without leading dashes and groups: --parallelism.tensor_parallel_degree is
// tensor-parallel-degree.
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

// degrees lists the flags of model parallelism.
var degrees = map[string]bool{ // true: tensor parallel; false: pipeline parallel
	"tp": true, "tp-size": true, "tp-degree": true, "tensor-parallel": true, "tensor-parallel-size": true,
	"tensor-parallel-degree": true, "tensor-model-parallel-size": true, "autotp-size": true,
	"pp": false, "pp-size": false, "pp-degree": false, "pipeline-parallel": false, "pipeline-parallel-size": false,
	"pipeline-parallel-degree": false, "pipeline-model-parallel-size": false,
}

// flag reads one flag.
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

// strategies maps programs' names to shardings.
var strategies = map[string]string{
	"full-shard": FSDP, "hybrid-shard": FSDP, "1": FSDP, "4": FSDP, "fsdp": FSDP, "fsdp2": FSDP, "true": FSDP, "": FSDP,
	"shard-grad-op": Zero2, "hybrid-shard-zero2": Zero2, "2": Zero2, "5": Zero2,
	"no-shard": None, "3": None, "false": None, "ddp": None, "none": None,
	"deepspeed-stage-1": Zero1, "deepspeed-stage-2": Zero2, "deepspeed-stage-3": Zero3, "deepspeed": Zero2,
	"deepspeed-stage-2-offload": Zero2, "deepspeed-stage-3-offload": Zero3,
}

// stages maps the numbers of ZeRO stages to shardings.
var stages = map[string]string{"0": None, "1": Zero1, "2": Zero2, "3": Zero3}

// sharding reads a flag about sharding.
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
		if !ok && name == "fsdp" { // a switch followed by an unrelated word
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
	case "use-deepspeed": // accelerate's plugin uses stage 2 by default
		if word != "false" {
			s.usual = Said{Zero2, where}
		}
	case "use-torch-fsdp2", "use-megatron-fsdp", "use-custom-fsdp":
		set(FSDP, true)
	case "use-distributed-optimizer":
		s.usual = Said{Zero1, where}
	}
}

// recompute reads a flag about activation checkpointing.
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
