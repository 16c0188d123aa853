package assign

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// step is a row's change of column.
type step struct {
	bid      *Bid
	from, to int // columns
}

// group is a set of steps that need each other: some take seats that others leave.
type group struct {
	moves []step
	none  int // the column without a seat
}

// groups returns the changes from the current placement, the most urgent first.
func (t *table) groups(at []int) []group {
	var steps []step
	for i, b := range t.rows {
		if at[i] != t.col[b] {
			steps = append(steps, step{b, t.col[b], at[i]})
		}
	}
	of := make([]int, len(steps)) // by step: its group
	for n := range of {
		of[n] = n
	}
	join := func(a, b int) {
		for n, old := range slices.Clone(of) {
			if old == of[b] {
				of[n] = of[a]
			}
		}
	}
	for c, p := range t.Pools {
		t.link(steps, c, p.Free, join)
	}
	byGroup := map[int]*group{}
	var order []int
	for n, g := range of {
		if byGroup[g] == nil {
			byGroup[g] = &group{none: t.none()}
			order = append(order, g)
		}
		byGroup[g].moves = append(byGroup[g].moves, steps[n])
	}
	list := make([]group, 0, len(order))
	for _, g := range order {
		list = append(list, *byGroup[g])
	}
	for n := range list {
		// leaving comes first
		slices.SortStableFunc(list[n].moves, func(a, b step) int { return cmp.Compare(b.to, a.to) })
	}
	slices.SortStableFunc(list, func(a, b group) int {
		x, y := a.first(), b.first()
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(y.Elsewhere, x.Elsewhere), x.compare(y))
	})
	return list
}

// link joins the steps that move into pool c with those whose seats they need beyond the free ones, in the order of
// the rows.
func (t *table) link(steps []step, c, free int, join func(a, b int)) {
	var leaving []int // one step per seat
	for n := range steps {
		if steps[n].from == c {
			for range steps[n].bid.Nodes {
				leaving = append(leaving, n)
			}
		}
	}
	for n := range steps {
		if steps[n].to != c {
			continue
		}
		for range steps[n].bid.Nodes {
			if free > 0 {
				free--
				continue
			}
			join(n, leaving[0])
			leaving = leaving[1:]
		}
	}
}

// first returns the most urgent bid that gets a seat, or, if none does, the bid that leaves.
func (g *group) first() (best *Bid) {
	for _, m := range g.moves {
		b := m.bid
		if m.to != g.none && (best == nil || b.Priority > best.Priority ||
			b.Priority == best.Priority && b.Elsewhere > best.Elsewhere) {
			best = b
		}
	}
	if best == nil {
		return g.moves[0].bid
	}
	return best
}

// balance returns what the group saves per hour, for how long, and what its restarts cost. ok is false if a job
// leaves its seat for another job whose remaining work is unknown.
func (g *group) balance(s *Inputs) (saves money.Rate, span time.Duration, restarts money.Amount, ok bool) {
	span, ok = 1<<62, true
	for _, m := range g.moves {
		before, after := money.Rate(0), money.Rate(0)
		if m.from != g.none {
			before, _ = m.bid.ask(s.Pools[m.from].Offer)
		}
		pays := m.bid.Elsewhere
		until := s.Pools[min(m.from, len(s.Pools)-1)].Until
		if m.to != g.none {
			after, _ = m.bid.ask(s.Pools[m.to].Offer)
			until, pays = s.Pools[m.to].Until, after
		}
		d, known := m.bid.span(until, s.Now)
		ok = ok && (known || !g.evicts())
		span = min(span, d)
		saves += min(after, mostRate).Times(m.bid.Nodes) - min(before, mostRate).Times(m.bid.Nodes)
		if m.bid.On != "" {
			restarts = restarts.Add(min(pays, mostRate).Times(m.bid.Nodes).Until(m.bid.Restart))
		}
	}
	return saves, span, restarts, ok
}

// evicts reports whether a job leaves a seat.
func (g *group) evicts() bool {
	return slices.ContainsFunc(g.moves, func(s step) bool { return s.from != g.none })
}

// pays reports whether the group saves more, while all of it still has work, than its restarts cost. A group of
// waiting jobs always pays, because they would start anyway.
func (g *group) pays(s *Inputs) bool {
	if !slices.ContainsFunc(g.moves, func(m step) bool { return m.bid.On != "" }) {
		return true
	}
	saves, span, restarts, ok := g.balance(s)
	return ok && saves > 0 && saves.Until(span).Cmp(restarts) > 0
}

// hold keeps jobs in place if their leaving does not pay, or if they would move for nothing.
func (g *group) hold(held map[string]bool) {
	evicts := g.evicts()
	for _, m := range g.moves {
		if !evicts || m.from != g.none {
			held[m.bid.Job] = true
		}
	}
}

// public returns the group as it is proposed. A moved job rests until the move has paid back, and for one restart
// at least.
func (g *group) public(s *Inputs) Group {
	saves, _, restarts, _ := g.balance(s)
	pays := time.Duration(0)
	if d, ok := saves.Buys(restarts); ok && saves > 0 {
		pays = d
	}
	var out Group
	for _, m := range g.moves {
		v := Move{Job: m.bid.Job, Epoch: m.bid.Epoch, Nodes: m.bid.Nodes, From: m.bid.On}
		if m.to != g.none {
			v.To, v.Most = s.Pools[m.to].Offer, s.Pools[m.to].Most
		}
		if v.From != "" {
			v.Rests = max(pays, m.bid.Restart)
		}
		out.Moves = append(out.Moves, v)
	}
	return out
}
