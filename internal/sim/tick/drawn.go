package tick

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/policy/onezone"
)

// Drawn returns whether spot is available in each tick of ten minutes, in a market drawn from the default policy's
// initial hazards. The offsets are drawn once for the run, which begins in the middle of the market's life. Drawn is
// deterministic in seed and stream.
func Drawn(seed, stream uint64, ticks int) []bool {
	const tick, before = 10 * time.Minute, 500
	r := rand.New(rand.NewPCG(seed, stream))
	x := [2]float64{r.NormFloat64() * .6, r.NormFloat64() * .6}
	up, age := r.IntN(2) == 0, 0
	out := make([]bool, ticks)
	for t := -before; t < ticks; t++ {
		if t >= 0 {
			out[t] = up
		}
		shape, k := onezone.Public.Gap, 1
		if up {
			shape, k = onezone.Public.Up, 0
		}
		if r.Float64() < shape.Ends(x[k], time.Duration(age)*tick, tick) {
			up, age = !up, 0
		} else {
			age++
		}
	}
	return out
}
