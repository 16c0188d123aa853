package anomaly

import (
	"math"
	"slices"
	"time"
)

const (
	slotSize  = 168               // values of an hour of the day: two weeks, one in five minutes
	slotLeast = 12                // before the hour is known
	apart     = 270 * time.Second // values of a slot, so that a fine series does not fill it with one moment
)

// season is the values of each hour of the day.
type season struct {
	hours [24][]float64
	last  [24]time.Time
}

// off is how far the value is from the median of its hour, in units of the hour's spread. The spread is not below a
// twentieth of that of the series. The first values of an hour say nothing of it: known is false.
func (s *season) off(at time.Time, value, spread float64) (off float64, known bool) {
	hour := at.Hour()
	slot := s.hours[hour]
	if known = len(slot) >= slotLeast; known {
		sorted := slices.Sorted(slices.Values(slot))
		n := len(sorted)
		unit := sorted[n*9/10] - sorted[n/10] + spread/20
		if off = math.Abs(value - sorted[n/2]); off > 0 {
			off = min(off/unit, largest) // a flat hour of a flat series has no unit
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
