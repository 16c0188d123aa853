package physics

import (
	"math"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// habit is a program's known behaviour, from its code.
type habit struct {
	own, whole, pure bool
	binned           bool           // BERT pre-training packs sequences without padding
	keep             runs.Recompute // in fine-tuning, if several accelerators share the weights
}

// habits maps a part of the source's address to the habit.
var habits = map[string]habit{
	// litgpt builds lm_head beside wte, and its FSDP fine-tuning loads the whole checkpoint in each process and
	// recomputes blocks (finetune/lora.py).
	"litgpt": {own: true, whole: true, keep: runs.KeepEnds},
	// torchtune's recipes keep weights, gradients and optimiser in the precision named.
	"torchtune": {pure: true},
	// DeepLearningExamples trains BERT on sequences binned by length (its README, LDDL).
	"deeplearningexamples": {binned: true},
}

func habitOf(source string) habit {
	if source == "" {
		return habit{}
	}
	source = strings.ToLower(source)
	for k, h := range habits {
		if strings.Contains(source, "/"+k) {
			return h
		}
	}
	return habit{}
}

// Filled returns the share of a sequence of Wikipedia and books that is not padding: Krell et al. 2021, Efficient
// Sequence Packing without Cross-contamination, count half of the tokens as padding at 512 and about a fifth at 128.
func Filled(r runs.Row) float64 {
	if !strings.HasPrefix(strings.ToLower(r.Model), "bert") || r.Task != "pretrain" || !habitOf(r.Source).binned {
		return 1
	}
	if r.Seq >= 512 {
		return 0.5
	}
	return 0.8
}

// SetupOf returns the parameters of a row's run that its memory depends on.
func SetupOf(r runs.Row, chips hardware.Chips) Setup {
	m := r.Shape()
	c, _, _, _ := r.Chip(chips)
	cut, h := runs.ParseParallel(r.Parallel), habitOf(r.Source)
	p := strings.ToLower(r.Precision)
	s := Setup{
		Model: m, Tuning: r.Tuning(), Class: hardware.ParsePrecision(r.Precision, c.TF32 > 0), N: runs.Or(r.N, 1),
		Pure:  strings.Contains(p, "-true") || h.pure,
		Micro: runs.Or(r.Micro, 0), Seq: runs.Or(r.Seq, 0), Cut: cut, Rows: runs.Or(r.Rows, 0),
		Features: runs.Or(r.Features, 0),
		Nested:   strings.Contains(p, "-dq"), Card: runs.Or(r.GPUMem, c.Mem),
	}
	if s.Tuning != shape.Full && strings.Contains(p, "nf4") {
		if s.Tuning == shape.LoRA {
			s.Tuning = shape.QLoRA
		}
		s.Class = hardware.FP4
	}
	s.Stage, s.Stated = stage(r, cut), r.Sharding != ""
	switch {
	case r.Ckpt == "full":
		s.Keep = runs.KeepEnds
	case strings.HasPrefix(r.Ckpt, "selective"):
		s.Keep = runs.KeepSome
	}
	s.Own = h.own
	if s.Tuning != shape.Full && s.N > 1 {
		s.Whole = h.whole
		if r.Ckpt == "" {
			s.Keep = max(s.Keep, h.keep)
		}
	}
	if math.IsNaN(s.Card) {
		s.Card = 0
	}
	return s
}

// shares reports whether the run states that its replicas shard something.
func shares(r runs.Row) bool {
	return r.Sharding != "" && !strings.EqualFold(r.Sharding, runs.Unshared)
}

// fourBit reports whether the run's frozen weights are in 4 bits.
func fourBit(r runs.Row) bool {
	return r.Tuning() == shape.QLoRA || strings.Contains(strings.ToLower(r.Precision), "nf4")
}

// stage returns the ZeRO stage of the run's sharding, from the degrees of the cut if it is not stated.
func stage(r runs.Row, cut runs.Parallel) int {
	switch strings.ToLower(r.Sharding) {
	case "full_shard":
		return 3
	case "shard_grad_op":
		return 2
	case "zero1":
		return 1
	case "no_shard":
		return 0
	}
	switch {
	case cut.FSDP > 0:
		return 3
	case cut.TP > 0 || cut.PP > 0:
		return 1
	}
	return 0
}
