package estimate

import (
	"cmp"
	"errors"
	"slices"

	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// options returns the accelerators that hold the run, cheapest first, among the given kinds or all with a price.
func options(e *estimate.Estimator, q estimate.Request, kinds []string) ([]estimate.Option, error) {
	if len(kinds) == 0 {
		return e.Options(q)
	}
	var list []estimate.Option
	var lacking error
	for _, k := range kinds {
		q.Chip = k
		o, err := e.Answer(q)
		if errors.Is(err, estimate.ErrPrecision) {
			lacking = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if o.Throughput != nil && (o.Fits == nil || *o.Fits) {
			list = append(list, o)
		}
	}
	if len(list) == 0 && lacking != nil {
		return nil, lacking
	}
	slices.SortStableFunc(list, func(x, y estimate.Option) int {
		if x.Cost == nil || y.Cost == nil {
			return cmp.Compare(y.Throughput.Value, x.Throughput.Value)
		}
		return cmp.Compare(x.Cost.Value, y.Cost.Value)
	})
	return list, nil
}

// knob is a flag or a combination of flags that changes the training method.
type knob struct {
	flag string
	on   bool // it changes something
	set  func(*estimate.Request)
}

// Changes that knobs make.
func share(x *estimate.Request)     { x.Zero = 3 }
func recompute(x *estimate.Request) { x.Keep = runs.KeepEnds }
func lora(x *estimate.Request)      { x.Tuning = shape.LoRA }

// knobs returns the flags that would make a transformer fit, or cost less than least dollars (0 for any cost), each
// with its cheapest option. For LoRA and QLoRA it proposes the first variant that works: alone, with recomputed
// activations, and also with sharded weights.
func (f *estimateFlags) knobs(e *estimate.Estimator, q estimate.Request, least float64) []sizing.Knob {
	if !q.Model.Text() {
		return nil
	}
	var list []sizing.Knob
	try := func(ways ...knob) {
		for _, k := range ways {
			if !k.on {
				continue
			}
			if o, ok := turned(e, q, f.kinds, k, least); ok {
				list = append(list, sizing.Knob{Flag: k.flag, Option: o})
				return
			}
		}
	}
	shares, keeps := q.Zero < 3 && q.Count != 1, q.Keep != runs.KeepEnds
	both := func(x *estimate.Request) { share(x); recompute(x) }
	try(knob{"--zero 3", shares, share})
	try(knob{"--checkpointing full", keeps, recompute})
	try(knob{"--zero 3 --checkpointing full", shares && keeps, both})
	for _, t := range []struct {
		flag string
		on   bool
		set  func(*estimate.Request)
	}{{"--lora", q.Tuning == shape.Full, lora}, {"--qlora", q.Tuning != shape.QLoRA, f.trainQLoRA}} {
		with := func(more func(*estimate.Request)) func(*estimate.Request) {
			return func(x *estimate.Request) { t.set(x); more(x) }
		}
		try(knob{t.flag, t.on, t.set},
			knob{t.flag + " --checkpointing full", t.on && keeps, with(recompute)},
			knob{t.flag + " --zero 3 --checkpointing full", t.on && shares, with(both)})
	}
	return list
}

// turned returns the cheapest option with a knob, and false if the run then fits nowhere or costs no less.
func turned(e *estimate.Estimator, q estimate.Request, kinds []string, k knob, least float64) (o estimate.Option,
	ok bool) {
	x := q
	k.set(&x)
	if x.Chip != "" {
		one, err := e.Answer(x)
		o, ok = one, err == nil && (one.Fits == nil || *one.Fits)
	} else if found, err := options(e, x, kinds); err == nil && len(found) > 0 { // an invalid run is no proposal
		o, ok = found[0], true
	}
	ok = ok && (x.Zero == q.Zero || o.Count > 1) // one accelerator cannot share anything
	return o, ok && (least == 0 || o.Cost != nil && o.Cost.Value <= 0.98*least)
}
