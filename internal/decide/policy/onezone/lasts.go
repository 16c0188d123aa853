package onezone

import (
	"math"
	"time"

	"scrimp/internal/lib/quantity"
)

// Between is the mean time to the end of a period if the hazard stayed as it is at the period's current age:
// 1/h(age). The checkpoint interval follows it, because the interval is short against the time in which h changes.
func (p Prior) Between(m Market) time.Duration {
	const step = 10 * time.Minute
	shape, offset := p.present(&m)
	ends := max(shape.Ends(offset, m.Age, step), 1.0/(1<<20))
	if ends >= 1 {
		return step / 10
	}
	return time.Duration(quantity.Int(math.Round(float64(step)/-math.Log(1-ends)/float64(time.Second)))) * time.Second
}

// Outlasts returns the probability that the current period lasts for another span, and how much of the span it is
// expected to last. It uses the hazard at the middle of each of about forty steps of at least a minute.
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
