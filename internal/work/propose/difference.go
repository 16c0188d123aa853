package propose

import (
	"cmp"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/tune"
)

// careful is the factor by which a unit may exceed its expected cost.
const careful = 1.25

// costs learns what a unit uses of a resource, and what starting or resuming a trial uses: how much more a first unit
// needs than a later one.
type costs struct {
	first, later   float64
	firsts, laters float64
}

// learn records what a unit has used.
func (c *costs) learn(used float64, moved bool) {
	switch {
	case used <= 0: // no training was needed
	case moved:
		c.first, c.firsts = c.first+used, c.firsts+1
	default:
		c.later, c.laters = c.later+used, c.laters+1
	}
}

// move returns what a change to another trial uses.
func (c *costs) move() float64 {
	if c.firsts == 0 || c.laters == 0 {
		return 0
	}
	return max(0, c.first/c.firsts-c.later/c.laters)
}

// mean returns what a unit uses; 0 if unknown.
func (c *costs) mean() float64 {
	switch {
	case c.laters > 0:
		return c.later / c.laters
	case c.firsts > 0:
		return c.first / c.firsts
	}
	return 0
}

// next returns a bound on what the next unit of a trial with the given units uses of resource r; 0 if unknown.
func (c *costs) next(units []unit, r int) float64 {
	if n := len(units); n > 0 && units[n-1].uses[r] > 0 {
		return careful * units[n-1].uses[r]
	}
	if c.firsts > 0 {
		return careful * c.first / c.firsts
	}
	return careful * c.mean()
}

// mute is how many trials must end normally without a value, at the least, before a search without any value ends: the
// others would cost as much and say as little. A failed trial counts half: its parameters may be the cause.
const mute = 3

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
	if !d.heard && 2*d.silent+d.failed >= 2*max(mute, len(d.workers)) {
		return []groups.Move{{Do: groups.Finish, Why: NoValues}}
	}
	if d.full.begins {
		return d.promotions(s, active)
	}
	if len(wanted)+active == 0 {
		return []groups.Move{d.finish()}
	}
	return d.begins(s, d.leaves(s, wanted), active)
}

// finish returns the move that ends the search, with the reason.
func (d *driver) finish() groups.Move {
	end := groups.Move{Do: groups.Finish, Why: cmp.Or(d.short.why, SearchDone), Short: d.figures()}
	if d.flat != nil {
		end.Why, end.Gain, end.Short = Plateau, d.flat.Gain, nil
	}
	return end
}

// leaves returns the moves that pause or stop the open trials that nobody wants.
func (d *driver) leaves(s groups.Snapshot, wanted map[int]bool) (moves []groups.Move) {
	for m, t := range s.Trials {
		// A program that is trained in full ends by itself, or the core ends it. Without a machine it need not go on.
		full := len(d.known[t.Config]) >= d.h.Epochs && !t.Waits
		if t.Phase != groups.Open || t.Promoted || wanted[t.Config] || full || len(moves) >= MovesAtOnce {
			continue
		}
		move := groups.Move{Do: groups.Pause, Member: m, Why: LeftFor}
		if d.pruned[t.Config] || t.Waits || d.full.begins {
			move.Do, move.Why = groups.Stop, Pruned
		}
		moves = append(moves, move)
	}
	return moves
}

// begins appends the moves that start or resume the configurations of the workers, while active trials stay below the
// limit of the group.
func (d *driver) begins(s groups.Snapshot, moves []groups.Move, active int) []groups.Move {
	why, among := Chosen, 0
	if d.final { // it trains alone
		why, among = FinalRun, 1
	}
	began := len(s.Trials)
	for w := range d.workers {
		k := d.workers[w]
		if k.config == tune.None || k.waits || len(moves) == MovesAtOnce || active >= s.AtOnce {
			continue
		}
		switch m, begun := d.member[k.config]; {
		case !begun:
			moves = append(moves, groups.Move{Do: groups.Start, Member: began, Config: k.config, Among: among, Why: why})
			began, active = began+1, active+1
		case s.Trials[m].Phase == groups.Paused:
			moves = append(moves, groups.Move{Do: groups.Resume, Member: m, Among: among, Why: why})
			active++
		}
	}
	return moves
}
