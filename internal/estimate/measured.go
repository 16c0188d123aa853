package estimate

import (
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/estimate/shape"
)

// ParseMeasured reads what somebody measured: "120 samples/s on L4", "3500
// tokens/s on 8 A100-SXM-80GB". It is the run and the model it stands for: one
// of which no more is known than the operations a unit that this rate implies.
func ParseMeasured(line string, chips Chips) (Row, shape.Model, error) {
	bad := func(why string) (Row, shape.Model, error) {
		return Row{}, shape.Model{}, fmt.Errorf("measured %q: %s; write it as \"measured: 120 samples/s on L4\" or \"measured: 3500 tokens/s on 8 A100-SXM-80GB\"", line, why)
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
			return bad(fmt.Sprintf("%s is no number of accelerators", w[3]))
		}
	}
	kind := w[len(w)-1]
	c, ok := chips.Find(kind)
	if !ok {
		return bad(fmt.Sprintf("nothing is known of the accelerator %s", kind))
	}
	peak, ok := c.Peak(Half)
	if !ok {
		return bad(fmt.Sprintf("the rate of %s is not known", kind))
	}
	m := shape.Model{Name: "measured", Kind: "measured", Source: "as measured"}
	r := Unstated()
	r.Family, r.Task, r.Model, r.Source = "measured", "train", "measured", "own"
	r.GPU, r.Spec, r.N, r.Unit, r.Throughput = c.Name, c.Name, n, w[1], rate
	m.Params = constants.product * c.ceiling() * peak * 1e12 * n / rate / 6
	r.Given = &m
	return r, m, nil
}
