package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/rank"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/accelerator"
)

// way is a method of training that the estimator distinguishes.
type way struct {
	rank.Variant
	set func(*estimate.Request)
}

// wayList collects ways; base applies to all of them first.
type wayList struct {
	list []way
	base func(*estimate.Request)
}

// propose adds a way that differs from the job's own.
func (l *wayList) propose(name, what string, set func(*estimate.Request)) {
	l.list = append(l.list, way{rank.Variant{Name: name, Recommendation: what}, func(x *estimate.Request) {
		l.base(x)
		set(x)
	}})
}

// ways returns how the job may be trained: the job's own way first, then proposals that need less memory, less time, or
// other machines.
func ways(j spec.Job, ask estimate.Request, texts []check.Text, now time.Time) []way {
	l := &wayList{base: precisionOf(j, texts, now)}
	stated := func(x *estimate.Request) { l.base(x) }
	l.list = append(l.list, way{set: stated})
	for i, alt := range j.AnyOf {
		if alt.Place() {
			continue // the catalogue knows no engines
		}
		f := alternative(alt, j)
		name := cmp.Or(alt.Name, fmt.Sprintf("any_of[%d]", i))
		l.list = append(l.list, way{rank.Variant{Name: name, Requirements: &f}, stated})
	}
	full := ask
	if l.base(&full); full.Precision == "fp32" || full.Precision == "tf32" {
		l.propose("bf16", "mixed precision", func(x *estimate.Request) { x.Precision = "bf16" })
	}
	if ask.Model.Text() {
		l.proposeText(ask)
	}
	l.proposeBatch(ask.Micro)
	if ask.Model.Kind == shape.Conv {
		l.propose("resizing", "progressive resizing, 128 pixels for the first half", func(x *estimate.Request) {
			x.Pixels = []estimate.Stage{{Pixels: 128, Share: 0.5}, {Pixels: 224, Share: 0.5}}
		})
	}
	if ask.Model.Photographs() {
		l.propose("decoded", "images that are decoded beforehand or on the accelerator (DALI, FFCV)",
			func(x *estimate.Request) { x.Decoded = true })
	}
	if ask.Model.Kind != shape.Trees && ask.Model.Params > 0 {
		l.propose("distillation",
			"distillation: a student of half the size, if its quality does, from a teacher that is there",
			func(x *estimate.Request) { x.Model = half(x.Model) })
	}
	if f := asks(j.Resources, j); onGPU(f.Accelerator) { // a program for GPUs runs on no TPU
		f.Accelerator, f.Least, f.Most = accelerator.AnyKind, 1, 0
		wider := rank.Variant{Name: "any-accelerator", Recommendation: "any GPU that holds it", Requirements: &f}
		l.list = append(l.list, way{wider, stated})
	}
	return l.list
}

// onGPU reports whether a request for accelerators is for GPUs.
func onGPU(asked string) bool {
	return slices.ContainsFunc(accelerator.Accelerators(), func(a accelerator.Accelerator) bool {
		return accelerator.Matches(asked, a.Name) && accelerator.Matches(accelerator.AnyKind, a.Name)
	})
}

// precisionOf sets the precision that the programs use, if the job states none.
func precisionOf(j spec.Job, texts []check.Text, now time.Time) func(*estimate.Request) {
	for _, f := range check.Check(check.Case{Job: j, Texts: texts, Now: now}).Findings {
		if f.ID == "precision" && j.Model.Precision == "" && f.Verdict == check.Warn &&
			strings.HasPrefix(f.Evidence, "full precision") {
			return func(x *estimate.Request) { x.Precision = "fp32" }
		}
	}
	return func(*estimate.Request) {}
}

// proposeText adds ways that train a text model in less memory.
func (l *wayList) proposeText(ask estimate.Request) {
	l.propose("checkpointing", "activation checkpointing", func(x *estimate.Request) { x.Keep = runs.KeepEnds })
	share := func(x *estimate.Request) { x.Zero = 3 }
	l.propose("zero-3", "ZeRO stage 3 (FSDP)", share)
	l.propose("zero-3-checkpointing", "ZeRO stage 3 with activation checkpointing", func(x *estimate.Request) {
		x.Zero, x.Keep = 3, runs.KeepEnds
	})
	l.propose("fp8", "fp8", func(x *estimate.Request) { x.Precision = "fp8" })
	for _, t := range []struct {
		name, what string
		to         shape.Tuning
		on         bool
	}{{"lora", "LoRA", shape.LoRA, ask.Tuning == shape.Full}, {"qlora", "QLoRA", shape.QLoRA, ask.Tuning != shape.QLoRA}} {
		if !t.on {
			continue
		}
		l.propose(t.name, t.what+", where fine-tuning is all that is wanted", func(x *estimate.Request) { x.Tuning = t.to })
		if ask.Keep == runs.KeepEnds {
			continue
		}
		l.propose(t.name+"-checkpointing", t.what+" with activation checkpointing, where fine-tuning is all that is wanted",
			func(x *estimate.Request) { x.Tuning, x.Keep = t.to, runs.KeepEnds })
	}
}

// proposeBatch adds other batch sizes than the job's.
func (l *wayList) proposeBatch(n float64) {
	if n <= 0 {
		return
	}
	l.propose("larger-batch", "a larger batch: as many samples as fit", func(x *estimate.Request) {
		x.Micro, x.Global = 0, 0
	})
	if n >= 2 {
		l.propose("accumulation", fmt.Sprintf("gradient accumulation: %g samples at a time, twice a step", n/2),
			func(x *estimate.Request) { x.Micro, x.Gather = n/2, 2 })
	}
}

// half returns a model with half the layers, and therefore about half the parameters and operations.
func half(m shape.Model) shape.Model {
	m.Layers, m.Params, m.Active, m.GMACs, m.Acts = m.Layers/2, m.Params/2, m.Active/2, m.GMACs/2, m.Acts/2
	if m.Layers > 0 && m.Vocab > 0 { // the embedding keeps its size
		table := m.Vocab * m.Dim / 2
		m.Params += table
		if m.Active > 0 {
			m.Active += table
		}
	}
	return m
}
