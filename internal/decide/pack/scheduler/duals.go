package scheduler

import (
	"slices"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/simplex"
)

// pricings bounds how often a round searches for better columns.
const pricings = 8

// duals keeps the columns of the linear program between rounds.
type duals struct {
	pool []shape
}

// shape is a column in terms of classes, so that it outlives its tasks.
type shape struct {
	kind    int
	classes []int // sorted, one for each task
}

// value computes what an hour of each task's work is worth.
func (s *saver) value(v *pack.View) {
	s.worth = s.worth[:0]
	for i := range v.Tasks {
		s.worth = append(s.worth, s.classes.price(i))
	}
	rows, row, want := s.rows(v)
	if len(rows) == 0 {
		return
	}
	m := simplex.New(want, func(k int) simplex.Column {
		c := s.classes.list[rows[k]]
		return simplex.Column{Cost: c.price, Rows: []int{k}, Parts: []float64{1}, Kind: c.cheapest}
	})
	for _, p := range s.duals.pool {
		if c, ok := s.column(v, p, row); ok {
			m.Columns = append(m.Columns, c)
		}
	}
	t := &trial{Statement: &Statement{v: v}, s: s, f: filler{v: v, rates: &s.rates, worth: s.worth}}
	var all []int
	for i := range v.Tasks {
		if s.classes.cheapest(i) != pack.Waiting {
			all = append(all, i)
		}
	}
	for range pricings {
		m.Solve()
		for i := range v.Tasks {
			if r := row[s.classes.of[i]]; r >= 0 {
				s.worth[i] = m.Price[r]
			}
		}
		if !t.price(m, row, all) {
			break
		}
	}
	s.trim(m, rows)
}

// rows lists the classes present, the row of each class or -1, and the number of tasks per row.
func (s *saver) rows(v *pack.View) (rows, row []int, want []float64) {
	row = make([]int, len(s.classes.list))
	for i := range row {
		row[i] = -1
	}
	for i := range v.Tasks {
		c := s.classes.of[i]
		if s.classes.cheapest(i) == pack.Waiting {
			continue
		}
		if row[c] < 0 {
			row[c] = len(rows)
			rows = append(rows, c)
			want = append(want, 0)
		}
		want[row[c]]++
	}
	return rows, row, want
}

// column builds a column from a shape, unless one of its classes is not present.
func (s *saver) column(v *pack.View, p shape, row []int) (simplex.Column, bool) {
	c := simplex.Column{Cost: pack.Hourly(v.Types[p.kind].Price), Kind: p.kind}
	for i, a := range p.classes {
		if row[a] < 0 {
			return c, false
		}
		rate := 1.0
		for j, b := range p.classes {
			if j != i {
				rate *= s.rates.Of(s.classes.list[a].kind, s.classes.list[b].kind)
			}
		}
		if n := len(c.Rows); n > 0 && c.Rows[n-1] == row[a] {
			c.Parts[n-1] += rate
			c.Count[n-1]++
			continue
		}
		c.Rows, c.Parts, c.Count = append(c.Rows, row[a]), append(c.Parts, rate), append(c.Count, 1)
	}
	return c, true
}

// price adds columns that are worth more than they cost, and reports whether there were any.
func (t *trial) price(m *simplex.Program, row []int, all []int) bool {
	found := false
	shelves := t.stock(all)
	for kind, y := range t.v.Types {
		tasks, value := t.fill(y.Size, nil, shelves)
		if value <= pack.Hourly(y.Price)*(1+1e-6) {
			continue
		}
		p := shape{kind: kind}
		for _, i := range tasks {
			p.classes = append(p.classes, t.s.classes.of[i])
		}
		slices.Sort(p.classes)
		c, _ := t.s.column(t.v, p, row)
		m.Columns = append(m.Columns, c)
		found = true
	}
	return found
}

// trim keeps the columns that are used, or nearly so.
func (s *saver) trim(m *simplex.Program, rows []int) {
	s.duals.pool = s.duals.pool[:0]
	for j := len(rows); j < len(m.Columns); j++ {
		c := &m.Columns[j]
		if m.Worth(c) < 0.95*c.Cost {
			continue
		}
		p := shape{kind: c.Kind}
		for q, r := range c.Rows {
			for range c.Count[q] {
				p.classes = append(p.classes, rows[r])
			}
		}
		s.duals.pool = append(s.duals.pool, p)
	}
	if n := len(s.duals.pool); n > 300 {
		s.duals.pool = slices.Clone(s.duals.pool[n-300:])
	}
}
