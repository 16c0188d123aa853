package scheduler

import "scrimp/internal/decide/pack"

// rateDoubt is the factor by which a task must exceed a learned rate to count as in time.
const rateDoubt = 1.02

// needs computes the lowest rates at which tasks keep their deadlines. A task that would be late even alone needs
// nothing, because no packing helps it.
func needs(v *pack.View) []need {
	list := make([]need, len(v.Tasks))
	var ready int64
	for _, y := range v.Types {
		ready = max(ready, y.Ready)
	}
	for i, t := range v.Tasks {
		if !t.Oracle.Known {
			continue
		}
		begin := t.Setup + ready
		if t.On != pack.Waiting {
			begin += t.Leave
		}
		n := &list[i]
		switch stay := least(t, v.Now); {
		case stay > 1: // already late
		case t.Fixed || t.On == pack.Waiting: // it starts soon, at an unknown time
			n.start = min(1, least(t, v.Now+begin))
			n.stay = n.start
		default: // a rate above 1 means that a move would make it late
			n.stay, n.start = stay, least(t, v.Now+begin)
		}
	}
	return list
}

// never is a rate that no task can reach.
const never = 2.0

// least returns the rate at which a task that makes progress from the given second on ends at its deadline.
func least(t pack.Task, from int64) float64 {
	if room := float64(t.Oracle.Deadline - from); room > 0 {
		return min(never, t.Oracle.Left*rateDoubt/room)
	}
	return never
}
