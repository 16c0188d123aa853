// Package gpu reads how tasks of dstack ask for accelerators.
package gpu

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/foreign/node"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// dstackVendors lists the words that name an accelerator's vendor.
var dstackVendors = []string{"nvidia", "amd", "google", "tenstorrent", "intel"}

// Requirements of a task for accelerators.
type Requirements struct {
	Names         []string
	Count, Memory string
	Lost          []string // the other parts
}

var (
	gpuCount  = regexp.MustCompile(`^[0-9]*(\.\.[0-9]*)?$`)
	gpuMemory = regexp.MustCompile(`(?i)^(\.\.)?[0-9.]+[gmt]i?b`)
)

// Parse splits an accelerator request.
func Parse(v *yaml.Node) (a Requirements) {
	if v.Kind == yaml.MappingNode {
		node.Each(v, func(k, value *yaml.Node) {
			switch k.Value {
			case "name":
				a.Names = node.Values(value)
			case "count":
				a.Count = value.Value
			case "memory":
				a.Memory = value.Value
			default:
				a.Lost = append(a.Lost, k.Value)
			}
		})
		return a
	}
	for part := range strings.SplitSeq(v.Value, ":") {
		switch {
		case gpuCount.MatchString(part):
			a.Count = part
		case gpuMemory.MatchString(part):
			a.Memory = part
		case slices.Contains(dstackVendors, part):
			a.Lost = append(a.Lost, "vendor ("+part+")")
		default:
			a.Names = append(a.Names, strings.Split(part, ",")...)
		}
	}
	return a
}

// Narrow returns the shortest names that match the fitting accelerators of a kind, and no others.
func Narrow(kind string, fits func(size.Bytes) bool) (names []string) {
	var in, out []accelerator.Accelerator
	for _, a := range accelerator.Accelerators() {
		switch {
		case !accelerator.Matches(kind, a.Name):
		case fits(a.Memory):
			in = append(in, a)
		default:
			out = append(out, a)
		}
	}
	if len(out) == 0 && len(in) > 0 {
		return []string{kind}
	}
	for _, a := range in {
		short := kind + "-" + strconv.FormatInt(int64(a.Memory/size.GB), 10) + "GB"
		if !accelerator.Matches(short, a.Name) || slices.ContainsFunc(out, func(o accelerator.Accelerator) bool {
			return accelerator.Matches(short, o.Name)
		}) {
			short = a.Name
		}
		if !slices.Contains(names, short) {
			names = append(names, short)
		}
	}
	return names
}

// MemoryRange parses 80GB, 40GB..80GB, 40GB.. and ..80GB. A single size allows a small deviation, because 80GB is
// nominal and some write GiB for it.
func MemoryRange(s string) (fits func(size.Bytes) bool, ok bool) {
	tolerance := 0.0
	ends := func(s string) (float64, bool) {
		b, err := size.Parse(strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(s)), "IB", "B"))
		return float64(b), err == nil
	}
	a, b, isRange := strings.Cut(s, "..")
	low, okLow := ends(a)
	high, okHigh := ends(b)
	switch {
	case !isRange:
		high, okHigh, tolerance = low, okLow, 0.05
	case strings.TrimSpace(a) == "":
		okLow = okHigh
	case strings.TrimSpace(b) == "":
		high, okHigh = 1e18, okLow
	}
	return func(m size.Bytes) bool {
		return float64(m) >= low*(1-tolerance) && float64(m) <= high*(1+tolerance)
	}, okLow && okHigh
}
