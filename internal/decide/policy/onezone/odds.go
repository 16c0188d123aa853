package onezone

import (
	"math"
	"time"
)

// Knots is the number of ages that define the shape of a hazard.
const Knots = 10

// KnotAge has those ages. Between two of them the hazard follows a power law; before the first and after the last
// it is constant.
var KnotAge = [Knots]time.Duration{
	10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 50 * time.Minute, 80 * time.Minute,
	130 * time.Minute, 210 * time.Minute, 400 * time.Minute, 800 * time.Minute, 1800 * time.Minute,
}

// Shape describes how periods of one kind, with or without spot, end: the hazard at age a is exp(log(a) + offset)
// per hour, where the offset is
//
//	Same·same + Other·other + Share·share
//
// of what was observed before: see Odds.offset.
type Shape struct {
	Log    [Knots]float64 // logarithm of the hourly hazard, by age
	Same   float64        // weight of longer earlier periods of this kind
	Other  float64        // weight of longer earlier periods of the other kind
	Share  float64        // weight of more time with spot in the last two days
	Middle float64        // mean logarithm of a period's hours, if nothing was observed
}

// Prior is the knowledge shared by every spot market.
type Prior struct {
	Up, Gap Shape
}

// Odds summarizes the observed periods of one market, with fading memory. The zero Odds has observed nothing.
type Odds struct {
	UpLog, UpCount   float64 // sum of the logarithms of their hours, and their number
	GapLog, GapCount float64
	UpHours, Hours   float64 // hours with spot, and all hours
}

const (
	forget  = 0.97           // weight that earlier periods keep after one more
	doubt   = 6              // number of periods at which observations weigh one half
	memory  = 48 * time.Hour // time constant of the share with spot
	usual   = 0.56           // share with spot if nothing was observed
	hidden  = 12             // hours at which the observed share weighs one half
	running = 100 * time.Minute
)

// exact rounds to 2^-20, so that all processors store the same bytes whatever the last bits of their logarithms.
func exact(x float64) float64 { return math.Round(x*(1<<20)) / (1 << 20) }

// ended returns the odds after a complete period.
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

// lasted returns the odds after the market has stayed in a state for a time.
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

// offset is the logarithm of this market's hazard relative to the common one, rounded to 1/4096, so that all
// processors agree.
func (s *Shape) offset(sameLog, sameCount, otherLog, otherCount, otherMiddle float64, o *Odds) float64 {
	same := (sameLog - float64(sameCount*s.Middle)) / (sameCount + doubt)
	other := (otherLog - float64(otherCount*otherMiddle)) / (otherCount + doubt)
	share := (o.UpHours - float64(o.Hours*usual)) / (o.Hours + hidden)
	return math.Round((float64(s.Same*same)+float64(s.Other*other)+float64(s.Share*share))*4096) / 4096
}

// Offsets returns the offsets for periods with spot and for gaps.
func (p Prior) Offsets(o Odds) (up, gap float64) {
	return p.offset(true, &o), p.offset(false, &o)
}

// offset returns the offset for periods with spot, or for gaps.
func (p *Prior) offset(up bool, o *Odds) float64 {
	if up {
		return p.Up.offset(o.UpLog, o.UpCount, o.GapLog, o.GapCount, p.Gap.Middle, o)
	}
	return p.Gap.offset(o.GapLog, o.GapCount, o.UpLog, o.UpCount, p.Up.Middle, o)
}

// offsets returns the offsets for a job in the market.
func (p Prior) offsets(m *Market) (up, gap float64) {
	up, gap = p.Offsets(m.Odds)
	return up + m.more(), gap
}

// more is what the machines of the job add to the offset of its periods with spot.
func (m *Market) more() float64 { return math.Round(math.Log(max(m.Losses, 1))*4096) / 4096 }

// present returns the shape and offset for the period that the market is in.
func (p *Prior) present(m *Market) (*Shape, float64) {
	if m.Up {
		return &p.Up, p.offset(true, &m.Odds) + m.more()
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

// Ends is the probability that a period first seen age ago ends within the step, from the hazard in the middle of
// the step. The period is assumed to have begun half a step before it was seen. The result is rounded to 2^-20.
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

// stays is the probability that a period first seen age ago lasts for another hour, computed per step with at most
// twelve steps.
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
