package ledger

import "time"

// Calendar keeps sums by hour, by day and overall, of any values that can be added. The sum since some time is thus
// a sum of some days and fewer than 24 hours, however much was added. Hours are in UTC.
type Calendar[K comparable, V any] struct {
	add   func(V, V) V
	hours map[int64]map[K]V // by hours since 1970
	days  map[int64]map[K]V
	all   map[K]V
}

// NewCalendar returns an empty calendar of values that add adds, in any order.
func NewCalendar[K comparable, V any](add func(V, V) V) *Calendar[K, V] {
	return &Calendar[K, V]{add: add, hours: map[int64]map[K]V{}, days: map[int64]map[K]V{}, all: map[K]V{}}
}

// HourOf returns the number of the hour that contains t, counted from 1970. Times before 1970, such as the zero
// time, have negative hours.
func HourOf(t time.Time) int64 {
	s := t.Unix()
	if s < 0 {
		s -= 3599
	}
	return s / 3600
}

func dayOf(hour int64) int64 {
	if hour < 0 {
		hour -= 23
	}
	return hour / 24
}

// Add adds v to the sum of k in the hour.
func (c *Calendar[K, V]) Add(hour int64, k K, v V) {
	for _, in := range []map[K]V{inside(c.hours, hour), inside(c.days, dayOf(hour)), c.all} {
		in[k] = c.add(in[k], v)
	}
}

func inside[K comparable, V any](of map[int64]map[K]V, n int64) map[K]V {
	in := of[n]
	if in == nil {
		in = map[K]V{}
		of[n] = in
	}
	return in
}

// All calls f with the sum of each key, in no order.
func (c *Calendar[K, V]) All(f func(K, V)) { each(c.all, f) }

// Since calls f with what was added in that hour and later, in no order. It may call f several times per key.
func (c *Calendar[K, V]) Since(hour int64, f func(K, V)) {
	day := dayOf(hour)
	for ; dayOf(hour) == day; hour++ {
		each(c.hours[hour], f)
	}
	c.SinceDay(day+1, f)
}

// SinceDay is Since for whole days, counted from 1970.
func (c *Calendar[K, V]) SinceDay(day int64, f func(K, V)) {
	for d, sums := range c.days {
		if d >= day {
			each(sums, f)
		}
	}
}

// forget drops the hours of the days before that one; the days stay.
func (c *Calendar[K, V]) forget(day int64) {
	for hour := range c.hours {
		if dayOf(hour) < day {
			delete(c.hours, hour)
		}
	}
}

func each[K comparable, V any](sums map[K]V, f func(K, V)) {
	for k, v := range sums {
		f(k, v)
	}
}
