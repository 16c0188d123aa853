package propose

import (
	"scrimp/internal/work/groups"
	"scrimp/internal/work/tune"
)

// careful is what a unit may cost beyond what is expected of it.
const careful = 1.25

// costs learn what a unit costs, and what it costs to begin or resume a trial: as much as a first unit costs beyond a
// later one.
type costs struct {
	first, later   float64
	firsts, laters float64
}

// learn takes a unit's cost, and returns what a change to another trial costs.
func (c *costs) learn(u unit, moved bool) float64 {
	switch {
	case u.cost <= 0: // nothing was trained for it
	case moved:
		c.first, c.firsts = c.first+u.cost, c.firsts+1
	default:
		c.later, c.laters = c.later+u.cost, c.laters+1
	}
	return c.move()
}

// move is what a change to another trial costs.
func (c *costs) move() float64 {
	if c.firsts == 0 || c.laters == 0 {
		return 0
	}
	return max(0, c.first/c.firsts-c.later/c.laters)
}

// mean is what a unit costs; 0: nobody knows yet.
func (c *costs) mean() float64 {
	switch {
	case c.laters > 0:
		return c.later / c.laters
	case c.firsts > 0:
		return c.first / c.firsts
	}
	return 0
}

// next is what the next unit of a trial may cost that has trained these; 0: nobody knows yet.
func (c *costs) next(units []unit) float64 {
	if n := len(units); n > 0 && units[n-1].cost > 0 {
		return careful * units[n-1].cost
	}
	if c.firsts > 0 {
		return careful * c.first / c.firsts
	}
	return careful * c.mean()
}

// difference returns the moves from the trials that train to those that should.
func (d *driver) difference(s groups.Snapshot) []groups.Move {
	wanted, active := map[int]bool{}, 0
	for _, k := range d.workers {
		if k.config != tune.None && !k.waits {
			wanted[k.config] = true
		}
	}
	for _, t := range s.Trials {
		if t.Phase == groups.Open || t.Phase == groups.Leaving {
			active++
		}
	}
	if len(wanted)+active == 0 {
		why := SearchDone
		if d.short {
			why = BudgetSpent
		}
		return []groups.Move{{Do: groups.Finish, Why: why}}
	}
	return d.begins(s, d.leaves(s, wanted), active)
}

// leaves returns the moves that pause or stop the open trials that nobody wants.
func (d *driver) leaves(s groups.Snapshot, wanted map[int]bool) (moves []groups.Move) {
	for m, t := range s.Trials {
		// A program that is trained in full ends by itself, or the core ends it. Without a machine it need not go on.
		full := len(d.known[t.Config]) >= d.h.Epochs && !t.Waits
		if t.Phase != groups.Open || wanted[t.Config] || full || len(moves) >= MovesAtOnce {
			continue
		}
		move := groups.Move{Do: groups.Pause, Member: m, Why: LeftFor}
		if d.pruned[t.Config] || t.Waits {
			move.Do, move.Why = groups.Stop, Pruned
		}
		moves = append(moves, move)
	}
	return moves
}

// begins appends the moves that start or resume the configurations of the workers, while active trials stay below the
// limit of the group.
func (d *driver) begins(s groups.Snapshot, moves []groups.Move, active int) []groups.Move {
	why := Chosen
	if d.final {
		why = FinalRun
	}
	began := len(s.Trials)
	for w := range d.workers {
		k := d.workers[w]
		if k.config == tune.None || k.waits || len(moves) == MovesAtOnce || active >= s.AtOnce {
			continue
		}
		switch m, begun := d.member[k.config]; {
		case !begun:
			moves = append(moves, groups.Move{Do: groups.Start, Member: began, Config: k.config, Why: why})
			began, active = began+1, active+1
		case s.Trials[m].Phase == groups.Paused:
			moves = append(moves, groups.Move{Do: groups.Resume, Member: m, Why: why})
			active++
		}
	}
	return moves
}
