package physics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Rated is the kind of a model with only a known rate.
const Rated shape.Kind = "measured"

// Bound returns the seconds per unit of a model with only a known rate, and their uncertainty, in ln: the bottleneck is
// unknown. If it were computing alone, another accelerator would be faster by its rate of operations; if it were memory
// alone, by its bandwidth. Params and Acts are set so that each takes half the time where the rate was measured. bound
// returns the middle of both, and the range goes from one to the other.
//
// Example: L4 to A10G, 121 to 70e12 operations a second and 300 to 600 GB/s: 0.58 or 2 times as fast, so 1.08, give or
// take a factor of 1.86.
func (k *Constants) Bound(m shape.Model, rate, band, wide float64) (t, off float64) {
	products := 6 * m.Params / (k.Product * rate)
	moved := m.Acts * 1e6 * wide * k.Passes / band
	if !(moved > 0) || math.IsInf(moved, 1) {
		return 2 * products, 0
	}
	return 2 * math.Sqrt(products*moved), math.Abs(math.Log(products/moved)) / 2
}

// ParseMeasured parses a measurement: "120 samples/s on L4", "3500 tokens/s on 8 A100-SXM-80GB". It returns the run,
// and a model that has only the operations per unit that this rate implies.
func ParseMeasured(line string, chips hardware.Chips) (runs.Row, shape.Model, error) {
	bad := func(why string) (runs.Row, shape.Model, error) {
		return runs.Row{}, shape.Model{},
			fmt.Errorf("measured %q: %s; write it as \"measured: 120 samples/s on L4\" or \"measured: 3500 tokens/s "+
				"on 8 A100-SXM-80GB\"", line, why)
	}
	w := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "measured:"))
	if len(w) < 4 || w[2] != "on" || len(w) > 5 {
		return bad("not in its form")
	}
	rate, err := strconv.ParseFloat(w[0], 64)
	if err != nil || !(rate > 0) || rate > 1e15 {
		return bad(fmt.Sprintf("%s is no rate above zero", w[0]))
	}
	if !strings.HasSuffix(w[1], "/s") {
		return bad(fmt.Sprintf("%s is no unit a second", w[1]))
	}
	n := 1.0
	if len(w) == 5 {
		if n, err = strconv.ParseFloat(w[3], 64); err != nil || n < 1 || n > 1e6 {
			return bad(fmt.Sprintf("%s is not a number of accelerators", w[3]))
		}
	}
	kind := w[len(w)-1]
	c, ok := chips.Find(kind)
	if !ok {
		return bad(fmt.Sprintf("nothing is known of the accelerator %s", kind))
	}
	peak, ok := c.Peak(hardware.Half)
	if !ok {
		return bad(fmt.Sprintf("the rate of %s is not known", kind))
	}
	m := shape.Model{Name: "measured", Kind: Rated, Source: "as measured"}
	r := runs.Unstated()
	r.Family, r.Task, r.Model, r.Source = "measured", "train", "measured", "own"
	r.GPU, r.Spec, r.N, r.Unit, r.Throughput = c.Name, c.Name, n, w[1], rate
	m.Params = Fitted.Product * c.Ceiling() * peak * 1e12 * n / rate / 6 / 2
	m.Acts = c.Band * 1e9 * n / rate / (2 * Fitted.Passes * 1e6) / 2
	m.Note = "whether computing or memory bounds it is not known: it is taken for as much of both, and the range " +
		"holds either"
	r.Given = &m
	return r, m, nil
}
