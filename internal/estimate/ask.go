package estimate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Request is a run as stated by a user. Zero means unknown, unless a field says otherwise.
type Request struct {
	Model     shape.Model
	Chip      string // accelerator; empty for every one with a price
	Count     float64
	Precision string
	Seq       float64
	Micro     float64 // samples per accelerator and pass; 0: the largest power of two that fits
	Global    float64 // samples per step; 0: micro × accumulate × replicas
	Gather    float64 // micro-batches per step; 0 means one
	Keep      runs.Recompute
	Zero      int // ZeRO stage, 0 to 3
	Tuning    shape.Tuning
	TP, PP    float64
	Tokens    float64
	Epochs    float64
	Rows      float64
	Trees     float64
	Depth     float64
	Features  float64           // columns of a boosted trees' table; 0 means a dozen
	Host      *hardware.Machine // carries the accelerators; nil: an offered machine, or an unknown one
	Decoded   bool              // the host's processors decode no images
	Pixels    []Stage           // progressive resizing, for models stated at 224; empty: as stated
	Unit      string            // of throughput; empty: the model's usual unit
	Program   string            // source of the runs of the same program
	Price     float64           // dollars per hour for all accelerators; 0: list price
}

// Stage is a part of a training with one image size.
type Stage struct{ Pixels, Share float64 }

// scaled returns the model at the sizes of progressive resizing: work grows with the square of the size, so half the
// epochs at 128 and half at 224 cost 0.66.
func (q Request) scaled() shape.Model {
	m := q.Model
	if len(q.Pixels) == 0 {
		return m
	}
	k, all := 0.0, 0.0
	for _, s := range q.Pixels {
		k += s.Share * (s.Pixels / 224) * (s.Pixels / 224)
		all += s.Share
	}
	m.GMACs *= k / all
	m.Acts *= k / all
	return m
}

// Check returns an error for an impossible run: the field, the reason, and what it must be.
func (q Request) Check() error {
	if err := q.numbers(); err != nil {
		return err
	}
	if d := q.cut(); q.Count > 0 && math.Mod(q.Count, d) != 0 {
		return fmt.Errorf("%g accelerators are not a multiple of tensor parallel degree × pipeline stages, %g", q.Count, d)
	}
	for _, s := range q.Pixels {
		if !(s.Pixels >= 8 && s.Pixels <= 1e4) || !(s.Share > 0 && s.Share <= 1e6) {
			return fmt.Errorf("resizing to %g for a share of %g: pixels from 8 to 10000, shares above 0", s.Pixels, s.Share)
		}
	}
	if len(q.Pixels) > 0 && q.Model.GMACs <= 0 {
		return fmt.Errorf("resizing is for models with multiply-accumulates an image, which %s has not", q.Model.Name)
	}
	if q.Zero < 0 || q.Zero > 3 {
		return fmt.Errorf("ZeRO stage %d: must be 0 to 3", q.Zero)
	}
	return nil
}

// cut returns the number of accelerators that each copy of the model is split over.
func (q Request) cut() float64 { return math.Max(1, q.TP) * math.Max(1, q.PP) }

// numbers refuses numbers out of their range, and fractions where a whole number is needed.
func (q Request) numbers() error {
	for _, f := range []struct {
		name     string
		v        float64
		min, max float64
		whole    bool
	}{
		{"accelerators (--gpu)", q.Count, 0, 1e6, true},
		{"sequence (--seq)", q.Seq, 0, 1e8, true},
		{"micro-batch (--micro)", q.Micro, 0, 1e7, false},
		{"global batch (--global)", q.Global, 0, 1e10, false},
		{"accumulation (--accumulate)", q.Gather, 0, 1e6, true},
		{"tensor parallel degree (--tp)", q.TP, 0, 1e4, true},
		{"pipeline stages (--pp)", q.PP, 0, 1e4, true},
		{"tokens (--tokens)", q.Tokens, 0, 1e17, false},
		{"epochs (--epochs)", q.Epochs, 0, 1e7, false},
		{"rows (--rows)", q.Rows, 0, 1e13, false},
		{"trees (--trees)", q.Trees, 0, 1e9, true},
		{"depth (--depth)", q.Depth, 0, 1e4, false},
		{"features (--features)", q.Features, 0, 1e7, true},
		{"price (--price)", q.Price, 0, 1e7, false},
	} {
		if math.IsNaN(f.v) || f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s of %g: must be from %g to %g", f.name, f.v, f.min, f.max)
		}
		if f.whole && f.v != math.Trunc(f.v) {
			return fmt.Errorf("%s of %g: must be a whole number", f.name, f.v)
		}
	}
	return nil
}

