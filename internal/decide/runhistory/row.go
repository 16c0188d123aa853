package runhistory

import (
	"fmt"
	"strings"

	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/launcher"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
)

// Own is the prefix of the source of runs measured here. Estimates assume the same software stack for all of the
// user's own runs.
const Own = "own"

// keeps maps the names of activation checkpointing in a job file.
var keeps = map[string]runs.Recompute{"selective": runs.KeepSome, "full": runs.KeepEnds}

// Source returns the source under which estimates learn from the runs of a job.
func Source(job string) string { return Own + "/" + job }

// Tunings maps the names of training methods in a job file.
var Tunings = map[string]shape.Tuning{"": shape.Full, "full": shape.Full, "lora": shape.LoRA, "qlora": shape.QLoRA}

// Shape returns the model of a job if it is known without the model's files: by shape, by published name or by
// parameters. A model without a published name gets the name of the job.
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

// Sound returns an error if a model's figures are impossible, since no estimate could use them.
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

// keepOf returns what the backward pass computes again. Programs that train QLoRA recompute activations unless they are
// configured otherwise (prepare_model_for_kbit_training of PEFT).
func keepOf(m spec.Model) runs.Recompute {
	if m.Checkpointing == "" && Tunings[m.Tuning] == shape.QLoRA {
		return runs.KeepEnds
	}
	return keeps[m.Checkpointing]
}

// Request builds the estimator's request for a job, without an accelerator.
func Request(j spec.Job, trained shape.Model) estimate.Request {
	j, _ = j.Divided(j.Launcher()) // a job with a contradiction was refused earlier
	m := j.Model
	q := estimate.Request{
		Model: trained, Precision: m.Precision, Micro: float64(m.Batch), Seq: float64(m.Sequence),
		Tuning: Tunings[m.Tuning],
		Zero:   launcher.Stage(m.Sharding), TP: float64(m.Tensor), PP: float64(m.Pipeline), Keep: keepOf(m),
		Features: float64(m.Features),
		Tokens:   float64(j.Work.Tokens), Rows: float64(j.Work.Samples), Epochs: j.Work.Epochs, Program: Source(j.Name),
	}
	if q.Precision == "" {
		q.Precision = "bf16"
	}
	if trained.Kind == shape.Trees {
		q.Trees = float64(j.Work.Steps) // a step adds one tree
	}
	if trained.Text() && q.Seq == 0 {
		q.Seq = q.Model.Seq()
	}
	if q.Rows > 0 && q.Epochs == 0 {
		q.Epochs = 1
	}
	return q
}

// Checkpoint returns the approximate size of a training checkpoint; 0 if the number of parameters is unknown. It
// counts 12 bytes per trained parameter: the weights in 32 bits and the two moments of Adam. With adapters, 0.2 %
// of the parameters are trained.
//
// Example: Llama-3-8B, full training: 8.03e9 · 12 = 96 GB; LoRA: 0.19 GB.
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

// Row returns the run in the form that estimates learn from. It returns false if the model, the accelerator or the
// throughput is unknown.
func (r Run) Row(chips hardware.Chips) (runs.Row, bool) {
	chip, known := chips.Find(r.Accelerator)
	if r.Model == nil || !known || r.Accelerators < 1 || r.Throughput == nil || !(*r.Throughput > 0) {
		return runs.Row{}, false
	}
	name := strings.TrimSuffix(r.Name, suffix)
	m, ok := Shape(name, *r.Model)
	if !ok {
		return runs.Row{}, false
	}
	q := Request(spec.Job{Name: name, Model: *r.Model, Work: r.Work}, m)
	q.Unit, q.Chip, q.Count = r.Unit, chip.Name, float64(r.Accelerators)
	if q.Micro == 0 { // an unstated batch is the largest that fits, as in every estimate
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

// Rows returns the rows of the runs that have one.
func Rows(list []Run, chips hardware.Chips) []runs.Row {
	var rows []runs.Row
	for _, r := range list {
		if row, ok := r.Row(chips); ok {
			rows = append(rows, row)
		}
	}
	return rows
}
