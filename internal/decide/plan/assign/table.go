package assign

import (
	"cmp"
	"slices"
)

// worth is the value of an assignment, compared by the first component that differs. For each priority from the
// highest it has the dollars per hour saved and the number of seats in use; then how few jobs leave a seat; then
// how early jobs with a near deadline, or that came first, get one. The saving of a seat is the claim alone, so
// jobs without a seat come in the order of their claims. Whether a group pays for its restarts is checked once it
// is complete.
type worth [2*priorities + 2]int64

// priorities are 2 critical, 1 normal, 0 low.
const priorities = 3

// mostRate keeps sums of rates in range: 10,000 per hour.
const mostRate = 1e16

func (w worth) plus(o worth) worth {
	for i := range w {
		w[i] += o[i]
	}
	return w
}

func (w worth) minus(o worth) worth {
	for i := range w {
		w[i] -= o[i]
	}
	return w
}

func (w worth) compare(o worth) int {
	for i := range w {
		if w[i] != o[i] {
			return cmp.Compare(w[i], o[i])
		}
	}
	return 0
}

// table has the bids that may be assigned and their worth in each column. The last column means no seat: the job
// waits, or runs on a rented machine.
type table struct {
	*Inputs
	rows []*Bid
	col  map[*Bid]int // current column of each bid
	caps []int        // seats of each pool that the rows may have
	w    [][]worth
	can  [][]bool
}

// newTable omits jobs that do not move; such a job keeps its seat.
func newTable(s *Inputs, held map[string]bool) *table {
	t := &table{Inputs: s, caps: make([]int, len(s.Pools)), col: map[*Bid]int{}}
	for i := range s.Pools {
		t.caps[i] = s.Pools[i].Free
	}
	for i := range s.Bids {
		b := &s.Bids[i]
		at := t.none()
		if b.Seated {
			at = slices.IndexFunc(s.Pools, func(p Pool) bool { return p.Offer == b.On })
		}
		if b.fixed(s.Now) || held[b.Job] || at < 0 {
			continue
		}
		if b.Seated {
			t.caps[at] += b.Nodes
		}
		t.rows, t.col[b] = append(t.rows, b), at
	}
	slices.SortFunc(t.rows, func(a, b *Bid) int { return a.compare(b) })
	t.w, t.can = make([][]worth, len(t.rows)), make([][]bool, len(t.rows))
	for i := range t.rows {
		t.weigh(i)
	}
	return t
}

// compare is the order of bids that are worth the same.
func (b *Bid) compare(o *Bid) int {
	if b.Deadline.Equal(o.Deadline) {
		return cmp.Compare(b.Order, o.Order)
	}
	if b.Deadline.IsZero() || o.Deadline.IsZero() {
		return cmp.Or(boolean(b.Deadline.IsZero())-boolean(o.Deadline.IsZero()), cmp.Compare(b.Order, o.Order))
	}
	return b.Deadline.Compare(o.Deadline)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// none is the column of jobs without a seat.
func (t *table) none() int { return len(t.Pools) }

// weigh computes what row i is worth in each column.
func (t *table) weigh(i int) {
	b := t.rows[i]
	t.w[i], t.can[i] = make([]worth, len(t.Pools)+1), make([]bool, len(t.Pools)+1)
	first := 2 * (priorities - 1 - min(max(b.Priority, 0), priorities-1))
	none := t.none()
	t.can[i][none] = true
	if b.Seated {
		until := t.Pools[t.col[b]].Until
		t.w[i][none][first] = -int64(b.Nodes) * int64(b.restart(min(b.Elsewhere, mostRate), until, t.Now))
		t.w[i][none][2*priorities] = -1
	}
	for c, p := range t.Pools {
		rate, ok := b.ask(p.Offer)
		stays := b.Seated && t.col[b] == c
		if !ok && !stays {
			continue
		}
		saves := min(rate, mostRate)
		restart := b.restart(saves, p.Until, t.Now)
		if b.On != "" && !stays && saves <= restart {
			continue // it would hardly have started there
		}
		w := &t.w[i][c]
		if b.Seated && !stays {
			saves, w[2*priorities] = saves-restart, -1
		}
		w[first], w[first+1] = int64(b.Nodes)*int64(saves), int64(b.Nodes)
		w[2*priorities+1] = int64(len(t.rows) - i)
		t.can[i][c] = true
	}
}

// solve assigns each row a column so that the sum is maximal. Rows that need one seat are assigned optimally. Rows
// that need several are added one after the other, the most valuable seats first, each wherever the total is worth
// more with it than without.
func (t *table) solve() []int {
	var gangs []int
	given := make([]int, len(t.rows))
	for i, b := range t.rows {
		given[i] = -1
		if b.Nodes > 1 {
			gangs, given[i] = append(gangs, i), t.none()
		}
	}
	slices.SortStableFunc(gangs, func(a, b int) int { return t.best(b).compare(t.best(a)) })
	at, sum := t.assign(t.left(given), given)
	for _, i := range gangs {
		for c := range t.Pools {
			before := given[i]
			given[i] = c
			if left := t.left(given); t.can[i][c] && slices.Min(left) >= 0 {
				if a, s := t.assign(left, given); s.compare(sum) > 0 {
					at, sum = a, s
					continue
				}
			}
			given[i] = before
		}
	}
	return at
}

// left returns the seats that the given columns leave in each pool.
func (t *table) left(given []int) []int {
	caps := slices.Clone(t.caps)
	for i, c := range given {
		if c >= 0 && c < t.none() {
			caps[c] -= t.rows[i].Nodes
		}
	}
	return caps
}

// best returns the highest worth per seat of row i in any column.
func (t *table) best(i int) (most worth) {
	for c := range t.Pools {
		w := t.w[i][c]
		for k := range 2 * priorities {
			w[k] /= int64(t.rows[i].Nodes)
		}
		if t.can[i][c] && w.compare(most) > 0 {
			most = w
		}
	}
	return most
}
