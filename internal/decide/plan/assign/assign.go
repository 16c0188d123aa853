package assign

// assign gives each row that needs one seat a column, besides the rows with a given column, so that the sum is
// maximal. It uses successive augmenting paths over the pools, whose seats are interchangeable. Rows are added one
// at a time. Each takes the best path to a free seat or to a row that loses its seat, so the assignment is always
// optimal for the rows so far. With k pools it takes about rows · (rows · k + k³) steps.
func (t *table) assign(caps, given []int) (at []int, sum worth) {
	at = make([]int, len(t.rows))
	taken := make([]int, t.none()+1)
	p := path{table: t, at: at}
	for i := range t.rows {
		at[i] = -1
		if given[i] >= 0 {
			at[i] = given[i]
			sum = sum.plus(t.w[i][at[i]])
		}
	}
	for i := range t.rows {
		if given[i] >= 0 {
			continue
		}
		p.find(i, given)
		end := t.none()
		for c := range t.Pools {
			if p.reached[c] && taken[c] < caps[c] && p.gain[c].compare(p.gain[end]) > 0 {
				end = c
			}
		}
		taken[end]++
		sum = sum.plus(p.gain[end])
		for c := end; ; {
			from := p.from[c]
			if from < 0 {
				at[i] = c
				break
			}
			at[from], c = c, at[from]
		}
	}
	return at, sum
}

// path holds the best ways to place one more row.
type path struct {
	*table
	at      []int
	gain    []worth // by column where the path ends
	reached []bool
	from    []int // the row that moves there to make room; -1: the new row itself
}

// find computes them for row i with Bellman-Ford. The current assignment is optimal, so no cycle of moves has a
// gain.
func (p *path) find(i int, given []int) {
	n := p.none() + 1
	p.gain, p.reached, p.from = make([]worth, n), make([]bool, n), make([]int, n)
	for c := range n {
		p.gain[c], p.reached[c], p.from[c] = p.w[i][c], p.can[i][c], -1
	}
	edges := p.edges(given)
	for again := true; again; {
		again = false
		for c := range p.none() {
			if !p.reached[c] {
				continue
			}
			for to := range n {
				e := &edges[c*n+to]
				if e.row < 0 {
					continue
				}
				if gain := p.gain[c].plus(e.gain); !p.reached[to] || gain.compare(p.gain[to]) > 0 {
					p.gain[to], p.reached[to], p.from[to] = gain, true, e.row
					again = true
				}
			}
		}
	}
}

// edge is the best move of a row from one column to another.
type edge struct {
	row  int // -1: no row can make the move
	gain worth
}

// edges finds the best move from each column to each other one: from column c to column to it is at c·n + to, with n
// columns. Rows that are given their column stay.
func (p *path) edges(given []int) []edge {
	n := p.none() + 1
	edges := make([]edge, n*n)
	for e := range edges {
		edges[e].row = -1
	}
	for r, c := range p.at {
		if c < 0 || given[r] >= 0 || c == p.none() {
			continue
		}
		for to := range n {
			if to == c || !p.can[r][to] {
				continue
			}
			gain := p.w[r][to].minus(p.w[r][c])
			if e := &edges[c*n+to]; e.row < 0 || gain.compare(e.gain) > 0 {
				*e = edge{r, gain}
			}
		}
	}
	return edges
}
