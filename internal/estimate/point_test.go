package estimate

import (
	"math"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
)

func TestTreeRate_ScalesWithRowsAndLevels(t *testing.T) {
	chips := hardware.Catalogued()
	base := func(change func(*runs.Row)) float64 {
		r := runs.Unstated()
		r.Family, r.Model, r.N, r.Machine, r.Rows, r.TreeN, r.Depth = "gbdt", "lightgbm", 0, "r4.8xlarge", 1e7, 100, 10
		change(&r)
		n := &names{}
		return math.Exp(-describe(r, chips, n).Base) // seconds per row and tree
	}
	worked := base(func(*runs.Row) {})
	if math.Abs(worked/3.33e-8-1) > 0.01 {
		t.Errorf("the worked number is 3.33e-8 s, it is %.3g", worked)
	}
	for what, c := range map[string]struct {
		change    func(*runs.Row)
		low, high float64
	}{
		"twice the cores":       {func(r *runs.Row) { r.Machine = "m5.16xlarge" }, 0.5, 0.6}, // 32 instead of 16
		"half the depth":        {func(r *runs.Row) { r.Depth = 5 }, 0.5, 0.6},
		"a hundredth of rows":   {func(r *runs.Row) { r.Rows = 1e5 }, 5, 10},
		"V100":                  {func(r *runs.Row) { r.GPU, r.N = "V100-SXM2-16GB", 1 }, 0.5, 0.6},
		"a machine of no name":  {func(r *runs.Row) { r.Machine = "" }, 1, 1},
		"a machine of odd name": {func(r *runs.Row) { r.Machine = "x.-3xlarge" }, 1, 1},
	} {
		if got := base(c.change) / worked; got < c.low || got > c.high {
			t.Errorf("%s: %.3f of the time, not %g to %g", what, got, c.low, c.high)
		}
	}
}

func TestMeant_FindsAcceleratorBySpelling(t *testing.T) {
	chips := hardware.Catalogued()
	for name, c := range map[string]struct {
		mem  float64
		want string
	}{
		"NVIDIA A100-SXM4-80GB":    {0, "A100-SXM-80GB"},
		"nvidia a100 pcie 40gb":    {0, "A100-PCIe-40GB"},
		"A100":                     {40, "A100-SXM-40GB"},
		"Tesla V100-SXM2-32GB":     {0, "V100-SXM2-32GB"},
		"NVIDIA GeForce RTX 4090":  {0, "RTX4090"},
		"NVIDIA H100 80GB HBM3":    {80, "H100-SXM-80GB"},
		"h100-nvl":                 {0, "H100-NVL-94GB"},
		"AMD Instinct MI300X":      {0, "MI300X"},
		"Zeta":                     {24, ""},
		"":                         {24, ""},
		"NVIDIA":                   {24, ""},
		"A1000 of another company": {24, ""},
	} {
		got, ok := chips.Meant(name, c.mem)
		if got.Name != c.want || ok != (c.want != "") {
			t.Errorf("%q is taken for %q, it is %q", name, got.Name, c.want)
		}
	}
	if c, ok := chips.StandIn(24); !ok || math.Abs(math.Log(c.Mem/24)) > 0.35 {
		t.Errorf("with 24 GB it stands for %+v", c)
	}
}
