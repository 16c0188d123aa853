// Package simplex solves the linear program of column generation: the cheapest mix of ways to fill machines.
package simplex

// Program is the linear program of column generation (Gilmore and Gomory): the cheapest mix of columns, each a
// machine with a set of tasks, that covers the wanted amount of every row. It uses the revised simplex method with
// an explicit inverse, and continues from its last basis when columns are added.
type Program struct {
	want    []float64
	Columns []Column
	Basis   []int // column of each row of the basis; -1-k is the surplus of row k
	inverse [][]float64
	X       []float64 // of the basis
	Price   []float64 // duals, by row
}

// Column is one way to use a machine.
type Column struct {
	Cost  float64
	Rows  []int
	Parts []float64 // how much of each row it covers
	Kind  int       // machine type
	Count []int     // tasks of each row
}

// Tiny is the threshold below which a number counts as zero; prices and counts are far larger.
const Tiny = 1e-9

// New starts with one column per row that covers that row alone.
func New(want []float64, single func(row int) Column) *Program {
	n := len(want)
	m := &Program{want: want, Basis: make([]int, n), inverse: make([][]float64, n),
		X: make([]float64, n), Price: make([]float64, n)}
	for k := range n {
		c := single(k)
		m.Columns = append(m.Columns, c)
		m.Basis[k] = k
		m.inverse[k] = make([]float64, n)
		m.inverse[k][k] = 1 / c.Parts[0]
		m.X[k] = want[k] / c.Parts[0]
	}
	m.duals()
	return m
}

func (m *Program) cost(b int) float64 {
	if b < 0 {
		return 0
	}
	return m.Columns[b].Cost
}

// duals computes the cost of one more of each row.
func (m *Program) duals() {
	for k := range m.Price {
		m.Price[k] = 0
	}
	for i, b := range m.Basis {
		c := m.cost(b)
		if c == 0 {
			continue
		}
		for k, v := range m.inverse[i] {
			m.Price[k] += float64(c * v)
		}
	}
}

// Worth is the value of a column's tasks at the current duals.
func (m *Program) Worth(c *Column) (sum float64) {
	for i, k := range c.Rows {
		sum += float64(m.Price[k] * c.Parts[i])
	}
	return sum
}

// Value is the cost of the current mix.
func (m *Program) Value() (sum float64) {
	for i, b := range m.Basis {
		sum += float64(m.X[i] * m.cost(b))
	}
	return sum
}

// Solve moves columns into the basis until none makes the mix cheaper.
func (m *Program) Solve() {
	for range 50 * (len(m.want) + 10) { // a bound in case rounding makes it cycle
		enter, best, found := 0, -Tiny, false
		for j := range m.Columns {
			if r := m.Columns[j].Cost - m.Worth(&m.Columns[j]); r < best*max(1, m.Columns[j].Cost) {
				enter, best, found = j, r/max(1, m.Columns[j].Cost), true
			}
		}
		for k, p := range m.Price {
			if p < best {
				enter, best, found = -1-k, p, true
			}
		}
		if !found || !m.pivot(enter) {
			return
		}
	}
}

// pivot moves a column into the basis, and reports whether it could.
func (m *Program) pivot(enter int) bool {
	n := len(m.want)
	d := make([]float64, n)
	for i := range n {
		if enter < 0 {
			d[i] = -m.inverse[i][-1-enter]
			continue
		}
		c := &m.Columns[enter]
		for q, k := range c.Rows {
			d[i] += float64(m.inverse[i][k] * c.Parts[q])
		}
	}
	leave := -1
	for i := range n {
		if d[i] > Tiny && (leave < 0 || m.X[i]*d[leave] < m.X[leave]*d[i]) {
			leave = i
		}
	}
	if leave < 0 {
		return false
	}
	row := m.inverse[leave]
	for k := range row {
		row[k] /= d[leave]
	}
	m.X[leave] /= d[leave]
	for i := range n {
		if i == leave || d[i] == 0 {
			continue
		}
		f := d[i]
		other := m.inverse[i]
		for k, v := range row {
			other[k] -= float64(f * v)
		}
		m.X[i] = max(0, m.X[i]-float64(f*m.X[leave]))
	}
	m.Basis[leave] = enter
	m.duals()
	return true
}
