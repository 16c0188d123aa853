package tick

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"scrimp/internal/lib/money"
)

// The public traces record when one machine was available. There are two ways to play a job with several machines on
// them. Together: all machines of an offer come and go like the recorded one. Alone: the first machine follows the
// trace; each other machine comes with it and may also be lost alone, at the trace's mean rate, while spot is
// available, so that a replacement is available at once. A gang of n then has n times the interruptions of one machine.

// Alone lists, for each tick with spot, the nodes that are lost alone at its start, one bit each. The first node is
// never lost alone. nil means none.
type Alone []uint16

// MostNodes bounds the machines of a replayed job.
const MostNodes = 16

// At returns the nodes that are lost at the start of tick t.
func (a Alone) At(t int) uint16 {
	if t < 0 || t >= len(a) {
		return 0
	}
	return a[t]
}

// Losses draws the individual losses for a trace. They are deterministic in name and trace, and the losses of fewer
// nodes are a subset of those of more.
func Losses(name string, up []bool, nodes int) Alone {
	there, ends := 0, 0
	for t := 1; t < len(up); t++ {
		if up[t-1] {
			there++
			if !up[t] {
				ends++
			}
		}
	}
	if ends == 0 {
		return nil
	}
	rate := float64(ends) / float64(there)
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	list := make(Alone, len(up))
	for n := 1; n < min(nodes, MostNodes); n++ {
		r := rand.New(rand.NewPCG(h.Sum64(), uint64(n)))
		for t := range list {
			if r.Float64() < rate && t > 0 && up[t-1] && up[t] {
				list[t] |= 1 << n
			}
		}
	}
	return list
}

// OnNodes returns the runs on the given number of machines, which are lost together or, with alone, also one by one.
func OnNodes(runs []Run, nodes int, alone bool) []Run {
	list := make([]Run, len(runs))
	for i, r := range runs {
		if r.Nodes = nodes; alone {
			r.Alone = Losses(fmt.Sprint(r.Zone, "/", r.Window), r.Up, nodes)
		}
		list[i] = r
	}
	return list
}

// Times returns the cost of the given number of machines if one costs a; 0 machines count as one.
func Times(a money.Amount, nodes int) money.Amount {
	return a.Times(max(1, nodes))
}
