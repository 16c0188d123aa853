package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/check"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/rank"
	"scrimp/internal/spec"
)

// way is a way to train that the estimator can tell from others.
type way struct {
	rank.Variant
	set func(*estimate.Ask)
}

// ways are how the job may be run, the way it is stated first, and what could be
// proposed: on less memory, in less time, on other machines.
func ways(j spec.Job, ask estimate.Ask, texts []check.Text, now time.Time) []way {
	m := ask.Model
	text := m.Kind == shape.Transformer || m.Kind == shape.Experts
	base := func(*estimate.Ask) {}
	var list []way
	propose := func(name, lever string, set func(*estimate.Ask)) {
		list = append(list, way{rank.Variant{Name: name, Lever: lever}, func(x *estimate.Ask) { base(x); set(x) }})
	}
	list = append(list, way{set: func(x *estimate.Ask) { base(x) }})
	for i, alt := range j.AnyOf {
		f := asks(alt.Resources, j)
		list = append(list, way{rank.Variant{Name: cmp.Or(alt.Name, fmt.Sprintf("any_of[%d]", i)), Asks: &f}, list[0].set})
	}
	for _, f := range check.Check(check.Case{Job: j, Texts: texts, Now: now}).Findings {
		if f.ID == "precision" && j.Model.Precision == "" && f.Verdict == check.Warn &&
			strings.HasPrefix(f.Evidence, "full precision") {
			base = func(x *estimate.Ask) { x.Precision = "fp32" }
		}
	}
	if full := ask; true {
		if base(&full); full.Precision == "fp32" || full.Precision == "tf32" {
			propose("bf16", "mixed precision", func(x *estimate.Ask) { x.Precision = "bf16" })
		}
	}
	if text {
		propose("checkpointing", "activation checkpointing", func(x *estimate.Ask) { x.Keep = estimate.KeepEnds })
		propose("zero-3", "ZeRO stage 3 (FSDP)", func(x *estimate.Ask) { x.Zero = 3 })
		propose("zero-3-checkpointing", "ZeRO stage 3 with activation checkpointing", func(x *estimate.Ask) {
			x.Zero, x.Keep = 3, estimate.KeepEnds
		})
		propose("fp8", "fp8", func(x *estimate.Ask) { x.Precision = "fp8" })
		if ask.Tuning == shape.Full {
			propose("lora", "LoRA, where fine-tuning is all that is wanted", func(x *estimate.Ask) { x.Tuning = shape.LoRA })
		}
		if ask.Tuning != shape.QLoRA {
			propose("qlora", "QLoRA, where fine-tuning is all that is wanted", func(x *estimate.Ask) { x.Tuning = shape.QLoRA })
		}
	}
	if n := ask.Micro; n > 0 {
		propose("larger-batch", "a larger batch: as many samples as fit", func(x *estimate.Ask) { x.Micro, x.Global = 0, 0 })
		if n >= 2 {
			propose("accumulation", fmt.Sprintf("gradient accumulation: %g samples at a time, twice a step", n/2),
				func(x *estimate.Ask) { x.Micro, x.Gather = n/2, 2 })
		}
	}
	if m.Kind == shape.Conv {
		propose("resizing", "progressive resizing, 128 pixels for the first half", func(x *estimate.Ask) {
			x.Pixels = []estimate.Stage{{Pixels: 128, Share: 0.5}, {Pixels: 224, Share: 0.5}}
		})
	}
	if m.Kind != shape.Trees && m.Params > 0 {
		propose("distillation", "distillation: a student of half the size, if its quality does, from a teacher that is there",
			func(x *estimate.Ask) { x.Model = half(x.Model) })
	}
	if f := asks(j.Resources, j); f.Accelerator != "" {
		f.Accelerator, f.Least, f.Most = "", 1, 0
		list = append(list, way{rank.Variant{Name: "any-accelerator", Lever: "any accelerator that holds it", Asks: &f},
			list[0].set})
	}
	return list
}

// half is a model of half the layers, and so of about half the parameters and operations.
func half(m shape.Model) shape.Model {
	m.Layers, m.Params, m.Active, m.GMACs, m.Acts = m.Layers/2, m.Params/2, m.Active/2, m.GMACs/2, m.Acts/2
	if m.Layers > 0 && m.Vocab > 0 { // the embedding is not halved
		table := m.Vocab * m.Dim / 2
		m.Params += table
		if m.Active > 0 {
			m.Active += table
		}
	}
	return m
}
