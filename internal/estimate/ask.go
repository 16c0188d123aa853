package estimate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"scrimp/internal/estimate/shape"
)

// Request is a run as a user states it. Zero is unknown, except where a field says
// what zero means.
type Request struct {
	Model     shape.Model
	Chip      string // accelerator; "" asks for every one with a price
	Count     float64
	Precision string
	Seq       float64
	Micro     float64 // samples an accelerator takes in at a time; 0: the largest power of two that fits
	Global    float64 // samples a step; 0: micro × accumulate × replicas
	Gather    float64 // accumulation: micro-batches a step; 0: one
	Keep      Recompute
	Zero      int // ZeRO stage, 0 to 3
	Tuning    shape.Tuning
	TP, PP    float64
	Tokens    float64
	Epochs    float64
	Rows      float64
	Trees     float64
	Depth     float64
	Features  float64  // columns of the table that boosted trees are grown on; 0: a dozen
	Host      *Machine // that carries the accelerators; nil: what is for sale, or one of which nothing is known
	Decoded   bool     // the host's processors decode no images
	Pixels    []Stage  // progressive resizing, for models stated at 224; none: as stated
	Unit      string   // of throughput; "": what is usual for the model
	Program   string   // where the runs of the same program come from
	Price     float64  // dollars an hour for all accelerators together; 0: list price
}

// Stage is a part of a training in which images have a size.
type Stage struct{ Pixels, Share float64 }

// scaled is the model at the sizes of progressive resizing: work grows with the
// square of the size, so half the epochs at 128 and half at 224 cost 0.66.
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

// Check refuses what no run can be: the field, why, and what it must be.
func (q Request) Check() error {
	if err := q.numbers(); err != nil {
		return err
	}
	if d := q.cut(); q.Count > 0 && math.Mod(q.Count, d) != 0 {
		return fmt.Errorf("%g accelerators are no multiple of tensor parallel degree × pipeline stages, %g", q.Count, d)
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

// cut is over how many accelerators the model is cut.
func (q Request) cut() float64 { return math.Max(1, q.TP) * math.Max(1, q.PP) }

// numbers refuses numbers that are outside their range, or not whole where they must be.
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
var checkpointing = map[Recompute]string{KeepEnds: "full", KeepSome: "selective", KeepAll: "none"}

// Row is the request on so many of an accelerator.
func (q Request) Row(chip Chip, count, micro float64) Row {
	m := q.scaled()
	r := Unstated()
	r.Given, r.Model, r.Family = &m, m.Name, string(m.Kind)
	r.Task = q.task(m.Kind)
	r.GPU, r.Spec, r.N, r.Precision, r.Source, r.Unit = chip.Name, chip.Name, count, q.Precision, q.Program, q.Unit
	if use, _, err := chip.format(q.Precision); err == nil && m.Kind != shape.Trees {
		r.Precision = use
	}
	if q.Tuning == shape.QLoRA && !strings.Contains(r.Precision, "nf4") {
		r.Precision = chip.half() + "+nf4"
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
	r.Sharding = []string{unshared, "zero1", "SHARD_GRAD_OP", "FULL_SHARD"}[q.Zero]
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

// Programme is what a number of experiments like one run need, a week and a year
// of 52 weeks.
type Programme struct {
	Runs  float64 `json:"runs_per_week"`
	Hours *Range  `json:"hours_per_week"` // of the machine, all runs after one another
	Week  *Range  `json:"week_usd"`
	Year  *Range  `json:"year_usd"`
}

// Programme is what so many of these runs a week need. The interval of a sum of
// runs that share one estimate is as wide as that of each.
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
