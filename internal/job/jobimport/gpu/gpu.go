// Package gpu reads how job files of other systems ask for accelerators.
package gpu

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// tpuSlice matches the name of a slice of TPUs: tpu-v5litepod-8, v6e-4, v5p-16.
var tpuSlice = regexp.MustCompile(`^(?:tpu-)?v(5litepod|5e|5p|6e|4)-([0-9]+)$`)

// Slice returns the accelerators of a TPU slice: TPU-v5e:8. Its number counts chips; that of v4 and v5p counts cores,
// and a chip has two. It returns false for a name that is no slice.
func Slice(name string) (string, bool) {
	m := tpuSlice.FindStringSubmatch(strings.ToLower(name))
	if m == nil {
		return "", false
	}
	kind := map[string]string{"5litepod": "TPU-v5e", "5e": "TPU-v5e", "5p": "TPU-v5p", "6e": "TPU-v6e",
		"4": "TPU-v4"}[m[1]]
	n, err := strconv.Atoi(m[2])
	if m[1] == "4" || m[1] == "5p" {
		n /= 2
	}
	return Counted(kind, strconv.Itoa(max(1, n))), err == nil
}

// Named returns the kind of accelerator that a word of a text names, such as a partition gpu_h100, or "".
func Named(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune("-_&|, *()[]", r) })
	for i, w := range words {
		for _, a := range accelerator.Accelerators() {
			if strings.Trim(w, "0123456789") == "" || !accelerator.Matches(w, a.Name) {
				continue
			}
			kind := strings.ToUpper(w)
			if i+1 < len(words) {
				size := strings.ToUpper(strings.TrimSuffix(words[i+1], "b")) // 80g and 80gb
				if with := kind + "-" + size + "B"; strings.HasSuffix(size, "G") && known(with) {
					return with
				}
			}
			return kind
		}
	}
	return ""
}

// NamedByEach returns the kinds that the items of a list name, such as partitions a100,h100; none if one names none.
func NamedByEach(list string) (kinds []string) {
	for item := range strings.SplitSeq(list, ",") {
		kind := Named(item)
		if kind == "" {
			return nil
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// WithinAny reports whether a kind is one of a list, or a form of one, or one of the list a form of it.
func WithinAny(kind string, list []string) bool {
	return slices.ContainsFunc(list, func(k string) bool { return Within(kind, k) || Within(k, kind) })
}

// known reports whether the catalogue has an accelerator of the kind.
func known(kind string) bool {
	return slices.ContainsFunc(accelerator.Accelerators(), func(a accelerator.Accelerator) bool {
		return accelerator.Matches(kind, a.Name)
	})
}

// Counted returns the text of an accelerator with a count: H100:8. It leaves out a count of one.
func Counted(name, count string) string {
	if count == "" || count == "1" {
		return name
	}
	return name + ":" + count
}

// dstackVendors lists the words that name an accelerator's vendor.
var dstackVendors = []string{"nvidia", "amd", "google", "tenstorrent", "intel"}

// Requirements are what a task asks of accelerators, as the file says it: each field is empty if the file is silent.
type Requirements struct {
	Names         []string
	Count, Memory string
	Vendor        string
	Lost          []string // the parts that scrimp does not have
}

var (
	gpuCount  = regexp.MustCompile(`^[0-9]*(\.\.[0-9]*)?$`)
	gpuMemory = regexp.MustCompile(`(?i)^(\.\.)?[0-9.]+[gmt]i?b`)
)

// Parse reads the accelerators of a dstack task: 2, H100, A100:80GB:4..8, nvidia:24GB, or the same as a map.
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
			case "vendor":
				a.Vendor = value.Value
			default:
				a.Lost = append(a.Lost, k.Value)
			}
		})
		return a
	}
	if v.Kind == yaml.SequenceNode {
		return either(v)
	}
	for part := range strings.SplitSeq(v.Value, ":") {
		switch {
		case gpuCount.MatchString(part):
			a.Count = part
		case gpuMemory.MatchString(part):
			a.Memory = part
		case slices.Contains(dstackVendors, part):
			a.Vendor = part
		default:
			for name := range strings.SplitSeq(part, ",") {
				if of, ok := Slice(name); ok {
					name, a.Count, _ = strings.Cut(of, ":")
				}
				a.Names = append(a.Names, name)
			}
		}
	}
	return a
}

// either returns what a list asks for: one of its kinds, in the count and with the memory that all of them give.
func either(v *yaml.Node) (a Requirements) {
	for i, item := range v.Content {
		one := Parse(item)
		a.Names, a.Lost = append(a.Names, one.Names...), append(a.Lost, one.Lost...)
		switch {
		case i == 0:
			a.Count, a.Memory, a.Vendor = one.Count, one.Memory, one.Vendor
		case one.Count != a.Count:
			a.Lost = append(a.Lost, "a count of their own ("+one.Count+")")
		case one.Memory != a.Memory && one.Memory != "":
			a.Lost = append(a.Lost, "a memory of their own ("+one.Memory+")")
		}
	}
	return a
}

// OfSize returns the kinds of GPUs whose memory fits, of a vendor unless it is "".
func OfSize(vendor string, fits func(size.Bytes) bool) (names []string) {
	for _, a := range accelerator.Accelerators() {
		if (vendor == "" || vendor == a.Vendor) && accelerator.Matches(accelerator.AnyKind, a.Name) && fits(a.Memory) {
			names = append(names, a.Name)
		}
	}
	return names
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
