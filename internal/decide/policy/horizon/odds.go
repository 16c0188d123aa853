package horizon

import (
	"math"
	"time"
)

// Knots is how many ages the shape of a hazard is given at.
const Knots = 10

// KnotAge are those ages. Between two of them the hazard follows a power law;
// before the first and after the last it is constant.
var KnotAge = [Knots]time.Duration{
	10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 50 * time.Minute, 80 * time.Minute,
	130 * time.Minute, 210 * time.Minute, 400 * time.Minute, 800 * time.Minute, 1800 * time.Minute,
}

// Shape says how a kind of period, with spot or without, comes to its end: at
// age a at exp(log(a) + offset) an hour, where the offset is
//
//	Same·same + Other·other + Share·share
//
// of what was seen before: see Odds.offset.
type Shape struct {
	Log    [Knots]float64 // logarithm of the hazard, an hour, by age
	Same   float64        // longer periods of this kind before
	Other  float64        // longer periods of the other kind before
	Share  float64        // more time with spot in the last two days
	Middle float64        // mean logarithm of a period's hours, where nothing was seen
}

// Prior is what is known of every spot market.
type Prior struct {
	Up, Gap Shape
}

// Odds is what was seen of one market's periods, with memories that fade. The
// zero Odds has seen nothing.
type Odds struct {
	UpLog, UpCount   float64 // sum of the logarithms of their hours, and how many
	GapLog, GapCount float64
	UpHours, Hours   float64 // hours with spot, and all
}

const (
	forget  = 0.97           // what one more period leaves of those before
	doubt   = 6              // periods that must be seen until they count by half
	memory  = 48 * time.Hour // over which the share with spot fades
	usual   = 0.56           // share with spot where nothing was seen
	hidden  = 12             // hours that must be seen until the share counts by half
	running = 100 * time.Minute
)

// exact rounds to 2^-20, so that all processors keep the same bytes whatever the
// last bits of their logarithms are.
func exact(x float64) float64 { return math.Round(x*(1<<20)) / (1 << 20) }

// ended returns the odds after a whole period.
func (o Odds) ended(up bool, length time.Duration) Odds {
	o = o.lasted(up, length)
	log := math.Log(max(length, time.Second).Hours())
	if up {
		o.UpLog, o.UpCount = exact(float64(o.UpLog*forget)+log), exact(float64(o.UpCount*forget)+1)
	} else {
		o.GapLog, o.GapCount = exact(float64(o.GapLog*forget)+log), exact(float64(o.GapCount*forget)+1)
	}
	return o
}

// lasted returns the odds after the market has been so for a time.
func (o Odds) lasted(up bool, length time.Duration) Odds {
	fade := math.Exp(-float64(length) / float64(memory))
	hours := float64(memory.Hours() * (1 - fade))
	o.Hours = exact(float64(o.Hours*fade) + hours)
	o.UpHours = float64(o.UpHours * fade)
	if up {
		o.UpHours += hours
	}
	o.UpHours = exact(o.UpHours)
	return o
}

// offset is the logarithm by which this market's hazard differs from the common
// one, rounded to 1/4096, so that all processors find the same.
func (s *Shape) offset(sameLog, sameCount, otherLog, otherCount, otherMiddle float64, o *Odds) float64 {
	same := (sameLog - float64(sameCount*s.Middle)) / (sameCount + doubt)
	other := (otherLog - float64(otherCount*otherMiddle)) / (otherCount + doubt)
	share := (o.UpHours - float64(o.Hours*usual)) / (o.Hours + hidden)
	return math.Round((float64(s.Same*same)+float64(s.Other*other)+float64(s.Share*share))*4096) / 4096
}

// Offsets are those of the periods with spot and of the gaps.
func (p Prior) Offsets(o Odds) (up, gap float64) {
	return p.offset(true, &o), p.offset(false, &o)
}

// offset is that of the periods with spot, or of the gaps.
func (p *Prior) offset(up bool, o *Odds) float64 {
	if up {
		return p.Up.offset(o.UpLog, o.UpCount, o.GapLog, o.GapCount, p.Gap.Middle, o)
	}
	return p.Gap.offset(o.GapLog, o.GapCount, o.UpLog, o.UpCount, p.Up.Middle, o)
}

// present is the shape of the kind of period that the market is in, with its offset.
func (p *Prior) present(m *Market) (*Shape, float64) {
	if m.Up {
		return &p.Up, p.offset(true, &m.Odds)
	}
	return &p.Gap, p.offset(false, &m.Odds)
}

// knotLog is the logarithm of KnotAge in hours.
var knotLog = func() (logs [Knots]float64) {
	for i, age := range KnotAge {
		logs[i] = math.Log(age.Hours())
	}
	return logs
}()

// Ends is the chance that a period first seen age ago ends within the step, with
// the hazard in the middle of the step; the period began half a step before it
// was seen. Rounded to 2^-20.
func (s *Shape) Ends(offset float64, age, step time.Duration) float64 {
	a := age + step
	i := 0
	for i < Knots-2 && KnotAge[i+1] <= a {
		i++
	}
	low, high := knotLog[i], knotLog[i+1]
	part := (math.Log(a.Hours()) - low) / (high - low)
	part = min(max(part, 0), 1)
	log := s.Log[i] + float64(part*(s.Log[i+1]-s.Log[i])) + offset
	return exact(1 - math.Exp(-math.Exp(log)*step.Hours()))
}

// stays is the chance that a period first seen age ago lasts for another hour, looked
// at every step, but not more than twelve times.
func (s *Shape) stays(offset float64, age, step time.Duration) float64 {
	step = max(step, 5*time.Minute)
	chance, left := 1.0, time.Hour
	for ; left > 0; left -= step {
		step = min(step, left)
		chance *= 1 - s.Ends(offset, age, step)
		age += step
	}
	return exact(chance)
}
