package jobimport

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/gpu"
	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// dstackGPU parses 2, H100, H100:8, A100:80GB:4..8, nvidia:24GB, and the same as a map.
func (d *draft) dstackGPU(key, v *yaml.Node) {
	asks := gpu.Parse(v)
	for _, what := range asks.Lost {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by "+what)
	}
	count := asks.Count
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
		node.Set(d.resources, "accelerator", node.Text(gpu.Counted(names[0], count)))
	default:
		for _, n := range names {
			d.kinds = append(d.kinds, gpu.Counted(n, count))
		}
	}
}

// anyGPU asks for GPUs of any kind.
func (d *draft) anyGPU(count string) {
	node.Set(d.resources, "accelerator", node.Text(gpu.Counted(accelerator.AnyKind, count)))
	d.remarks["resources"] = "The other file does not say which GPU: any takes the cheapest that is sold."
}

// ofMemory narrows the kinds to those with the requested memory: A100 with 80GB is A100-80GB. A kind with only one size
// keeps its name, and if no kind is known to have the memory, the request is lost.
func (d *draft) ofMemory(key *yaml.Node, a gpu.Requirements) (names []string) {
	if a.Memory == "" && len(a.Names) == 0 && a.Vendor != "" && a.Vendor != "nvidia" {
		return gpu.OfSize(a.Vendor, func(size.Bytes) bool { return true })
	}
	if a.Memory == "" {
		return a.Names
	}
	fits, ok := gpu.MemoryRange(a.Memory)
	if ok && len(a.Names) == 0 {
		return gpu.OfSize(a.Vendor, fits)
	}
	if !ok {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by memory ("+a.Memory+")")
		return a.Names
	}
	for _, kind := range a.Names {
		narrow := gpu.Narrow(kind, fits)
		if len(narrow) == 0 {
			d.lose(key, "resources.gpu", "no "+kind+" with "+a.Memory+" of memory is known: accelerators are chosen by "+
				"kind and count")
			narrow = []string{kind}
		}
		names = append(names, narrow...)
	}
	return names
}
