package propose

import (
	"cmp"
	"math"
	"slices"

	"scrimp/internal/work/groups"
)

// full is what the driver knows about full trainings of promoted configurations.
type full struct {
	begins bool    // the search on the proxy is over
	known  bool    // one was trained in full
	uses   amounts // the most that one of them has used
	unit   amounts // the most that a promoted trial has used for a unit on average, as far as it got
}

// promotesAt ends the search on the proxy if the core ended it before that report.
func (d *driver) promotesAt(s groups.Snapshot) {
	if s.Promotes != nil && d.seen >= *s.Promotes {
		d.beginFull()
	}
}

// beginFull ends the search on the proxy: no worker trains further.
func (d *driver) beginFull() {
	if d.full.begins {
		return
	}
	d.full.begins, d.short = true, shortage{}
	for w := range d.workers {
		d.workers[w].config, d.workers[w].waits = -1, false
	}
}

// takeFull processes a report of a promoted trial.
func (d *driver) takeFull(t *trial, r groups.Report, uses amounts) {
	for k := range uses {
		if t.sum[k] += uses[k]; r.Unit > 0 {
			d.full.unit[k] = math.Max(d.full.unit[k], t.sum[k]/float64(r.Unit))
		}
	}
	if t.over = r.Phase == groups.Over; !t.over || r.Bad || r.Cut {
		return
	}
	d.full.known = true
	for k := range t.sum {
		d.full.uses[k] = math.Max(d.full.uses[k], t.sum[k])
	}
}

// promotions returns the moves that train the best configurations of the proxy in full. The first is trained alone: it
// shows what a full training costs. Then begin as many as the rest of each limit pays for in full.
func (d *driver) promotions(s groups.Snapshot, active int) []groups.Move {
	moves := d.leaves(s, nil)
	begun, open, tried := 0, 0, map[int]bool{}
	for _, t := range s.Trials {
		if t.Promoted {
			begun, tried[t.Config] = begun+1, true
			if t.Phase == groups.Open || t.Phase == groups.Leaving {
				open++
			}
		}
	}
	if active > open { // trials of the proxy still save
		return moves
	}
	list := d.candidates(tried)
	room := min(d.spec.Proxy.Promote-begun, s.AtOnce-active, len(list), MovesAtOnce)
	n := d.affords(room, open)
	for i := range n {
		moves = append(moves, groups.Move{Do: groups.Start, Member: len(s.Trials) + i, Config: list[i], Promoted: true,
			Among: n - i, Why: Promoted})
	}
	if n == 0 && active == 0 {
		return []groups.Move{d.finish()}
	}
	return moves
}

// candidates returns the configurations that were trained on the proxy and have not failed there, the best first,
// without those that were tried in full.
func (d *driver) candidates(tried map[int]bool) (list []int) {
	best := map[int]float64{}
	for _, t := range d.trials {
		if t.promoted || tried[t.config] {
			continue
		}
		value := math.Inf(1)
		for _, u := range d.known[t.config] {
			if value = math.Min(value, u.value); math.IsNaN(value) {
				break
			}
		}
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			best[t.config], list = value, append(list, t.config)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(best[a], best[b]) })
	return list
}

// affords returns how many of at most room full trainings the rest of each limit pays for, beside the open ones.
func (d *driver) affords(room, open int) int {
	if room <= 0 || !d.full.known && open > 0 {
		return 0
	}
	units := float64(d.spec.Length(true).Units())
	for r := range d.limits {
		left := d.limits[r] - d.spent[r]
		if !d.full.known { // a unit of a full training uses at least what one on the proxy does
			room = min(room, 1)
			if needs := units * math.Max(d.cost[r].mean(), careful*d.full.unit[r]); left <= 0 || needs > left {
				d.short = shortage{why: shortOf(r), of: r, needs: needs, full: true}
				return 0
			}
			continue
		}
		each := careful * d.full.uses[r]
		for _, t := range d.trials {
			if t.promoted && !t.over && r != clock {
				left -= math.Max(0, each-t.sum[r])
			}
		}
		fits := left / each
		if r == clock && left >= each {
			fits = float64(room)
		}
		if left <= 0 || fits < 1 {
			d.short = shortage{why: shortOf(r), of: r, needs: each, full: true}
			return 0
		}
		if fits < float64(room) { // each is 0 if nothing costs
			room = int(fits)
		}
	}
	return room
}
