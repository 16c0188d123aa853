package anomaly

import (
	"math"
	"slices"
	"time"
)

const (
	slotSize  = 168 // values kept per hour of the day: two weeks at one per five minutes
	slotLeast = 12  // values needed before the hour is known
	// minimum time between values of a slot, so that a dense series does not fill it with one moment
	apart = 270 * time.Second
)

// season holds the values of each hour of the day.
type season struct {
	hours [24][]float64
	last  [24]time.Time
}

// off returns the distance of the value from the median of its hour, in units of the hour's spread. That unit
// includes a twentieth of the series' spread. known is false until the hour has enough values.
func (s *season) off(at time.Time, value, spread float64) (off float64, known bool) {
	hour := at.Hour()
	slot := s.hours[hour]
	if known = len(slot) >= slotLeast; known {
		sorted := slices.Sorted(slices.Values(slot))
		n := len(sorted)
		unit := sorted[n*9/10] - sorted[n/10] + spread/20
		if off = math.Abs(value - sorted[n/2]); off > 0 {
			off = min(off/unit, largest) // a constant hour of a constant series has no unit
		}
	}
	if at.Sub(s.last[hour]).Abs() < apart {
		return off, known
	}
	s.last[hour] = at
	if len(slot) == slotSize {
		slot = append(slot[:0], slot[1:]...)
	}
	s.hours[hour] = append(slot, value)
	return off, known
}
