package policy

import "slices"

// Gangs is how often attempts on several spot machines lost one of them, by their number of machines. The zero value
// has observed nothing.
type Gangs []Gang

// Gang is the history of the attempts on one number of machines.
type Gang struct {
	Nodes    int `json:"nodes"`
	Lost     int `json:"lost"`     // attempts that lost machines
	Machines int `json:"machines"` // machines that they lost
}

// See returns the history after an attempt on that many machines has lost some of them.
func (g Gangs) See(nodes, lost int) Gangs {
	i, ok := slices.BinarySearchFunc(g, nodes, func(x Gang, nodes int) int { return x.Nodes - nodes })
	g = slices.Clone(g) // a snapshot may share it
	if !ok {
		g = slices.Insert(g, i, Gang{Nodes: nodes})
	}
	g[i].Lost++
	g[i].Machines += lost
	return g
}

// Weights of what is known of other numbers of machines, in losses.
const (
	aloneWeight = 3 // of the prior against all numbers together
	sizeWeight  = 8 // of all numbers together against one
)

// Times is how many times more often an attempt on that many machines is interrupted than one on a single machine: 1
// if machines are always lost together, nodes if each is lost alone. prior is the share of losses that hit one
// machine alone, before any observation.
//
// Attempts on n machines that lost M of them in L losses would have been interrupted M/n times if only the lost
// machine's own user were hit. With a share s of lone losses that becomes (M/n)·(1 + (n−1)·s), which gives s from all
// numbers of machines. Each number's own L/(M/n) is shrunk towards that line. More machines are never lost less often
// than fewer.
func (g Gangs) Times(nodes int, prior float64) float64 {
	extra, most := prior*aloneWeight, float64(aloneWeight)
	for _, x := range g {
		one := float64(x.Machines) / float64(x.Nodes)
		extra += float64(x.Lost) - one
		most += one * float64(x.Nodes-1)
	}
	line := func(n int) float64 { return 1 + float64(float64(n-1)*min(extra/most, 1)) }
	fewer, times := 1.0, line(nodes)
	for _, x := range g {
		one := float64(x.Machines) / float64(x.Nodes)
		own := max(fewer, (float64(x.Lost)+float64(sizeWeight*line(x.Nodes)))/(one+sizeWeight))
		switch {
		case x.Nodes == nodes:
			return own
		case x.Nodes > nodes:
			return min(max(times, fewer), own)
		}
		fewer = own
	}
	return max(times, fewer)
}
