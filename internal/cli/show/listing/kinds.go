package listing

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// facts formats the table of facts about kinds of accelerators, with their sources.
func facts(kinds []accelerator.Accelerator, p show.Place) string {
	if len(kinds) == 0 {
		return ""
	}
	var b strings.Builder
	var rows [][]string
	var notes []string
	text := func(f figure.Figure) string {
		if !f.OK {
			return "-"
		}
		return fmt.Sprintf("%.4g", f.V)
	}
	for i, a := range kinds {
		rate := func(q accelerator.Precision) string {
			v, ok := a.Dense(q)
			return text(figure.Figure{V: v, OK: ok})
		}
		half := rate(accelerator.FP16)
		if half == "-" {
			half = rate(accelerator.BF16)
		}
		usable := "-"
		if a.UsableMemory > 0 {
			usable = fmt.Sprintf("%.1f", float64(a.UsableMemory)/float64(size.GB))
		}
		rows = append(rows, []string{a.Name, fmt.Sprintf("%.0f", float64(a.Memory)/float64(size.GB)), usable,
			text(a.Bandwidth), rate(accelerator.FP32), rate(accelerator.TF32), half, rate(accelerator.FP8),
			rate(accelerator.INT8), rate(accelerator.FP4), text(a.Link), text(a.Power), fmt.Sprintf("(%c)", 'a'+i%26)})
		note := a.Source
		if a.UsableSource != "" {
			note += "; usable memory: " + a.UsableSource
		}
		if a.Notes != "" {
			note += "; " + a.Notes
		}
		notes = append(notes, note)
	}
	b.WriteString("\n")
	b.WriteString(draw.Grid([]draw.Column{
		{Name: "GPU"}, {Name: "GB", Right: true}, {Name: "USABLE", Right: true}, {Name: "GB/S", Right: true},
		{Name: "FP32", Right: true}, {Name: "TF32", Right: true, Leaves: 3}, {Name: "16 BIT", Right: true},
		{Name: "FP8", Right: true},
		{Name: "INT8", Right: true, Leaves: 4}, {Name: "FP4", Right: true, Leaves: 5}, {Name: "LINK", Right: true, Leaves: 2},
		{Name: "WATT", Right: true, Leaves: 1}, {Name: "FROM", Right: true, Leaves: 6},
	}, rows, p.Columns()))
	b.WriteString(draw.Wrap("  ", "GB as sold, and as the driver reports them; rates are dense, 1e12 operations a "+
		"second; LINK is GB/s to a neighbour, one way; - is unknown, or no such format.", p.Columns()))
	for i, n := range notes {
		b.WriteString(draw.Wrap(fmt.Sprintf("  (%c) ", 'a'+i%26), n, p.Columns()))
	}
	return b.String()
}

// Kinds formats the table of accelerators.
func Kinds(list []accelerator.Accelerator, p show.Place) string {
	return strings.TrimPrefix(facts(list, p), "\n")
}

// Kind is an accelerator for --json. Unknown values are null.
type Kind struct {
	Name         string                   `json:"accelerator"`
	Vendor       string                   `json:"vendor"`
	Arch         string                   `json:"arch"`
	Memory       size.Bytes               `json:"memory_bytes"`
	Usable       *size.Bytes              `json:"usable_memory_bytes"`
	Bandwidth    figure.Figure            `json:"memory_gbps"`
	Link         figure.Figure            `json:"link_gbps"`
	Power        figure.Figure            `json:"watts"`
	Matmul       figure.Figure            `json:"measured_matmul_16bit_tflops"`
	Dense        map[string]figure.Figure `json:"dense_tflops"`
	Confidence   string                   `json:"confidence"`
	Source       string                   `json:"source"`
	UsableSource string                   `json:"usable_source,omitempty"`
	Notes        string                   `json:"notes,omitempty"`
}

// KindOf returns a for --json.
func KindOf(a accelerator.Accelerator) Kind {
	v := Kind{
		Name: a.Name, Vendor: a.Vendor, Arch: a.Arch, Memory: a.Memory, Bandwidth: a.Bandwidth, Link: a.Link, Power: a.Power,
		Matmul: a.Matmul,
		Dense:  map[string]figure.Figure{}, Confidence: a.Confidence, Source: a.Source, UsableSource: a.UsableSource,
		Notes: a.Notes,
	}
	if a.UsableMemory > 0 {
		v.Usable = &a.UsableMemory
	}
	for _, q := range []accelerator.Precision{accelerator.FP32, accelerator.TF32, accelerator.FP16,
		accelerator.BF16, accelerator.FP8, accelerator.INT8, accelerator.FP4} {
		rate, ok := a.Dense(q)
		v.Dense[string(q)] = figure.Figure{V: rate, OK: ok}
	}
	return v
}
