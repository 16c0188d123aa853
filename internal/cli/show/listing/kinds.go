package listing

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/catalog"
)

// facts formats the table of facts about kinds of accelerators, with their sources.
func facts(kinds []catalog.Accelerator, p show.Place) string {
	if len(kinds) == 0 {
		return ""
	}
	var b strings.Builder
	var rows [][]string
	var notes []string
	figure := func(f catalog.Figure) string {
		if !f.OK {
			return "-"
		}
		return fmt.Sprintf("%.4g", f.V)
	}
	for i, a := range kinds {
		rate := func(q catalog.Precision) string {
			v, ok := a.Dense(q)
			return figure(catalog.Figure{V: v, OK: ok})
		}
		half := rate(catalog.FP16)
		if half == "-" {
			half = rate(catalog.BF16)
		}
		usable := "-"
		if a.UsableMemory > 0 {
			usable = fmt.Sprintf("%.1f", float64(a.UsableMemory)/float64(size.GB))
		}
		rows = append(rows, []string{a.Name, fmt.Sprintf("%.0f", float64(a.Memory)/float64(size.GB)), usable,
			figure(a.Bandwidth), rate(catalog.FP32), rate(catalog.TF32), half, rate(catalog.FP8), rate(catalog.INT8),
			rate(catalog.FP4), figure(a.Link), figure(a.Power), fmt.Sprintf("(%c)", 'a'+i%26)})
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
func Kinds(list []catalog.Accelerator, p show.Place) string {
	return strings.TrimPrefix(facts(list, p), "\n")
}

// Kind is an accelerator for --json. Unknown values are null.
type Kind struct {
	Name         string                    `json:"accelerator"`
	Vendor       string                    `json:"vendor"`
	Arch         string                    `json:"arch"`
	Memory       size.Bytes                `json:"memory_bytes"`
	Usable       *size.Bytes               `json:"usable_memory_bytes"`
	Bandwidth    catalog.Figure            `json:"memory_gbps"`
	Link         catalog.Figure            `json:"link_gbps"`
	Power        catalog.Figure            `json:"watts"`
	Matmul       catalog.Figure            `json:"measured_matmul_16bit_tflops"`
	Dense        map[string]catalog.Figure `json:"dense_tflops"`
	Confidence   string                    `json:"confidence"`
	Source       string                    `json:"source"`
	UsableSource string                    `json:"usable_source,omitempty"`
	Notes        string                    `json:"notes,omitempty"`
}

// KindOf returns a for --json.
func KindOf(a catalog.Accelerator) Kind {
	v := Kind{
		Name: a.Name, Vendor: a.Vendor, Arch: a.Arch, Memory: a.Memory, Bandwidth: a.Bandwidth, Link: a.Link, Power: a.Power,
		Matmul: a.Matmul,
		Dense:  map[string]catalog.Figure{}, Confidence: a.Confidence, Source: a.Source, UsableSource: a.UsableSource,
		Notes: a.Notes,
	}
	if a.UsableMemory > 0 {
		v.Usable = &a.UsableMemory
	}
	for _, q := range []catalog.Precision{catalog.FP32, catalog.TF32, catalog.FP16, catalog.BF16, catalog.FP8,
		catalog.INT8, catalog.FP4} {
		rate, ok := a.Dense(q)
		v.Dense[string(q)] = catalog.Figure{V: rate, OK: ok}
	}
	return v
}
