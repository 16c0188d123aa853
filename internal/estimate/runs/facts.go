package runs

import (
	"fmt"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/accelerator"
)

// Count returns the number of accelerators, 1 if it is not stated.
func (r Row) Count() float64 {
	if Known(r.N) && r.N >= 1 {
		return r.N
	}
	return 1
}

// Accelerator returns the most exact name of the accelerator that the row states.
func (r Row) Accelerator() string {
	if r.Spec != "" {
		return r.Spec
	}
	return r.GPU
}

// ThroughputUnit returns the unit of the row's throughput, by default that of its model.
func (r Row) ThroughputUnit() string {
	if r.Unit != "" {
		return r.Unit
	}
	switch shape.Kind(r.Family) {
	case shape.Trees:
		return "row-trees/s"
	case shape.Conv, shape.Detect:
		return "images/s"
	case shape.Transformer, shape.Experts, shape.Recurrent, shape.Segments:
		return "tokens/s"
	case shape.Recommend:
	}
	return "samples/s"
}

// Work returns the run's work in units of throughput, and false if the row does not state it: tokens, epochs times
// rows, or rows times trees.
func (r Row) Work() (units float64, ok bool) {
	u := r.ThroughputUnit()
	switch {
	case u == "row-trees/s":
		return r.Rows * r.TreeN, Known(r.Rows) && Known(r.TreeN)
	case strings.HasSuffix(u, "tokens/s") && Known(r.Tokens):
		return r.Tokens * 1e9, true
	case Known(r.Tokens) && Known(r.Seq) && r.Seq > 0 &&
		(strings.HasPrefix(u, "sequences") || strings.HasPrefix(r.Family, "transformer")):
		return r.Tokens * 1e9 / r.Seq, true
	case Known(r.Epochs) && Known(r.Rows):
		units = r.Epochs * r.Rows
		if strings.HasSuffix(u, "tokens/s") {
			return units * r.Seq, Known(r.Seq)
		}
		return units, true
	}
	return 0, false
}

// Label describes the run for a reader.
func (r Row) Label() string {
	s := r.Model
	if Known(r.N) && r.N > 0 && r.GPU != "" {
		s += fmt.Sprintf(" on %g %s", r.N, r.GPU)
	} else if r.Machine != "" {
		s += " on " + r.Machine
	}
	if st := r.Stack(); st != "" {
		s += " (" + strings.TrimPrefix(st, "github.com/") + ")"
	}
	return s
}

// Chip returns the accelerator of a row. If the catalogue does not have its name, taken describes the stand-in; guessed
// is set if nothing is known about it.
func (r Row) Chip(chips hardware.Chips) (c hardware.Chip, ok bool, taken string, guessed bool) {
	if c, ok = chips.Find(r.Spec, r.GPU); ok || r.Spec == "" && r.GPU == "" {
		return c, ok, "", false
	}
	if accelerator.IsPart(r.Spec) || accelerator.IsPart(r.GPU) {
		return c, false, "", false
	}
	for _, n := range []string{r.Spec, r.GPU} {
		if c, ok = chips.Meant(n, Or(r.GPUMem, 0)); ok {
			return c, true, n + " is taken for " + c.Name, false
		}
	}
	if c, ok = chips.StandIn(Or(r.GPUMem, 0)); ok {
		return c, true, "nothing is known of the accelerator " + r.Accelerator() + ": it is taken for one like " +
			c.Name, true
	}
	return c, false, "", false
}

// Measured returns the measured throughput of the whole job in the row's unit: as published, or from a published rate
// of operations.
func (r Row) Measured(m shape.Model, per float64) (float64, bool) {
	n := Or(r.N, 1)
	if n < 1 {
		n = 1
	}
	switch {
	case Known(r.Throughput) && r.Throughput > 0:
		return r.Throughput, true
	case Known(r.PerGPU) && r.PerGPU > 0:
		return r.PerGPU * n, true
	case r.Task == "pretrain" && Known(r.TFLOPS) && r.TFLOPS > 0 && m.Params > 0:
		return r.TFLOPS * 1e12 * n / per, true
	case Known(r.Tokens) && Known(r.GPUHours) && r.GPUHours > 0 && r.Tokens > 0:
		return r.Tokens * 1e9 / (r.GPUHours * 3600) * n, true
	}
	return 0, false
}

// PeakGB returns the measured memory, in GB of 1e9 bytes.
func (r Row) PeakGB() (float64, bool) {
	if !Known(r.Mem) || r.Mem <= 0 {
		return 0, false
	}
	return r.Mem * r.UnitGB(), true
}

// UnitGB returns the row's unit of memory in GB of 1e9 bytes.
func (r Row) UnitGB() float64 {
	if strings.EqualFold(r.MemUnit, "GiB") {
		return 1.073741824
	}
	return 1
}

// Unshared is the sharding of a run that states none; "" does not state it.
const Unshared = "NO_SHARD"
