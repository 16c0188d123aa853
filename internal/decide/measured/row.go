package measured

import (
	"fmt"
	"strings"

	"scrimp/internal/estimate"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/launcher"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
)

// Own begins the source of runs that were measured here: estimates of one's own
// runs take them for runs of the same stack of programs.
const Own = "own"

// keeps are the ways of activation checkpointing that a job file may name.
var keeps = map[string]estimate.Recompute{"selective": estimate.KeepSome, "full": estimate.KeepEnds}

// Source is what runs of a job are learned under.
func Source(job string) string { return Own + "/" + job }

// Tunings are the ways to train that a job file may name.
var Tunings = map[string]shape.Tuning{"": shape.Full, "full": shape.Full, "lora": shape.LoRA, "qlora": shape.QLoRA}

// Shape is the model that a job of that name names, where that can be known without
// its files: by shape, by published name, by parameters. A model without a published
// name is called as the job is.
func Shape(name string, m spec.Model) (shape.Model, bool) {
	for _, what := range []string{m.Shape, m.Config} {
		if what == "" {
			continue
		}
		if k, ok := shape.Named(what); ok {
			return k, true
		}
		if k, err := modelfile.Spec(what); err == nil {
			k.Name = name
			return k, true
		}
	}
	if m.Parameters > 0 || m.Layers > 0 && m.Hidden > 0 {
		k := shape.Model{Name: name, Kind: shape.Transformer, Params: m.Parameters, Layers: float64(m.Layers),
			Dim: float64(m.Hidden)}
		if k.Params == 0 {
			k.FF = 4 * k.Dim
			k.Params, _ = k.Count(1)
		}
		return k, true
	}
	return shape.Model{}, false
}

// Sound says what is wrong with the numbers of a model that a job names: a figure that no model has, by which
// nothing could be estimated.
func Sound(m spec.Model) error {
	line := m.Shape
	if _, named := shape.Named(line); named {
		return nil
	}
	if line == "" && m.Config == "" {
		line = "transformer"
		if m.Parameters > 0 {
			line += fmt.Sprintf(" params=%g", m.Parameters)
		}
		if m.Layers > 0 {
			line += fmt.Sprintf(" layers=%d", m.Layers)
		}
		if m.Hidden > 0 {
			line += fmt.Sprintf(" dim=%d", m.Hidden)
		}
	}
	if line == "" {
		return nil
	}
	_, err := modelfile.Spec(line)
	return err
}

// Request is the run that a job file asks for, as the estimator takes it, on no
// accelerator in particular.
func Request(j spec.Job, trained shape.Model) estimate.Request {
	j, _ = j.Divided(j.Launcher()) // where they disagree the job is refused before it comes here
	m := j.Model
	q := estimate.Request{
		Model: trained, Precision: m.Precision, Micro: float64(m.Batch), Seq: float64(m.Sequence),
		Tuning: Tunings[m.Tuning],
		Zero:   launcher.Stage(m.Sharding), TP: float64(m.Tensor), PP: float64(m.Pipeline), Keep: keeps[m.Checkpointing],
		Features: float64(m.Features),
		Tokens:   float64(j.Work.Tokens), Rows: float64(j.Work.Samples), Epochs: j.Work.Epochs, Program: Source(j.Name),
	}
	if q.Precision == "" {
		q.Precision = "bf16"
	}
	if trained.Kind == shape.Trees {
		q.Trees = float64(j.Work.Steps) // a tree is what a step adds
	}
	if trained.Text() && q.Seq == 0 {
		q.Seq = q.Model.Seq()
	}
	if q.Rows > 0 && q.Epochs == 0 {
		q.Epochs = 1
	}
	return q
}

// Checkpoint is about how large a checkpoint of training is, and 0 where the number
// of parameters is not known: weights in 32 bit and the two moments of Adam, 12 bytes a
// parameter that is trained; of small matrices beside frozen weights 0.2 % are.
//
// Worked: Llama-3-8B, all of it: 8.03e9 · 12 = 96 GB; LoRA 0.19 GB.
func Checkpoint(m shape.Model, t shape.Tuning) size.Bytes {
	trained := m.Params
	if t != shape.Full {
		trained *= 0.002
	}
	if !(trained > 0) || trained > 1e15 {
		return 0
	}
	return size.Bytes(12 * trained)
}

// Row is the run in the form that estimates learn from. It is false where its
// model, its accelerator or its throughput is not known.
func (r Run) Row(chips estimate.Chips) (estimate.Row, bool) {
	chip, known := chips.Find(r.Accelerator)
	if r.Model == nil || !known || r.Accelerators < 1 || r.Throughput == nil || !(*r.Throughput > 0) {
		return estimate.Row{}, false
	}
	name := strings.TrimSuffix(r.Name, suffix)
	m, ok := Shape(name, *r.Model)
	if !ok {
		return estimate.Row{}, false
	}
	q := Request(spec.Job{Name: name, Model: *r.Model, Work: r.Work}, m)
	q.Unit, q.Chip, q.Count = r.Unit, chip.Name, float64(r.Accelerators)
	if q.Micro == 0 { // a batch that is not stated is the largest that fits, as in every estimate
		if o, err := estimate.New(chips, nil, nil).Answer(q); err == nil {
			q.Micro = o.Micro
		}
	}
	row := q.Row(chip, q.Count, q.Micro)
	row.ID, row.Throughput = r.Job, *r.Throughput
	if r.PeakMemory != nil {
		row.Mem, row.MemUnit = *r.PeakMemory, "GB"
	}
	return row, true
}

// Rows are the rows of the runs that have one.
func Rows(runs []Run, chips estimate.Chips) []estimate.Row {
	var rows []estimate.Row
	for _, r := range runs {
		if row, ok := r.Row(chips); ok {
			rows = append(rows, row)
		}
	}
	return rows
}
