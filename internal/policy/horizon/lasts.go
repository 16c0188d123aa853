package horizon

import (
	"math"
	"time"
)

// Between is the mean time to the end of a period that would go on ending as
// likely as it is now, at its present age: 1/h(age). It is what a checkpoint
// interval follows, which is short against the time in which h changes.
func (p Prior) Between(m Market) time.Duration {
	const step = 10 * time.Minute
	up, gap := p.Offsets(m.Odds)
	ends := p.Gap.Ends(gap, m.Age, step)
	if m.Up {
		ends = p.Up.Ends(up, m.Age, step)
	}
	ends = max(ends, 1.0/(1<<20))
	if ends >= 1 {
		return step / 10
	}
	return time.Duration(math.Round(float64(step)/-math.Log(1-ends)/float64(time.Second))) * time.Second
}
