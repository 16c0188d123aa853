// Package anomaly scores the values of a series in order: how far each lies from the past of the series. It never
// looks ahead, and its memory does not grow with the series.
//
// Four measures find what a person would notice: a new shape of the last values, a shifted level, a value that
// is unusual for this hour of the day, and a signal that stops varying. They have no common unit, so each is ranked
// against its own past: its surprise is -log10 of the probability of a value so large. The score joins the surprises.
// After a high score the detector rests: it scores only larger surprises. After an alert it waits until the series has
// recovered, so one incident causes one alert.
//
// TestScore_FindsWhatWasPlanted measures its accuracy.
package anomaly

import (
	"math"
	"time"
)

// The constants were tuned on one half of the synthetic series of the test; the results change little around them.
const (
	memory  = 4000 // rows kept
	shape   = 12   // rows of a shape and of a level
	warmUp  = 60   // rows before the first score
	least   = 50   // least rows of rest
	restOf  = 10   // one more row of rest per so many rows seen
	largest = 1e100
	// certain is the least surprise by stillness that counts: a calm hour is not an incident.
	certain = 5
	// habit lowers the surprise of a series that has stopped n times before by habit·log10(1+n).
	habit = 3
	// stillest is the smallest share of the usual variation that counts; less is the same as none.
	stillest = 0.01
	// unrest is the surprise of a row at which an incident still goes on.
	unrest = 2.0
	// alert is the joined surprise that scores one half.
	alert = 3.7
)

// Alert is the score from which a row deserves a message.
const Alert = 0.5

// Detector scores one series.
type Detector struct {
	rows   int
	past   []float64 // the newest rows, at least memory of them once so many were seen
	season season
	level  tail      // of the levels themselves, signed
	moves  tail      // of the variation of shape rows
	stops  int       // how often the series stopped varying
	stood  bool      // it does not vary now
	calm   []float64 // the newest measures of stillness, not ranked yet

	surprises [3]tail // of shape, level and season
	stillness tail
	peaks     []peak // falling, within the rest

	open  float64 // largest surprise of the incident that goes on; 0: none
	quiet int     // rows in a row without a surprise since it began
}

// peak is a joined surprise that no later one reaches.
type peak struct {
	row      int
	surprise float64
}

// New returns a detector without a past.
func New() *Detector { return &Detector{} }

// Score adds the next value and returns its score, 0 to 1. NaN and infinite values score 0 and are not remembered.
func (d *Detector) Score(at time.Time, value float64) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	value = max(-largest, min(value, largest)) // so that sums of squares stay finite
	d.rows++
	if len(d.past) >= 2*memory {
		d.past = append(d.past[:0], d.past[memory:]...)
	}
	d.past = append(d.past, value)

	level := mean(d.past[max(0, len(d.past)-shape):])
	moved := math.Abs(level - d.level.quantile(0.5))
	d.level.add(level)
	off, known := d.season.off(at, value, d.level.quantile(0.95)-d.level.quantile(0.05))
	measures := [3]float64{d.unseen(), moved, off}
	still := d.stopped()
	sum := float64(still * still)
	for i := range measures {
		if i == 2 && !known {
			continue // zeros would make the first true measure a surprise
		}
		surprise := d.surprises[i].surprise(measures[i])
		d.surprises[i].add(measures[i])
		sum += float64(surprise * surprise)
	}
	if d.rows <= warmUp {
		return 0
	}
	surprise := math.Sqrt(sum)
	return d.once(surprise, d.rested(surprise))
}

// once returns 0 while an incident goes on that was an alert already.
func (d *Detector) once(surprise, score float64) float64 {
	if d.quiet++; surprise >= unrest {
		d.quiet = 0
	}
	if d.quiet >= shape {
		d.open = 0
	}
	switch {
	case d.open > 0:
		return 0
	case score >= Alert:
		d.open = surprise
	}
	return score
}

// rested returns the score of a surprise: 0 unless it is the largest within the rest.
func (d *Detector) rested(surprise float64) float64 {
	rest := least + min(d.rows, 2*memory)/restOf
	for len(d.peaks) > 0 && d.peaks[0].row < d.rows-rest {
		d.peaks = d.peaks[1:]
	}
	first := len(d.peaks) == 0 || surprise > d.peaks[0].surprise
	for len(d.peaks) > 0 && d.peaks[len(d.peaks)-1].surprise <= surprise {
		d.peaks = d.peaks[:len(d.peaks)-1]
	}
	d.peaks = append(d.peaks, peak{d.rows, surprise})
	if !first {
		return 0
	}
	return 1 - math.Exp2(-surprise/alert)
}

// unseen returns the distance of the last rows from the second nearest shape before them. The nearest may be an
// earlier incident.
func (d *Detector) unseen() float64 {
	n := len(d.past)
	if n < 3*shape {
		return 0
	}
	now := d.past[n-shape:]
	nearest, second := math.Inf(1), math.Inf(1)
	for from := n - 2*shape; from >= 0; from-- {
		sum := 0.0
		for i, v := range d.past[from : from+shape] {
			off := v - now[i]
			if sum += float64(off * off); sum >= second {
				break
			}
		}
		switch {
		case sum < nearest:
			nearest, second = sum, nearest
		case sum < second:
			second = sum
		}
	}
	return math.Sqrt(second)
}

// stopped returns the surprise of a series that stops varying, and 0 while it goes on as before. It does not learn from
// the rows that stand still, nor from those that lead to them, so the next stop is as clear; a series that often stops
// surprises less each time.
func (d *Detector) stopped() float64 {
	still := d.still()
	surprise := d.stillness.surprise(still)
	if surprise < certain {
		if d.calm = append(d.calm, still); len(d.calm) > shape {
			d.stillness.add(d.calm[0])
			d.calm = append(d.calm[:0], d.calm[1:]...)
		}
		d.stood = false
		return 0
	}
	d.calm = d.calm[:0]
	before := d.stood
	if d.stood = true; before {
		return 0
	}
	d.stops++
	return max(0, surprise-habit*math.Log10(float64(d.stops)))
}

// still returns the usual variation divided by that of the last rows, at most 1/stillest; 0 for a series that usually
// does not vary. The variation is the sum of the steps from row to row.
func (d *Detector) still() float64 {
	n := len(d.past)
	if n <= shape {
		return 0
	}
	moves := 0.0
	for i := n - shape; i < n; i++ {
		moves += math.Abs(d.past[i] - d.past[i-1])
	}
	usual := d.moves.quantile(0.5)
	if d.moves.add(moves); usual == 0 {
		return 0
	}
	return usual / max(moves, usual*stillest)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}
