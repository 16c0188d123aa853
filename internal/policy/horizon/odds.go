package horizon

import (
	"math"
	"time"
)

// Scales is how many hazard scales are weighed for the periods with spot and
// for those without.
const Scales = 7

// Prior says how spot comes and goes where nothing was seen yet. A period of
// age a, in hours, ends at the rate scale · a^-Fall an hour: the longer it has
// lasted, the longer it will. Fall is common to all markets; the scale is
// learned.
type Prior struct {
	Fall   float64         // exponent, 0 (no memory) to below 1
	Scale  [Scales]float64 // per hour at the age of one hour, from the calmest
	Weight [Scales]float64 // what each is worth before anything was seen; sums to 1
	Forget float64         // what one more period leaves of what the earlier ones said, 0 to 1
}

// Priors are the shapes of periods with spot and of those without, fitted to the
// public traces of 2022 (docs/design/deadline-policy.md).
var (
	UpPrior  = prior(0.70, 0.55, 1.0, 0.90)
	GapPrior = prior(0.70, 0.55, 1.0, 0.90)
)

// prior spreads the scales by factors of 1.6 around the middle one, with normal
// weights of the spread in natural logarithms.
func prior(fall, middle, spread, forget float64) Prior {
	p := Prior{Fall: fall, Forget: forget}
	sum := 0.0
	for i := range Scales {
		z := float64(i-Scales/2) * 0.47
		p.Scale[i] = middle * math.Exp(z)
		p.Weight[i] = math.Exp(-z * z / (2 * spread * spread))
		sum += p.Weight[i]
	}
	for i := range Scales {
		p.Weight[i] /= sum
	}
	return p
}

// load is the integral of the hazard of scale 1 from age a to b, in hours.
func (p Prior) load(a, b float64) float64 {
	k := 1 - p.Fall
	return (math.Pow(b, k) - math.Pow(a, k)) / k
}

// Ends is the chance that a period of age a ends within the step, at a scale.
func (p Prior) Ends(scale float64, a, step time.Duration) float64 {
	h := 1 - math.Exp(-scale*p.load(a.Hours(), (a+step).Hours()))
	return math.Round(h*(1<<20)) / (1 << 20)
}

// Odds is what was seen of one offer's spot market: the logarithm of how likely
// each scale makes it. The zero Odds has seen nothing.
type Odds struct {
	Up  [Scales]float64
	Gap [Scales]float64
}

// Ended returns the odds after a period of the length: with spot, or without.
// step is how often the market was looked at; a period of one look has the length
// of half a step.
func (o Odds) Ended(up bool, length, step time.Duration) Odds {
	if up {
		o.Up = UpPrior.seen(o.Up, length, step, true)
	} else {
		o.Gap = GapPrior.seen(o.Gap, length, step, true)
	}
	return o
}

func (p Prior) seen(l [Scales]float64, length, step time.Duration, ended bool) [Scales]float64 {
	first := (step / 2).Hours()
	lived := p.load(first, max(length.Hours(), first))
	last := p.load(length.Hours(), (length + step).Hours())
	for i := range l {
		if ended {
			l[i] *= p.Forget
		}
		l[i] -= p.Scale[i] * lived
		if ended {
			l[i] += math.Log(1 - math.Exp(-p.Scale[i]*last))
		}
		l[i] = math.Round(l[i]*1024) / 1024
	}
	return l
}

// weights is how likely each scale is, with a period that still runs at age a
// (below zero: none runs).
func (p Prior) weights(l [Scales]float64, a, step time.Duration) [Scales]float64 {
	if a > 0 {
		l = p.seen(l, a, step, false)
	}
	top := l[0]
	for _, x := range l {
		top = max(top, x)
	}
	sum := 0.0
	for i := range l {
		l[i] = p.Weight[i] * math.Exp(l[i]-top)
		sum += l[i]
	}
	for i := range l {
		l[i] /= sum
	}
	return l
}
