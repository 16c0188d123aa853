// Package propose says what a group of jobs does next.
package propose

import "scrimp/internal/work/groups"

// MovesAtOnce is how many moves one proposal has at most: the core takes them in one step.
const MovesAtOnce = 64

// Planner answers for many groups. It keeps what it has made of the reports of a study, so that the next proposal costs
// only what is new: the same snapshot gives the same moves, whatever the planner has seen before.
type Planner struct{ drivers map[string]*driver }

// maxDrivers bounds the studies that a planner remembers.
const maxDrivers = 16

// Moves are what the group does next, in order; none: it waits.
func (p *Planner) Moves(s groups.Snapshot) []groups.Move {
	switch s.Kind {
	case groups.Array:
		return array(s)
	case groups.Study:
		return p.driver(s).moves(s)
	case groups.Pipeline:
		return stages(s)
	case groups.Schedule:
		return runs(s)
	}
	return nil
}

// driver is that of a study: the one that is kept, where what it has seen is the beginning of the snapshot.
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

// Moves are what the group does next, by a planner that has seen nothing before.
func Moves(s groups.Snapshot) []groups.Move { return new(Planner).Moves(s) }

// array starts the members in the order of their indexes, as many at once as the group allows.
func array(s groups.Snapshot) (moves []groups.Move) {
	if s.Began == s.Members && s.Open == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}
	}
	for n := range min(s.Members-s.Began, s.AtOnce-s.Open, MovesAtOnce) {
		moves = append(moves, groups.Move{Do: groups.Start, Member: s.Began + n, Why: "next"})
	}
	return moves
}
