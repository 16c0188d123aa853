// Package hardware has the figures of accelerators and machines that the speed and price of a run depend on.
package hardware

import (
	"fmt"
	"sort"
	"strings"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/accelerator"
)

// Precision is the arithmetic of the matrix products.
type Precision string

// Classes of precision. Within a class the names differ by publisher (amp, bf16, bf16-true; FP8-CS, MXFP8), and a
// learned correction distinguishes them.
const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	Half Precision = "16"
	FP8  Precision = "fp8"
	FP4  Precision = "fp4"
)

// ParsePrecision parses a publisher's name. A run without one counts as 16-bit mixed precision, the standard today.
func ParsePrecision(s string, tensor32 bool) Precision {
	s = strings.ToLower(s)
	switch {
	case strings.Contains(s, "nvfp4") || strings.Contains(s, "fp4") && !strings.Contains(s, "nf4"):
		return FP4
	case strings.Contains(s, "fp8"):
		return FP8
	case strings.HasPrefix(s, "tf32") && tensor32:
		return TF32
	case s == "tf32/fp32", s == "fp32", s == "32", s == "tf32", s == "32-true", s == "float32":
		return FP32
	}
	return Half
}

// Chip holds an accelerator's figures, from its data sheet or measured. Zero is unknown. Rates are dense, in 1e12
// operations a second.
type Chip struct {
	Name   string
	Arch   string
	Vendor string
	Mem    float64 // GB
	Band   float64 // memory bandwidth, GB/s
	FP32   float64
	TF32   float64
	Half   float64
	FP8    float64
	FP4    float64
	Link   float64 // to its neighbours in the machine, GB/s one way
	Matmul float64 // best measured 16-bit matrix product, in 1e12/s
}

// Peak returns the dense rate in a precision, or in the next wider one that the chip has.
func (c Chip) Peak(p Precision) (float64, bool) {
	var ladder []float64
	switch p {
	case FP32:
		ladder = []float64{c.FP32}
	case FP4:
		ladder = []float64{c.FP4, c.FP8, c.Half}
	case FP8:
		ladder = []float64{c.FP8, c.Half}
	case Half:
		ladder = []float64{c.Half, c.TF32, c.FP32}
	case TF32:
		ladder = []float64{c.TF32, c.FP32}
	}
	for _, v := range ladder {
		if v > 0 {
			return v, true
		}
	}
	return 0, false
}

// noBF16 lists the architectures without bfloat16: it came with Ampere (NVIDIA A100 white paper, 2020).
var noBF16 = map[string]bool{"pascal": true, "volta": true, "turing": true}

// Format returns the format in which the accelerator trains a run that requests one: the same, or the nearest that it
// has, with the reason. It returns an error if no format would do: a run in 8 bits is not the same run in 16.
func (c Chip) Format(asked string) (use, why string, err error) {
	low := strings.ToLower(asked)
	missing := func(format string) error {
		return fmt.Errorf("%s multiplies no %s: give a precision that it has, such as %s", c.Name, format, c.Sixteen())
	}
	switch class := ParsePrecision(asked, true); {
	case class == FP8 && (c.FP8 <= 0 || strings.HasPrefix(low, "mx") && c.Arch != "blackwell"):
		return "", "", missing(low)
	case class == FP4 && c.FP4 <= 0:
		return "", "", missing(low)
	case class == TF32 && c.TF32 <= 0:
		return "fp32", c.Name + " has no tf32: fp32 is taken", nil
	case noBF16[c.Arch] && strings.Contains(low, "bf16"):
		return strings.Replace(low, "bf16", "fp16", 1), c.Name + " has no bf16: fp16 with loss scaling is taken", nil
	case c.Arch == "tpu" && strings.Contains(strings.ReplaceAll(low, "bf16", ""), "fp16"):
		return strings.Replace(low, "fp16", "bf16", 1), c.Name + " has no fp16: bf16 is taken", nil
	}
	return asked, "", nil
}

// Sixteen returns the accelerator's 16-bit format.
func (c Chip) Sixteen() string {
	if noBF16[c.Arch] {
		return "fp16"
	}
	return "bf16"
}

// Ceiling returns the share of the peak that the best measured matrix product reaches, which bounds every training.
// Chips without a measurement get the A100's share.
func (c Chip) Ceiling() float64 {
	if c.Matmul > 0 && c.Half > 0 {
		return c.Matmul / c.Half
	}
	return 0.87
}

