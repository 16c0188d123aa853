package round

// assign gives each row that needs one seat a column, beside those that are given theirs, so that
// the sum is worth the most: successive augmenting paths over the pools, whose seats are alike.
// Rows come one at a time; each takes the best path to a seat that is free, or to a row that goes
// without, so that what stands so far is always the best for the rows so far. With k pools it takes
// about rows · (rows · k + k³) steps.
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

// path is the best ways in which one more row can have a place.
type path struct {
	*table
	at      []int
	gain    []worth // by column where the path ends
	reached []bool
	from    []int // the row that goes there to make room; -1: the new one itself
}

// find finds them for row i, by Bellman and Ford: the rows stand in the best way that there is,
// so that no circle of moves gains anything.
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
