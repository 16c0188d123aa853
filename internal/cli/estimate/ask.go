package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/cli/pastruns"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/accelerator"
)

// ask converts the flags to a request, and a measurement to a run.
func (f *estimateFlags) ask(chips hardware.Chips) (q estimate.Request, own []runs.Row, err error) {
	q = estimate.Request{
		Precision: f.precision, Seq: f.seq, Micro: f.micro, Global: f.global, Gather: f.gather, Zero: f.zero,
		TP: f.tp, PP: f.pp,
		Epochs: f.epochs, Trees: f.trees, Depth: f.depth, Features: f.features,
		Decoded: f.decoded, Program: f.program, Price: f.price,
	}
	for _, read := range []func(*estimate.Request) error{f.counts, f.tuning} {
		if err := read(&q); err != nil {
			return q, nil, err
		}
	}
	if q.Pixels, err = stages(f.resize); err != nil {
		return q, nil, err
	}
	if q.Rows > 0 && q.Epochs == 0 {
		q.Epochs = 1
	}
	if err := f.accelerator(&q, chips); err != nil {
		return q, nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(f.model), "measured:") {
		r, m, err := physics.ParseMeasured(f.model, chips)
		if err != nil {
			return q, nil, fmt.Errorf("--model %w", err)
		}
		q.Model, q.Program, q.Unit = m, r.Source, r.Unit
		if q.Count == 0 && q.Chip == r.GPU {
			q.Count = r.N
		}
		return q, []runs.Row{r}, nil
	}
	q.Model, err = pastruns.ModelOf(f.model)
	if q.Seq == 0 && q.Model.Text() {
		q.Seq = q.Model.Seq()
	}
	if q.Model.Image {
		q.Unit = "images/s"
	}
	return q, nil, err
}

// counts checks and reads the numeric flags.
func (f *estimateFlags) counts(q *estimate.Request) (err error) {
	for _, n := range []struct {
		flag string
		v    float64
	}{{"--tp", f.tp}, {"--pp", f.pp}, {"--accumulate", f.gather}} {
		if !(n.v >= 1) {
			return fmt.Errorf("%s %g: must be a whole number from 1 up", n.flag, n.v)
		}
	}
	for _, n := range []struct {
		flag, text string
		to         *float64
	}{{"--tokens", f.tokens, &q.Tokens}, {"--rows", f.rows, &q.Rows}} {
		if n.text == "" {
			continue
		}
		if *n.to, err = modelfile.Number(n.text); err != nil {
			return fmt.Errorf("%s %w, such as 2B, 350M or 1e9", n.flag, err)
		}
	}
	return nil
}

// tuning reads the training method: recomputation, tuned weights and their format.
func (f *estimateFlags) tuning(q *estimate.Request) error {
	var ok bool
	if q.Keep, ok = map[string]runs.Recompute{"": runs.KeepAll, "none": runs.KeepAll,
		"selective": runs.KeepSome, "full": runs.KeepEnds}[f.checkpointing]; !ok {
		return fmt.Errorf("--checkpointing %q is not one of none, selective, full", f.checkpointing)
	}
	switch {
	case f.lora && f.qlora:
		return errors.New("--lora and --qlora are two ways: give one")
	case f.lora:
		q.Tuning = shape.LoRA
	case f.qlora:
		f.trainQLoRA(q)
	}
	if !slices.Contains(formats, strings.ToLower(f.precision)) {
		return fmt.Errorf("--precision %q is not one of %s", f.precision, strings.Join(formats, ", "))
	}
	return nil
}

// trainQLoRA sets QLoRA, with activation checkpointing unless --checkpointing says otherwise.
func (f *estimateFlags) trainQLoRA(q *estimate.Request) {
	if q.Tuning = shape.QLoRA; f.checkpointing == "" {
		q.Keep = runs.KeepEnds
	}
}

// accelerator parses --gpu: a name with an optional count. A name that is sold in several forms selects all of them.
func (f *estimateFlags) accelerator(q *estimate.Request, chips hardware.Chips) (err error) {
	name, count, counted := strings.Cut(f.gpu, ":")
	if counted {
		if q.Count, err = strconv.ParseFloat(count, 64); err != nil || q.Count < 1 || q.Count > 1e6 {
			return fmt.Errorf("--gpu %q: %q is not a number of accelerators", f.gpu, count)
		}
	}
	if q.Count == 1 && q.Zero > 0 {
		return fmt.Errorf("--zero %d: one accelerator cannot share anything: leave it out, or give --gpu %s:2", q.Zero,
			cmp.Or(name, "KIND"))
	}
	if name == "" {
		return nil
	}
	if q.Chip, err = chips.Name(name); err == nil {
		return nil
	}
	for _, k := range accelerator.Accelerators() {
		if accelerator.Matches(name, k.Name) {
			f.kinds = append(f.kinds, k.Name)
		}
	}
	if len(f.kinds) == 0 {
		return fmt.Errorf("--gpu %w", err)
	}
	return nil
}
