// Package propose decides what a group of jobs does next.
package propose

import "scrimp/internal/work/groups"

// MovesAtOnce bounds the moves of one proposal: the core applies them in one step.
const MovesAtOnce = 64

// Planner plans for many groups. It caches its results from a study's reports, so that the next proposal costs only
// what is new. The same snapshot always gives the same moves.
type Planner struct{ drivers map[string]*driver }

// maxDrivers bounds the studies that a planner caches.
const maxDrivers = 16

// Moves returns the next moves of the group in order; none if it waits.
func (p *Planner) Moves(s groups.Snapshot) []groups.Move {
	switch s.Kind {
	case groups.Array:
		return array(s)
	case groups.Study:
		return p.driver(s).moves(s)
	case groups.Pipeline:
		moves, _ := Stages(s, nil) // only a resolver fails
		return moves
	case groups.Schedule:
		return runs(s)
	}
	return nil
}

// driver returns the driver of a study, a cached one if the snapshot continues what it has seen.
func (p *Planner) driver(s groups.Snapshot) *driver {
	d := p.drivers[s.Group]
	if d == nil || !d.sees(s) {
		if len(p.drivers) >= maxDrivers || p.drivers == nil {
			p.drivers = map[string]*driver{}
		}
		d = newDriver(s)
		p.drivers[s.Group] = d
	}
	return d
}

// Moves returns the next moves of the group, from a new planner.
func Moves(s groups.Snapshot) []groups.Move { return new(Planner).Moves(s) }

// array starts the members in index order, as many at once as the group allows.
func array(s groups.Snapshot) (moves []groups.Move) {
	if s.Began == s.Members && s.Open == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}
	}
	for n := range min(s.Members-s.Began, s.AtOnce-s.Open, MovesAtOnce) {
		moves = append(moves, groups.Move{Do: groups.Start, Member: s.Began + n, Why: "next"})
	}
	return moves
}
