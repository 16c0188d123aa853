package horizon

import (
	"encoding/binary"
	"hash"
	"math"
)

// Piece names the tables of a problem that decide while the offsets of a market lie
// between two neighbours of those that tables are made for: Up and, with NextUp, the
// one after it, and the same of Gap. A market that was never seen to change lies on
// one. They serve any work and any time up to the problem's deadline. All of a problem
// would be 49 tables, most of which no market ever comes to.
type Piece struct {
	Problem Problem `json:"problem"`
	Up      int     `json:"up"` // number of the offset
	Gap     int     `json:"gap"`
	NextUp  bool    `json:"next_up,omitempty"`
	NextGap bool    `json:"next_gap,omitempty"`
}

// corners are the tables of the piece.
func (p *Piece) corners() (list []corner) {
	for _, c := range corners(p.Up, p.Gap, 0.5, 0.5) {
		if (c.i == p.Up || p.NextUp) && (c.j == p.Gap || p.NextGap) {
			list = append(list, c)
		}
	}
	return list
}

// corner is one of the tables around a market's offsets, and its weight.
type corner struct {
	i, j int
	w    float64
}

// corners are the tables of the piece that (i, j) is the lower end of, weighed by the
// parts of the way to its upper end.
func corners(i, j int, x, y float64) [4]corner {
	return [4]corner{{i, j, (1 - x) * (1 - y)}, {i + 1, j, x * (1 - y)}, {i, j + 1, (1 - x) * y}, {i + 1, j + 1, x * y}}
}

// Tables answer for a piece. They never change, so any goroutine may read them.
type Tables struct {
	piece Piece
	g     *shape
	at    []*Table // in the order of the piece's corners
}

// Build makes the tables of a piece. It is a pure function.
func Build(p Piece, prior Prior) *Tables {
	t := &Tables{piece: p, g: newShape(p.Problem)}
	for _, c := range p.corners() {
		t.at = append(t.at, solveAt(t.g, p.Problem, prior, c.i, c.j))
	}
	return t
}

// Bytes is what they take.
func (t *Tables) Bytes() int {
	n := 0
	for _, c := range t.at {
		n += c.bytes()
	}
	return n
}

// Sum writes all that they answer into h.
func (t *Tables) Sum(h hash.Hash) {
	var buf []byte
	for _, c := range t.at {
		for _, level := range c.value {
			buf = buf[:0]
			for _, x := range level {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
			h.Write(buf)
		}
	}
}

// Missing returns the piece that a decision about the problem in that market needs and
// the shelf does not have; ok is false where all is there.
func (s *Shelf) Missing(p Problem, m Market) (want Piece, ok bool) {
	up, gap := s.prior.Offsets(m.Odds)
	i, x := between(up)
	j, y := between(gap)
	v := s.find(p)
	for _, c := range corners(i, j, x, y) {
		if c.w != 0 && (v == nil || v.tables[c.i][c.j] == nil) {
			return Piece{Problem: p, Up: i, Gap: j, NextUp: x != 0, NextGap: y != 0}, true
		}
	}
	return want, false
}

// Adopt puts tables on the shelf. What is there already stays: it says the same.
func (s *Shelf) Adopt(t *Tables) {
	v := s.find(t.piece.Problem)
	if v == nil {
		v = &Solver{p: t.piece.Problem, prior: s.prior, g: t.g}
	}
	for k, c := range t.piece.corners() {
		if v.tables[c.i][c.j] == nil {
			v.tables[c.i][c.j] = t.at[k]
			v.bytes += t.at[k].bytes()
		}
	}
	s.put(v)
}
