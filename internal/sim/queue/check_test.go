package queue_test

import (
	"fmt"
	"math/big"
	"slices"

	"scrimp/internal/decide/pack"
	"scrimp/internal/sim/queue"
)

// check recomputes a run from its list of events in the plainest way and returns the violations.
func check(c queue.Config, log []queue.Entry, r queue.Result) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	type machine struct {
		kind            int
		launched        int64
		released, ended bool
		used            pack.Size
	}
	machines := map[int]*machine{}
	on := map[int]int{}
	started, finished := map[int]int64{}, map[int]int64{}
	cost := new(big.Rat)
	last := int64(0)
	var slowest int64
	for _, t := range c.Types {
		slowest = max(slowest, t.Instantiate+t.Run+t.Register)
	}
	for _, e := range log {
		if e.At < last {
			say("second %d comes after %d", e.At, last)
		}
		last = e.At
		m := machines[e.Machine]
		switch e.Kind {
		case queue.Launched:
			machines[e.Machine] = &machine{kind: e.Type, launched: e.At}
		case queue.Started:
			j, t := c.Jobs[e.Task], c.Types[m.kind]
			if e.At < m.launched+t.Instantiate+t.Run+t.Register {
				say("task %d starts at %d on machine %d, which is not up", e.Task, e.At, e.Machine)
			}
			if m.ended {
				say("task %d starts on machine %d, which has ended", e.Task, e.Machine)
			}
			if _, sits := on[e.Task]; sits {
				say("task %d is on two machines", e.Task)
			}
			if _, again := started[e.Task]; !again {
				started[e.Task] = e.At
				if e.At-j.Arrival > 2*queue.Period+slowest {
					say("task %d waits %d s though machines do not run out", e.Task, e.At-j.Arrival)
				}
			}
			on[e.Task] = e.Machine
			if m.used = m.used.Add(j.Size); !m.used.Fits(t.Size) {
				say("machine %d has more tasks than room at %d", e.Machine, e.At)
			}
		case queue.Left:
			if at, sits := on[e.Task]; !sits || at != e.Machine {
				say("task %d leaves machine %d, which it is not on", e.Task, e.Machine)
			}
			delete(on, e.Task)
			m.used = m.used.Sub(c.Jobs[e.Task].Size)
		case queue.Released:
			m.released = true
		case queue.Ended:
			t := c.Types[m.kind]
			if m.used != (pack.Size{}) || !m.released || m.ended {
				say("machine %d ends with tasks, twice or without a release", e.Machine)
			}
			m.ended = true
			if s := e.At + t.Terminate - m.launched - t.Instantiate; s > 0 {
				price := new(big.Rat).SetFrac64(int64(t.Price), 3600)
				cost.Add(cost, price.Mul(price, new(big.Rat).SetInt64(s)))
			}
		case queue.Done:
			j := c.Jobs[e.Task]
			first, began := started[e.Task]
			if _, twice := finished[e.Task]; twice || !began || float64(e.At-first) < float64(j.Work)/1e9 {
				say("task %d is done twice or sooner than its work takes", e.Task)
			}
			finished[e.Task] = e.At
		}
	}
	for i := range c.Jobs {
		if _, ok := finished[i]; !ok {
			say("task %d is never done", i)
		}
	}
	open := 0
	for _, m := range machines {
		if !m.ended {
			open++
		}
	}
	if open > 0 {
		say("%d machines never end", open)
	}
	// Each machine's cost is truncated below 1e-12 dollars.
	lost := new(big.Rat).Sub(cost, new(big.Rat).SetInt(r.Cost.Big()))
	if lost.Sign() < 0 || lost.Cmp(new(big.Rat).SetInt64(int64(len(machines)))) > 0 {
		say("the cost is %s, and the list says %s picodollars", r.Cost, cost.FloatString(0))
	}
	slices.Sort(problems)
	return problems
}
