package plan

import (
	"encoding/binary"
	"fmt"

	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
)

// Footprint is the estimated memory that the model of a job needs, if the job leaves its machine open. Zero:
// unknown, or the job states its needs itself.
type Footprint struct {
	// Machine is the memory that a machine without accelerators must have, in bytes; 0: unknown.
	Machine int64 `json:"machine_bytes,omitempty"`
	// Cards state the memory that each accelerator must have, by the number of accelerators used on a machine. The
	// number increases and the memory decreases.
	Cards []Card `json:"cards,omitempty"`
}

// Card is the memory that each accelerator of a machine must have if the machine has that many.
type Card struct {
	Accelerators int   `json:"accelerators"` // on one machine, at least
	Memory       int64 `json:"memory_bytes"` // as sold
}

// String describes the footprint: "60.0 GB of memory on one accelerator, 20.0 GB on each of 4, or 60.0 GB on a
// machine without".
func (f Footprint) String() string {
	text := ""
	for i, c := range f.Cards {
		where := fmt.Sprintf("each of %d", c.Accelerators)
		if c.Accelerators == 1 {
			where = "one accelerator"
		}
		if i == 0 {
			text = inGB(c.Memory) + " of memory on " + where
			if c.Accelerators > 1 {
				text += " accelerators"
			}
			continue
		}
		text += ", " + inGB(c.Memory) + " on " + where
	}
	switch {
	case f.Machine == 0:
		return text
	case text == "":
		return inGB(f.Machine) + " of memory"
	}
	return text + ", or " + inGB(f.Machine) + " on a machine without"
}

// LeastFootprint returns the smallest footprint of all ways to do the work, or zero if one of them may need none.
func (n *Need) LeastFootprint() Footprint {
	least := n.Footprint
	for i := range n.Variants {
		if f := n.Variants[i].Footprint; f.least() < least.least() {
			least = f
		}
	}
	return least
}

// least returns the smallest memory in f, in bytes.
func (f *Footprint) least() int64 {
	if n := len(f.Cards); n > 0 {
		return f.Cards[n-1].Memory
	}
	return f.Machine
}

// inGB formats memory in decimal gigabytes, the unit in which accelerators are sold.
func inGB(bytes int64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/float64(size.GB)) }

// fewest returns how many accelerators of a machine of the offer hold the model, using at most the given number. 0
// means that the machine's own memory holds it, or that this is unknown. ok is false if nothing holds it.
func (f *Footprint) fewest(o *market.Offer, most int) (n int, ok bool) {
	if o.Accelerators == 0 {
		return 0, f.Machine <= int64(o.Memory)
	}
	if len(f.Cards) == 0 {
		return 0, true
	}
	each, known := accelerator.MostMemory(o.Accelerator)
	if !known {
		return 0, true
	}
	if most == 0 || most > o.Accelerators {
		most = o.Accelerators
	}
	for _, c := range f.Cards {
		if c.Accelerators <= most && c.Memory <= int64(each) {
			return c.Accelerators, true
		}
	}
	return 0, false
}

// holds reports whether a machine of the offer, or the most of it that the job may have, holds the model.
func (n *Requirements) holds(o *market.Offer) bool {
	_, ok := n.Footprint.fewest(o, n.MaxAccelerators)
	return ok
}

// AsksOf returns the portion of a machine of the offer that the work requests if several tasks share one. It is
// large enough to hold the model.
func (n *Requirements) AsksOf(o *market.Offer) (cpus int, memory int64, accelerators int) {
	cpus, memory, accelerators = n.CPUs, n.Memory, n.gpus()
	if cpus == 0 && memory == 0 && accelerators == 0 {
		return 0, 0, 0 // it has the whole machine
	}
	fewest, _ := n.Footprint.fewest(o, n.MaxAccelerators)
	if o.Accelerators == 0 {
		memory = max(memory, n.Footprint.Machine)
	}
	return cpus, memory, max(accelerators, fewest)
}

func (f *Footprint) key(b []byte) []byte {
	b = binary.AppendVarint(b, f.Machine)
	b = binary.AppendUvarint(b, uint64(len(f.Cards)))
	for _, c := range f.Cards {
		b = binary.AppendVarint(binary.AppendVarint(b, int64(c.Accelerators)), c.Memory)
	}
	return b
}
