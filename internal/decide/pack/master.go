package pack

// master is the linear program of column generation (Gilmore and Gomory): the cheapest mix of columns, each a
// machine with a set of tasks, that covers the wanted amount of every row. It uses the revised simplex method with
// an explicit inverse, and continues from its last basis when columns are added.
type master struct {
	want    []float64
	columns []column
	basis   []int // column of each row of the basis; -1-k is the surplus of row k
	inverse [][]float64
	x       []float64 // of the basis
	price   []float64 // duals, by row
}

// column is one way to use a machine.
type column struct {
	cost  float64
	rows  []int
	parts []float64 // how much of each row it covers
	kind  int       // machine type
	count []int     // tasks of each row
}

// tiny is the threshold below which a number counts as zero; prices and counts are far larger.
const tiny = 1e-9

// newMaster starts with one column per row that covers that row alone.
func newMaster(want []float64, single func(row int) column) *master {
	n := len(want)
	m := &master{want: want, basis: make([]int, n), inverse: make([][]float64, n),
		x: make([]float64, n), price: make([]float64, n)}
	for k := range n {
		c := single(k)
		m.columns = append(m.columns, c)
		m.basis[k] = k
		m.inverse[k] = make([]float64, n)
		m.inverse[k][k] = 1 / c.parts[0]
		m.x[k] = want[k] / c.parts[0]
	}
	m.duals()
	return m
}

func (m *master) cost(b int) float64 {
	if b < 0 {
		return 0
	}
	return m.columns[b].cost
}

// duals computes the cost of one more of each row.
func (m *master) duals() {
	for k := range m.price {
		m.price[k] = 0
	}
	for i, b := range m.basis {
		c := m.cost(b)
		if c == 0 {
			continue
		}
		for k, v := range m.inverse[i] {
			m.price[k] += float64(c * v)
		}
	}
}

// worth is the value of a column's tasks at the current duals.
func (m *master) worth(c *column) (sum float64) {
	for i, k := range c.rows {
		sum += float64(m.price[k] * c.parts[i])
	}
	return sum
}

// value is the cost of the current mix.
func (m *master) value() (sum float64) {
	for i, b := range m.basis {
		sum += float64(m.x[i] * m.cost(b))
	}
	return sum
}

// solve moves columns into the basis until none makes the mix cheaper.
func (m *master) solve() {
	for range 50 * (len(m.want) + 10) { // a bound in case rounding makes it cycle
		enter, best, found := 0, -tiny, false
		for j := range m.columns {
			if r := m.columns[j].cost - m.worth(&m.columns[j]); r < best*max(1, m.columns[j].cost) {
				enter, best, found = j, r/max(1, m.columns[j].cost), true
			}
		}
		for k, p := range m.price {
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
func (m *master) pivot(enter int) bool {
	n := len(m.want)
	d := make([]float64, n)
	for i := range n {
		if enter < 0 {
			d[i] = -m.inverse[i][-1-enter]
			continue
		}
		c := &m.columns[enter]
		for q, k := range c.rows {
			d[i] += float64(m.inverse[i][k] * c.parts[q])
		}
	}
	leave := -1
	for i := range n {
		if d[i] > tiny && (leave < 0 || m.x[i]*d[leave] < m.x[leave]*d[i]) {
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
	m.x[leave] /= d[leave]
	for i := range n {
		if i == leave || d[i] == 0 {
			continue
		}
		f := d[i]
		other := m.inverse[i]
		for k, v := range row {
			other[k] -= float64(f * v)
		}
		m.x[i] = max(0, m.x[i]-float64(f*m.x[leave]))
	}
	m.basis[leave] = enter
	m.duals()
	return true
}