var taskOf = map[shape.Tuning]string{shape.LoRA: "finetune-lora", shape.QLoRA: "finetune-qlora",
	shape.Adapter: "finetune-adapter", shape.AdapterV2: "finetune-adapter-v2"}

// checkpointing is the name of what is kept of activations, as tables of runs write it.
var checkpointing = map[runs.Recompute]string{runs.KeepEnds: "full", runs.KeepSome: "selective", runs.KeepAll: "none"}

// Row returns the request as a row for the given count of an accelerator.
func (q Request) Row(chip hardware.Chip, count, micro float64) runs.Row {
	m := q.scaled()
	r := runs.Unstated()
	r.Given, r.Model, r.Family = &m, m.Name, string(m.Kind)
	r.Task = q.task(m.Kind)
	r.GPU, r.Spec, r.N, r.Precision, r.Source, r.Unit = chip.Name, chip.Name, count, q.Precision, q.Program, q.Unit
	if use, _, err := chip.Format(q.Precision); err == nil && m.Kind != shape.Trees {
		r.Precision = use
	}
	if q.Tuning == shape.QLoRA && !strings.Contains(r.Precision, "nf4") {
		r.Precision = chip.Sixteen() + "+nf4"
	}
	r.Decoded = q.Decoded
	if chip.Mem > 0 {
		r.GPUMem = chip.Mem
	}
	set := func(p *float64, v float64) {
		if v > 0 {
			*p = v
		}
	}
	set(&r.Seq, q.Seq)
	set(&r.Micro, micro)
	set(&r.Epochs, q.Epochs)
	set(&r.Rows, q.Rows)
	set(&r.TreeN, q.Trees)
	set(&r.Depth, q.Depth)
	set(&r.Features, cmp.Or(q.Features, m.Columns))
	set(&r.Tokens, q.Tokens/1e9)
	replicas := count / q.cut()
	if q.Global > 0 {
		r.Global = q.Global
	} else if micro > 0 {
		r.Global = micro * math.Max(1, q.Gather) * replicas
	}
	if v, ok := checkpointing[q.Keep]; ok {
		r.Ckpt = v
	}
	r.Sharding = []string{runs.Unshared, "zero1", "SHARD_GRAD_OP", "FULL_SHARD"}[q.Zero]
	r.Parallel = q.parallel()
	return r
}

// task is the name of what the training is for, as tables of runs write it.
func (q Request) task(kind shape.Kind) string {
	if t, ok := taskOf[q.Tuning]; ok {
		return t
	}
	if kind == shape.Transformer || kind == shape.Experts {
		return "pretrain"
	}
	return "train"
}

// parallel is how the model is cut, as tables of runs write it, such as TP=2 PP=4.
func (q Request) parallel() string {
	var cut []string
	if q.TP > 1 {
		cut = append(cut, fmt.Sprintf("TP=%g", q.TP))
	}
	if q.PP > 1 {
		cut = append(cut, fmt.Sprintf("PP=%g", q.PP))
	}
	return strings.Join(cut, " ")
}

// Programme holds what a number of runs a week needs, per week and per year of 52 weeks.
type Programme struct {
	Runs  float64 `json:"runs_per_week"`
	Hours *Range  `json:"hours_per_week"` // machine time, with all runs one after another
	Week  *Range  `json:"week_usd"`
	Year  *Range  `json:"year_usd"`
}

// Programme returns what the given number of these runs a week needs. The relative interval of a sum of runs with a
// common estimate equals that of each run.
func (a Answer) Programme(runs float64) Programme {
	p := Programme{Runs: runs}
	if a.Hours != nil {
		h := a.Hours.Times(runs)
		p.Hours = &h
	}
	if a.Cost != nil {
		w := a.Cost.Times(runs)
		y := w.Times(52)
		p.Week, p.Year = &w, &y
	}
	return p
}
