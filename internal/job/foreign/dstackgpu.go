package foreign

import (
	"cmp"
	"strings"

	"scrimp/internal/job/foreign/gpu"
	"scrimp/internal/job/foreign/node"

	"go.yaml.in/yaml/v3"
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
		d.lose(key, "resources.gpu", "the kind of accelerator is not said: give accelerator, such as "+join("H100", count))
	case len(names) == 1:
		node.Set(d.resources, "accelerator", node.Text(join(names[0], count)))
	default:
		for _, n := range names {
			d.kinds = append(d.kinds, join(n, count))
		}
	}
}

// ofMemory narrows the kinds to those with the requested memory: A100 with 80GB is A100-80GB. A kind with only one size
// keeps its name, and if no kind is known to have the memory, the request is lost.
func (d *draft) ofMemory(key *yaml.Node, a gpu.Requirements) (names []string) {
	if a.Memory == "" {
		return a.Names
	}
	fits, ok := gpu.MemoryRange(a.Memory)
	if !ok || len(a.Names) == 0 {
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
