package costtogo

import (
	"encoding/binary"
	"hash"
	"math"
	"slices"

	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/quantity"
)

// Piece is the complete input of a table: prices and learned hazards, on the grids they are rounded to, and the
// range of work and slack that the table covers. It round-trips through JSON. Units are dollars and hours.
type Piece struct {
	Price   []float64    `json:"spot_usd"` // per hour, by zone
	Loss    [][3]float64 `json:"loss"`     // by zone: logarithm of the scale that passes in days, in hours, and never
	Back    [][3]float64 `json:"back"`
	Up      []float64    `json:"up"`            // share of the time, by zone
	Now     []float64    `json:"now"`           // probability of being up now, by zone
	Regions []int        `json:"regions"`       // index of the region, by zone
	Demand  []float64    `json:"on_demand_usd"` // per hour, by region
	Restart float64      `json:"restart_hours"`
	Carry   []float64    `json:"carry_usd"` // by region, from and to
	Further float64      `json:"transfer_hours"`
	Tick    float64      `json:"tick_hours"`
	Latch   bool         `json:"latch,omitempty"`
	Step    float64      `json:"step_hours"` // of work between layers
	Top     int          `json:"layers"`
	Slack   float64      `json:"slack_hours"`
}

// Piece returns the input of the table that answers for m.
func (m *Model) Piece() Piece {
	list := func(of []Drift) (out [][3]float64) {
		for _, d := range of {
			out = append(out, [3]float64{d.trait, d.mood, d.lasting})
		}
		return out
	}
	return Piece{
		Price: slices.Clone(m.Price), Loss: list(m.Loss), Back: list(m.Back),
		Up: slices.Clone(m.Up), Now: slices.Clone(m.now), Regions: slices.Clone(m.Regions),
		Demand: slices.Clone(m.Demand), Restart: m.Restart, Carry: slices.Clone(m.Carry), Further: m.Further, Tick: m.Tick,
		Latch: m.Latch,
		Step:  m.step, Top: m.top, Slack: m.slack,
	}
}

func (p *Piece) model() *Model {
	list := func(of [][3]float64) (out []Drift) {
		for _, d := range of {
			out = append(out, Drift{d[0], d[1], d[2]})
		}
		return out
	}
	m := &Model{
		Price: p.Price, Loss: list(p.Loss), Back: list(p.Back), Up: p.Up, now: p.Now, Regions: p.Regions,
		Demand: p.Demand, Restart: p.Restart, Carry: p.Carry, Further: p.Further, Tick: p.Tick, Latch: p.Latch,
		step: p.Step, top: p.Top, slack: p.Slack,
	}
	for z := range m.Price {
		m.N = max(m.N, m.Regions[z]+1)
		m.usual = append(m.usual, usual(m.relativePrice(z)))
	}
	return m
}

// Build computes the table of a piece. It is a pure function.
func Build(p Piece) *Table {
	t := &Table{}
	t.Build(p.model())
	t.rest()
	return t
}

// rest drops what only building needs.
func (t *Table) rest() {
	t.mid, t.midA, t.order, t.lines, t.spare = nil, nil, nil, lines{}, nil
	t.waited, t.moved, t.after = [hazard.Ages][]float64{}, [hazard.Ages][]float64{}, [hazard.Ages][]float64{}
}

// Bytes returns the memory of the table.
func (t *Table) Bytes() int {
	n := 0
	for _, l := range t.layers {
		n += 8 * len(l.cells)
	}
	return n
}

// Sum writes all values to h, to a thousandth of a dollar, because the last bits of exponentials differ between
// processors.
func (t *Table) Sum(h hash.Hash) {
	var buf []byte
	for _, l := range t.layers {
		buf = buf[:0]
		for _, x := range l.cells {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(quantity.Int(math.Round(x*1024))))
		}
		h.Write(buf)
	}
}

// Shelf keeps the most recently used tables, for all jobs. It is a cache of pure results.
type Shelf struct {
	most  int
	bytes int
	order []*Table // most recently used first
}

// NewShelf returns a shelf for that many bytes, but at least for one table.
func NewShelf(bytes int) *Shelf { return &Shelf{most: bytes} }

// Adopt adds a table to the shelf. The least recently used ones make room for it.
func (s *Shelf) Adopt(t *Table) {
	if s.Find(&t.Model) != nil {
		return
	}
	s.order = slices.Insert(s.order, 0, t)
	s.bytes += t.Bytes()
	for last := len(s.order) - 1; last > 0 && s.bytes > s.most; last-- {
		s.bytes -= s.order[last].Bytes()
		s.order[last] = nil
		s.order = s.order[:last]
	}
}

// Find returns the table for m and makes it the newest, or returns nil.
func (s *Shelf) Find(m *Model) *Table {
	i := slices.IndexFunc(s.order, func(t *Table) bool { return m.alike(&t.Model) && m.Same(&t.Model) })
	if i < 0 {
		return nil
	}
	t := s.order[i]
	copy(s.order[1:i+1], s.order[:i])
	s.order[0] = t
	return t
}

// alike reports whether m has the same zones and machines as o.
func (m *Model) alike(o *Model) bool {
	return slices.Equal(m.Demand, o.Demand) && m.Restart == o.Restart && slices.Equal(m.Carry, o.Carry) &&
		m.Further == o.Further && m.Tick == o.Tick && m.Latch == o.Latch && slices.Equal(m.Regions, o.Regions)
}
