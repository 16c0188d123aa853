package onezone

import (
	"encoding/binary"
	"hash"
	"math"
)

// Piece identifies the tables of a problem that are needed while the offsets of a market lie between two
// neighbouring table offsets: Up and, if NextUp is set, the next one, and likewise for Gap. A market that was never
// seen to change lies exactly on one. The tables serve any amount of work and any time up to the problem's
// deadline. A problem has 49 tables in total, most of which no market ever needs.
type Piece struct {
	Problem Problem `json:"problem"`
	Up      int     `json:"up"` // index of the offset
	Gap     int     `json:"gap"`
	NextUp  bool    `json:"next_up,omitempty"`
	NextGap bool    `json:"next_gap,omitempty"`
}

// corners returns the tables of the piece.
func (p *Piece) corners() (list []corner) {
	for _, c := range corners(p.Up, p.Gap, 0.5, 0.5) {
		if (c.i == p.Up || p.NextUp) && (c.j == p.Gap || p.NextGap) {
			list = append(list, c)
		}
	}
	return list
}

// corner is one of the tables around a market's offsets, with its weight.
type corner struct {
	i, j int
	w    float64
}

// corners returns the tables around the piece at (i, j), weighted by the fractions of the way to its upper end.
func corners(i, j int, x, y float64) [4]corner {
	return [4]corner{{i, j, (1 - x) * (1 - y)}, {i + 1, j, x * (1 - y)}, {i, j + 1, (1 - x) * y}, {i + 1, j + 1, x * y}}
}

// Tables answer for a piece. They are immutable and safe for concurrent use.
type Tables struct {
	piece Piece
	g     *shape
	at    []*Table // in the order of the piece's corners
}

// Build builds the tables of a piece. It is a pure function.
func Build(p Piece, prior Prior) *Tables {
	t := &Tables{piece: p, g: newShape(p.Problem)}
	for _, c := range p.corners() {
		t.at = append(t.at, solveAt(t.g, p.Problem, prior, c.i, c.j))
	}
	return t
}

// Bytes returns the memory of the tables.
func (t *Tables) Bytes() int {
	n := 0
	for _, c := range t.at {
		n += c.bytes()
	}
	return n
}

// Sum writes all values of the tables to h.
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

// Missing returns the piece that a decision about the problem in that market needs and the shelf lacks. ok is false
// if nothing is missing.
func (s *Shelf) Missing(p Problem, m Market) (want Piece, ok bool) {
	up, gap := s.prior.offsets(&m)
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

// Adopt adds tables to the shelf. It keeps existing ones, which have the same values.
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
