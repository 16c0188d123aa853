package estimate

import (
	"fmt"
	"math"

	"scrimp/internal/estimate/shape"
)

// Machine is the machines of one type that carry the accelerators of a run, as far as its speed
// and its price depend on them. Zero is unknown.
type Machine struct {
	Name    string  `json:"name"`                     // provider and machine type
	Count   float64 `json:"machines"`                 //
	Each    float64 `json:"accelerators"`             // of one machine
	CPUs    float64 `json:"cpus,omitempty"`           // virtual processors of one machine
	Network float64 `json:"network_gbit_s,omitempty"` // of one machine, to the others
	// between the accelerators of a machine, GB/s one way, where that is not what their kind has
	Link   float64 `json:"link_gb_s,omitempty"`
	Hourly float64 `json:"-"` // dollars for all of them
	Source string  `json:"-"` // of the price
}

// slowNetwork is what a machine with few accelerators is taken to have where its network is not
// known, in Gbit/s: the usual of general machines. Clusters of eight and more have what the
// published runs were measured on (physics.network).
const slowNetwork = 10

// decodes is how many photographs of about 110 KB (ImageNet) a virtual processor reads, decodes,
// crops and hands over in a second: about 200 a core with Pillow or torchvision, two virtual
// processors a core. Programs differ by half and by twice as much.
const decodes = 100.0

// decoded is how many images a second the processors of the machines prepare, and false where
// that is no limit that is known.
func (h *Machine) decoded(m shape.Model) (float64, bool) {
	if h.CPUs <= 0 || h.Count <= 0 || !m.Photographs() {
		return 0, false
	}
	return h.Count * h.CPUs * decodes, true
}

// hosts are the machines that an estimate is made for: those that are stated, those that are for
// sale, or one of which nothing is known.
func (e *Estimator) hosts(q Request, chip Chip, count float64) []Machine {
	switch {
	case q.Host != nil:
		return []Machine{*q.Host}
	case q.Price > 0:
		return []Machine{{Hourly: q.Price, Source: "as given"}}
	case e.prices != nil:
		if list := e.prices.Machines(chip.Name, "", count); len(list) > 0 {
			return list
		}
	}
	return []Machine{{}}
}

// host is the row's machines, nil where nothing is known of them.
func (h Machine) host() *Machine {
	if h.Each <= 0 && h.CPUs <= 0 && h.Hourly <= 0 {
		return nil
	}
	return &h
}

// between is the bytes a second that a machine's network carries, as far as exchanges use it.
func (k *physics) between(p *placed) float64 {
	h := p.r.Host
	switch {
	case h == nil || h.Each <= 0:
	case h.Network > 0:
		return k.link * h.Network / 8 * 1e9
	case h.Each < 8:
		return k.link * slowNetwork / 8 * 1e9
	}
	return k.network * 1e9
}

// joined is the bytes a second that an exchange among so many accelerators reaches: a ring
// passes through all accelerators of a machine and leaves it over all of its network.
//
// Worked: eight A10G in one g5.48xlarge: 0.527 · 32 = 16.9 GB/s; in eight g5.xlarge with
// 2.5 Gbit/s: 0.527 · 0.31 = 0.16 GB/s.
func (k *physics) joined(p *placed, among float64) float64 {
	link := p.link * k.link
	if among > p.each {
		link = math.Min(link, k.between(p))
	}
	return link
}

// apart says that the machines have several accelerators each of a run that has more.
func (h *Machine) apart(n float64) bool { return h != nil && h.Each > 0 && n > h.Each }

// tell says what of the machines an estimate goes by.
func (h *Machine) tell(n float64) string {
	if !h.apart(n) {
		return ""
	}
	network := fmt.Sprintf("%g Gbit/s", h.Network)
	switch {
	case h.Network > 0:
	case h.Each < 8:
		network = fmt.Sprintf("a network that is not known and taken for %d Gbit/s", slowNetwork)
	default:
		network = "a network that is not known and taken for that of the clusters in published runs"
	}
	return fmt.Sprintf("%g machines exchange over %s each", h.Count, network)
}
