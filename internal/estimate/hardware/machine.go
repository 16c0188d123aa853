package hardware

import (
	"fmt"

	"scrimp/internal/estimate/shape"
)

// Machine holds the machines of one type that carry a run's accelerators, as far as they affect its speed and price.
// Zero is unknown.
type Machine struct {
	Name    string  `json:"name"`                     // provider and machine type
	Count   float64 `json:"machines"`                 //
	Each    float64 `json:"accelerators"`             // per machine
	CPUs    float64 `json:"cpus,omitempty"`           // virtual processors per machine
	Network float64 `json:"network_gbit_s,omitempty"` // per machine, to the others
	// GB/s one way between a machine's accelerators, if different from their kind's
	Link   float64 `json:"link_gb_s,omitempty"`
	Hourly float64 `json:"-"` // dollars for all of them
	// Spot is the lowest spot price of all of them, in dollars an hour; 0 is unknown.
	Spot   float64 `json:"spot_hourly_usd,omitempty"`
	Source string  `json:"-"` // of the price
}

// SlowNetwork is the assumed network of a machine with few accelerators if it is unknown, in Gbit/s: the usual for
// general machines. Clusters of machines with eight or more have the network of the published runs (physics.network).
const SlowNetwork = 10

// decodes is how many photographs of about 110 KB (ImageNet) a virtual processor reads, decodes, crops and delivers per
// second: about 200 per core with Pillow or torchvision, with two virtual processors per core. Programs range from half
// to twice as many.
const decodes = 100.0

// Decoded returns how many images per second the machines' processors prepare, and false if no such limit is known.
func (h *Machine) Decoded(m shape.Model) (float64, bool) {
	if h.CPUs <= 0 || h.Count <= 0 || !m.Photographs() {
		return 0, false
	}
	return h.Count * h.CPUs * decodes, true
}

// Host returns the row's machines, or nil if nothing is known about them.
func (h Machine) Host() *Machine {
	if h.Each <= 0 && h.CPUs <= 0 && h.Hourly <= 0 {
		return nil
	}
	return &h
}

// Apart reports whether the run of n accelerators spans several machines of the known size.
func (h *Machine) Apart(n float64) bool { return h != nil && h.Each > 0 && n > h.Each }

// Describe describes the machine facts that an estimate uses.
func (h *Machine) Describe(n float64) string {
	if !h.Apart(n) {
		return ""
	}
	network := fmt.Sprintf("%g Gbit/s", h.Network)
	switch {
	case h.Network > 0:
	case h.Each < 8:
		network = fmt.Sprintf("a network that is not known and taken for %d Gbit/s", SlowNetwork)
	default:
		network = "a network that is not known and taken for that of the clusters in published runs"
	}
	return fmt.Sprintf("%g machines exchange over %s each", h.Count, network)
}
