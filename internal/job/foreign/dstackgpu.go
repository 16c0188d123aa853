package foreign

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// dstackGPU parses 2, H100, H100:8, A100:80GB:4..8, nvidia:24GB, and the same as a map.
func (d *draft) dstackGPU(key, v *yaml.Node) {
	asks := dstackAccelerator(v)
	for _, what := range asks.lost {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by "+what)
	}
	count := asks.count
	switch low, high, ok := strings.Cut(count, ".."); {
	case ok && high == "":
		count = cmp.Or(low, "1") + "+"
	case ok && low == "":
		count = "1.." + high
	}
	names := d.ofMemory(key, asks)
	switch {
	case count == "0" || count == "0+":
		return
	case len(names) == 0:
		d.anyGPU(count)
	case len(names) == 1:
		set(d.resources, "accelerator", text(join(names[0], count)))
	default:
		for _, n := range names {
			d.kinds = append(d.kinds, join(n, count))
		}
	}
}

// anyGPU asks for GPUs of any kind.
func (d *draft) anyGPU(count string) {
	set(d.resources, "accelerator", text(join(accelerator.AnyKind, count)))
	d.remarks["resources"] = "The other file does not say which GPU: any takes the cheapest that is sold."
}

// dstackVendors lists the words that name an accelerator's vendor.
var dstackVendors = []string{"nvidia", "amd", "google", "tenstorrent", "intel"}

// gpuAsks is a task's accelerator request.
type gpuAsks struct {
	names         []string
	count, memory string
	vendor        string
	lost          []string // the other parts
}

var (
	gpuCount  = regexp.MustCompile(`^[0-9]*(\.\.[0-9]*)?$`)
	gpuMemory = regexp.MustCompile(`(?i)^(\.\.)?[0-9.]+[gmt]i?b`)
)

// dstackAccelerator splits an accelerator request.
func dstackAccelerator(v *yaml.Node) (a gpuAsks) {
	if v.Kind == yaml.MappingNode {
		each(v, func(k, value *yaml.Node) {
			switch k.Value {
			case "name":
				a.names = values(value)
			case "count":
				a.count = value.Value
			case "memory":
				a.memory = value.Value
			case "vendor":
				a.vendor = value.Value
			default:
				a.lost = append(a.lost, k.Value)
			}
		})
		return a
	}
	for part := range strings.SplitSeq(v.Value, ":") {
		switch {
		case gpuCount.MatchString(part):
			a.count = part
		case gpuMemory.MatchString(part):
			a.memory = part
		case slices.Contains(dstackVendors, part):
			a.vendor = part
		default:
			for name := range strings.SplitSeq(part, ",") {
				if of, ok := tpu(name); ok {
					name, a.count, _ = strings.Cut(of, ":")
				}
				a.names = append(a.names, name)
			}
		}
	}
	return a
}

// ofMemory narrows the kinds to those with the requested memory: A100 with 80GB is A100-80GB. A kind with only one size
// keeps its name, and if no kind is known to have the memory, the request is lost.
func (d *draft) ofMemory(key *yaml.Node, a gpuAsks) (names []string) {
	if a.memory == "" && len(a.names) == 0 && a.vendor != "" && a.vendor != "nvidia" {
		return ofSize(a.vendor, func(size.Bytes) bool { return true })
	}
	if a.memory == "" {
		return a.names
	}
	fits, ok := memoryRange(a.memory)
	if ok && len(a.names) == 0 {
		return ofSize(a.vendor, fits)
	}
	if !ok {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by memory ("+a.memory+")")
		return a.names
	}
	for _, kind := range a.names {
		narrow := narrowed(kind, fits)
		if len(narrow) == 0 {
			d.lose(key, "resources.gpu", "no "+kind+" with "+a.memory+" of memory is known: accelerators are chosen by "+
				"kind and count")
			narrow = []string{kind}
		}
		names = append(names, narrow...)
	}
	return names
}

// ofSize returns the kinds of GPUs whose memory fits, of a vendor unless it is "".
func ofSize(vendor string, fits func(size.Bytes) bool) (names []string) {
	for _, a := range accelerator.Accelerators() {
		if (vendor == "" || vendor == a.Vendor) && accelerator.Matches(accelerator.AnyKind, a.Name) && fits(a.Memory) {
			names = append(names, a.Name)
		}
	}
	return names
}

// narrowed returns the shortest names that match the fitting accelerators of a kind, and no others.
func narrowed(kind string, fits func(size.Bytes) bool) (names []string) {
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

// memoryRange parses 80GB, 40GB..80GB, 40GB.. and ..80GB. A single size allows a small deviation, because 80GB is
// nominal and some write GiB for it.
func memoryRange(s string) (fits func(size.Bytes) bool, ok bool) {
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
