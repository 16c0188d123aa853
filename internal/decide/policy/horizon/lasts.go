package horizon

import (
	"math"
	"time"

	"scrimp/internal/lib/quantity"
)

// Between is the mean time to the end of a period that would go on ending as
// likely as it is now, at its present age: 1/h(age). It is what a checkpoint
// interval follows, which is short against the time in which h changes.
func (p Prior) Between(m Market) time.Duration {
	const step = 10 * time.Minute
	shape, offset := p.present(&m)
	ends := max(shape.Ends(offset, m.Age, step), 1.0/(1<<20))
	if ends >= 1 {
		return step / 10
	}
	return time.Duration(quantity.Int(math.Round(float64(step)/-math.Log(1-ends)/float64(time.Second)))) * time.Second
}

// Outlasts is the chance that the present period lasts for a span more, and how much
// of the span it is expected to last. The hazard is that at the middle of each of
// some forty steps, of a minute at least.
func (p Prior) Outlasts(m Market, span time.Duration) (chance float64, mean time.Duration) {
	shape, offset := p.present(&m)
	step := max(span/40, time.Minute)
	chance = 1
	for age := m.Age; span > 0; span -= step {
		step = min(step, span)
		next := float64(chance * (1 - shape.Ends(offset, age, step)))
		mean += quantity.Nanoseconds(math.Round(float64(step) * (chance + next) / 2))
		chance, age = next, age+step
	}
	return exact(chance), mean
}
