package tick

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"scrimp/internal/lib/money"
)

// The public traces say when one machine could be had. A job on several is played on them in
// two ways. Together: all machines of an offer come and go as that one does. Alone: the first
// does, and each other one comes with it and is besides lost by itself, at the trace's mean rate, while
// spot is there, so that another can be had at once. So several are interrupted as many times
// as often as one, and no more often where they are one.

// Alone says which nodes of a job are lost by themselves at the start of each tick in which spot
// is there: a bit each, that of the first never. nil: none.
type Alone []uint16

// MostNodes is how many machines a job may have that is replayed.
const MostNodes = 16

// At is which nodes are lost at the start of tick t.
func (a Alone) At(t int) uint16 {
	if t < 0 || t >= len(a) {
		return 0
	}
	return a[t]
}

// Losses draws them for a trace. The same name and trace have the same ones, and those of fewer
// nodes are among those of more.
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

// OnNodes has the runs on so many machines, which are lost together or also alone.
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

// ZonesOnNodes is the same for runs over several zones.
func ZonesOnNodes(runs []ZoneRun, nodes int, alone bool) []ZoneRun {
	list := make([]ZoneRun, len(runs))
	for i, r := range runs {
		if r.Nodes = nodes; alone {
			r.Alone = make([]Alone, len(r.Traces))
			for z, t := range r.Traces {
				r.Alone[z] = Losses(fmt.Sprint(r.Job.Zones[z].Name, "/", r.Window), t.Up, nodes)
			}
		}
		list[i] = r
	}
	return list
}

// Times is what so many machines cost of which one costs a; 0 are one.
func Times(a money.Amount, nodes int) money.Amount {
	return a.Times(max(1, nodes))
}
