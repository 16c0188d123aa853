package place

import (
	"encoding/binary"
	"hash"
	"math"
	"slices"

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

func (m *model) piece() Piece {
	list := func(of []drift) (out [][3]float64) {
		for _, d := range of {
			out = append(out, [3]float64{d.trait, d.mood, d.lasting})
		}
		return out
	}
	return Piece{
		Price: slices.Clone(m.price), Loss: list(m.loss), Back: list(m.back),
		Up: slices.Clone(m.up), Now: slices.Clone(m.now), Regions: slices.Clone(m.regions),
		Demand: slices.Clone(m.demand), Restart: m.restart, Carry: slices.Clone(m.carry), Further: m.further, Tick: m.tick,
		Latch: m.latch,
		Step:  m.step, Top: m.top, Slack: m.slack,
	}
}

func (p *Piece) model() *model {
	list := func(of [][3]float64) (out []drift) {
		for _, d := range of {
			out = append(out, drift{d[0], d[1], d[2]})
		}
		return out
	}
	m := &model{
		price: p.Price, loss: list(p.Loss), back: list(p.Back), up: p.Up, now: p.Now, regions: p.Regions,
		demand: p.Demand, restart: p.Restart, carry: p.Carry, further: p.Further, tick: p.Tick, latch: p.Latch,
		step: p.Step, top: p.Top, slack: p.Slack,
	}
	for z := range m.price {
		m.n = max(m.n, m.regions[z]+1)
		m.usual = append(m.usual, usual(m.dear(z)))
	}
	return m
}

// Table answers for a piece: for every view with that model. It is immutable and safe for concurrent use.
type Table struct{ t *table }

// Build computes the table of a piece. It is a pure function.
func Build(p Piece) *Table {
	t := &table{}
	t.build(p.model())
	t.rest()
	return &Table{t}
}

// rest drops what only building needs.
func (t *table) rest() {
	t.mid, t.midA, t.order, t.lines, t.spare = nil, nil, nil, lines{}, nil
	t.waited, t.moved, t.after = [ages][]float64{}, [ages][]float64{}, [ages][]float64{}
}

// Bytes returns the memory of the table.
func (t *Table) Bytes() int { return t.t.bytes() }

func (t *table) bytes() int {
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
	for _, l := range t.t.layers {
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
	order []*table // most recently used first
}

// NewShelf returns a shelf for that many bytes, but at least for one table.
func NewShelf(bytes int) *Shelf { return &Shelf{most: bytes} }

// Adopt adds a table to the shelf. The least recently used ones make room for it.
func (s *Shelf) Adopt(t *Table) {
	if s.find(&t.t.m) != nil {
		return
	}
	s.order = slices.Insert(s.order, 0, t.t)
	s.bytes += t.Bytes()
	for last := len(s.order) - 1; last > 0 && s.bytes > s.most; last-- {
		s.bytes -= s.order[last].bytes()
		s.order[last] = nil
		s.order = s.order[:last]
	}
}

// find returns the table for m and makes it the newest, or returns nil.
func (s *Shelf) find(m *model) *table {
	i := slices.IndexFunc(s.order, func(t *table) bool { return m.alike(&t.m) && m.same(&t.m) })
	if i < 0 {
		return nil
	}
	t := s.order[i]
	copy(s.order[1:i+1], s.order[:i])
	s.order[0] = t
	return t
}

// alike reports whether m has the same zones and machines as o.
func (m *model) alike(o *model) bool {
	return slices.Equal(m.demand, o.demand) && m.restart == o.restart && slices.Equal(m.carry, o.carry) &&
		m.further == o.further && m.tick == o.tick && m.latch == o.latch && slices.Equal(m.regions, o.regions)
}

// Missing returns the piece that Poll and Decide need for the view and that Shelf lacks. ok is false if nothing is
// missing, for example because the guard decides.
func (p *Foresight) Missing(v View) (want Piece, ok bool) {
	if p.Shelf == nil || p.Job.Guarded(v.Tick, v.Left) {
		return want, false
	}
	if p.begin(v); p.tab != nil {
		return want, false
	}
	return p.now.piece(), true
}
