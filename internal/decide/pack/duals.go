package pack

import "slices"

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
func (s *saver) value(v *View) {
	s.worth = s.worth[:0]
	for i := range v.Tasks {
		s.worth = append(s.worth, s.classes.price(i))
	}
	rows, row, want := s.rows(v)
	if len(rows) == 0 {
		return
	}
	m := newMaster(want, func(k int) column {
		c := s.classes.list[rows[k]]
		return column{cost: c.price, rows: []int{k}, parts: []float64{1}, kind: c.cheapest}
	})
	for _, p := range s.duals.pool {
		if c, ok := s.column(v, p, row); ok {
			m.columns = append(m.columns, c)
		}
	}
	t := &trial{Statement: &Statement{v: v}, s: s, f: filler{v: v, rates: &s.rates, worth: s.worth}}
	var all []int
	for i := range v.Tasks {
		if s.classes.cheapest(i) != Waiting {
			all = append(all, i)
		}
	}
	for range pricings {
		m.solve()
		for i := range v.Tasks {
			if r := row[s.classes.of[i]]; r >= 0 {
				s.worth[i] = m.price[r]
			}
		}
		if !t.price(m, row, all) {
			break
		}
	}
	s.trim(m, rows)
}

// rows lists the classes present, the row of each class or -1, and the number of tasks per row.
func (s *saver) rows(v *View) (rows, row []int, want []float64) {
	row = make([]int, len(s.classes.list))
	for i := range row {
		row[i] = -1
	}
	for i := range v.Tasks {
		c := s.classes.of[i]
		if s.classes.cheapest(i) == Waiting {
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
func (s *saver) column(v *View, p shape, row []int) (column, bool) {
	c := column{cost: hourly(v.Types[p.kind].Price), kind: p.kind}
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
		if n := len(c.rows); n > 0 && c.rows[n-1] == row[a] {
			c.parts[n-1] += rate
			c.count[n-1]++
			continue
		}
		c.rows, c.parts, c.count = append(c.rows, row[a]), append(c.parts, rate), append(c.count, 1)
	}
	return c, true
}

// price adds columns that are worth more than they cost, and reports whether there were any.
func (t *trial) price(m *master, row []int, all []int) bool {
	found := false
	shelves := t.stock(all)
	for kind, y := range t.v.Types {
		tasks, value := t.fill(y.Size, nil, shelves)
		if value <= hourly(y.Price)*(1+1e-6) {
			continue
		}
		p := shape{kind: kind}
		for _, i := range tasks {
			p.classes = append(p.classes, t.s.classes.of[i])
		}
		slices.Sort(p.classes)
		c, _ := t.s.column(t.v, p, row)
		m.columns = append(m.columns, c)
		found = true
	}
	return found
}

// trim keeps the columns that are used, or nearly so.
func (s *saver) trim(m *master, rows []int) {
	s.duals.pool = s.duals.pool[:0]
	for j := len(rows); j < len(m.columns); j++ {
		c := &m.columns[j]
		if m.worth(c) < 0.95*c.cost {
			continue
		}
		p := shape{kind: c.kind}
		for q, r := range c.rows {
			for range c.count[q] {
				p.classes = append(p.classes, rows[r])
			}
		}
		s.duals.pool = append(s.duals.pool, p)
	}
	if n := len(s.duals.pool); n > 300 {
		s.duals.pool = slices.Clone(s.duals.pool[n-300:])
	}
}