// others holds accelerators in published measurements that the catalogue lacks, from the vendors' data sheets.
var others = []Chip{
	// nvidia.com, RTX 6000 Ada Generation datasheet: 91.1 TFLOPS fp32, 1457 fp8 sparse, 960 GB/s, 48 GB.
	{Name: "RTX6000Ada", Arch: "ada", Vendor: "nvidia", Mem: 48, Band: 960, FP32: 91.1, TF32: 182.1, Half: 364.2,
		FP8: 728.5, Link: 31},
	// nvidia.com, Quadro RTX 8000 datasheet: 16.3 TFLOPS fp32, 130.5 tensor fp16, 672 GB/s, 48 GB.
	{Name: "RTX8000", Arch: "turing", Vendor: "nvidia", Mem: 48, Band: 672, FP32: 16.3, Half: 130.5, Link: 50},
	// The 96 GB H100 with HBM2e at 500 W of the torchtitan reports, with the rates of H100 SXM.
	{Name: "H100-96GB-HBM2e-500W", Arch: "hopper", Vendor: "nvidia", Mem: 96, Band: 2000, FP32: 67, TF32: 494.5,
		Half: 989, FP8: 1979, Link: 450, Matmul: 794.5},
	// From vendors' data sheets and the Turing and Ampere white papers; products of consumer cards with 32-bit sums, as
	// training uses them.
	{Name: "A40", Arch: "ampere", Vendor: "nvidia", Mem: 48, Band: 696, FP32: 37.4, TF32: 74.8, Half: 149.7, Link: 56},
	{Name: "A30", Arch: "ampere", Vendor: "nvidia", Mem: 24, Band: 933, FP32: 10.3, TF32: 82, Half: 165, Link: 100},
	{Name: "RTXA5000", Arch: "ampere", Vendor: "nvidia", Mem: 24, Band: 768, FP32: 27.8, TF32: 55.6, Half: 111.1,
		Link: 31},
	{Name: "RTXA4000", Arch: "ampere", Vendor: "nvidia", Mem: 16, Band: 448, FP32: 19.2, TF32: 38.3, Half: 76.7, Link: 31},
	{Name: "RTX3080", Arch: "ampere", Vendor: "nvidia", Mem: 10, Band: 760, FP32: 29.8, TF32: 29.8, Half: 59.5, Link: 31},
	{Name: "RTX3070", Arch: "ampere", Vendor: "nvidia", Mem: 8, Band: 448, FP32: 20.3, TF32: 20.3, Half: 40.6, Link: 31},
	{Name: "RTX2080Ti", Arch: "turing", Vendor: "nvidia", Mem: 11, Band: 616, FP32: 13.4, Half: 53.8, Link: 16},
	{Name: "TitanRTX", Arch: "turing", Vendor: "nvidia", Mem: 24, Band: 672, FP32: 16.3, Half: 130.5, Link: 50},
	{Name: "RTX6000", Arch: "turing", Vendor: "nvidia", Mem: 24, Band: 672, FP32: 16.3, Half: 130.5, Link: 50},
	{Name: "P100", Arch: "pascal", Vendor: "nvidia", Mem: 16, Band: 732, FP32: 10.6, Half: 21.2, Link: 80},
	{Name: "H100-SXM", Arch: "hopper", Vendor: "nvidia", Mem: 96, Band: 2000, FP32: 67, TF32: 494.5, Half: 989,
		FP8: 1979, Link: 450, Matmul: 794.5},
}

// Chips maps the usual names to accelerators.
type Chips map[string]Chip

// NewChips indexes a list, plus the few accelerators that appear only in measurements.
func NewChips(list []Chip) Chips {
	c := Chips{}
	for _, k := range append(append([]Chip(nil), others...), list...) {
		c[shape.Key(k.Name)] = k
	}
	return c
}

// Find looks up a name, with or without a trailing memory size.
func (c Chips) Find(names ...string) (Chip, bool) {
	for _, n := range names {
		if n == "" || accelerator.IsPart(n) {
			continue
		}
		p := shape.Key(n)
		if k, ok := c[p]; ok {
			return k, true
		}
		if i := strings.LastIndexByte(n, '-'); i > 0 {
			if k, ok := c[shape.Key(n[:i])]; ok {
				return k, true
			}
		}
	}
	return Chip{}, false
}

// Name returns the full name of the accelerator that a user means: for H100 its only form, or else an error that lists
// the forms.
func (c Chips) Name(query string) (string, error) {
	if k, ok := accelerator.Find(query); ok {
		return k.Name, nil
	}
	var names []string
	for _, k := range accelerator.Accelerators() {
		if accelerator.Matches(query, k.Name) {
			names = append(names, k.Name)
		}
	}
	switch len(names) {
	case 0:
		if k, ok := c[shape.Key(query)]; ok {
			return k.Name, nil
		}
		return "",
			fmt.Errorf("%q: nothing is known of this accelerator; scrimp catalog show --gpus lists those that are", query)
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("%q may be %s: name one", query, strings.Join(names, ", "))
}

// Sorted returns the chips by name, each once.
func (c Chips) Sorted() []Chip {
	var out []Chip
	for _, k := range c {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
