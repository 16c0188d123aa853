package estimate

import (
	"cmp"
	"slices"

	"scrimp/internal/cli/show"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/shape"
)

// options are the accelerators that hold the run, the cheapest first: of those kinds,
// or all that have a price.
func options(e *estimate.Estimator, q estimate.Request, kinds []string) ([]estimate.Option, error) {
	if len(kinds) == 0 {
		return e.Options(q)
	}
	var list []estimate.Option
	for _, k := range kinds {
		q.Chip = k
		o, err := e.Answer(q)
		if err != nil {
			return nil, err
		}
		if o.Throughput != nil && (o.Fits == nil || *o.Fits) {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(x, y estimate.Option) int {
		if x.Cost == nil || y.Cost == nil {
			return cmp.Compare(y.Throughput.Value, x.Throughput.Value)
		}
		return cmp.Compare(x.Cost.Value, y.Cost.Value)
	})
	return list, nil
}

// knobs are the flags by which a transformer would fit, or cost less than least dollars
// (0: whatever it costs), each with the cheapest that it leads to.
func knobs(e *estimate.Estimator, q estimate.Request, kinds []string, least float64) []show.Knob {
	if q.Model.Kind != shape.Transformer && q.Model.Kind != shape.Experts {
		return nil
	}
	var list []show.Knob
	for _, k := range []struct {
		flag string
		on   bool
		set  func(*estimate.Request)
	}{
		{"--zero 3", q.Zero < 3, func(x *estimate.Request) { x.Zero = 3 }},
		{"--checkpointing full", q.Keep != estimate.KeepEnds, func(x *estimate.Request) { x.Keep = estimate.KeepEnds }},
		{"--zero 3 --checkpointing full", q.Zero < 3 && q.Keep != estimate.KeepEnds, func(x *estimate.Request) {
			x.Zero, x.Keep = 3, estimate.KeepEnds
		}},
		{"--lora", q.Tuning == shape.Full, func(x *estimate.Request) { x.Tuning = shape.LoRA }},
		{"--qlora", q.Tuning != shape.QLoRA, func(x *estimate.Request) { x.Tuning = shape.QLoRA }},
	} {
		if !k.on {
			continue
		}
		x := q
		k.set(&x)
		var found []estimate.Option
		if x.Chip != "" {
			if o, err := e.Answer(x); err == nil && (o.Fits == nil || *o.Fits) {
				found = append(found, o)
			}
		} else {
			found, _ = options(e, x, kinds) // what is no run at all is no proposal
		}
		if len(found) == 0 || least > 0 && (found[0].Cost == nil || found[0].Cost.Value > 0.98*least) {
			continue
		}
		list = append(list, show.Knob{Flag: k.flag, Option: found[0]})
	}
	return list
}
