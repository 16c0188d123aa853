package commit

import (
	"math"
	"slices"
)

// Parameters of the forecast. They are round numbers, and the cost of a plan hardly depends on them (docs/commit.md).
const (
	recentDays = 56  // the hours of the recent past represent the future: eight whole weeks
	growthDays = 168 // growth is the mean demand of this many days relative to as many days before
	damping    = 0.7 // share of that growth that continues
	growMonths = 12  // months that it continues: afterwards the forecast is flat
	monthDays  = 365.0 / 12
	maxGrowth  = 1.0  // in growthDays
	minGrowth  = -0.5 // in growthDays
)

// HistoryDays is the number of days of demand that a plan needs.
const HistoryDays = 28

// A forecast holds past hours that represent the future, each scaled from its day to now by the growth.
type forecast struct {
	hours []float64 // sorted
	daily float64   // growth per day, relative to the demand now
}

func newForecast(past []int64) forecast {
	recent := past[max(0, len(past)-recentDays*24):]
	f := forecast{hours: make([]float64, len(recent)), daily: growth(past)}
	for i, d := range recent {
		age := float64(len(recent)-i) / 24
		f.hours[i] = float64(d) * max(0, 1+float64(f.daily*age))
	}
	slices.Sort(f.hours)
	return f
}

// growth returns the daily growth: the mean demand of the last days relative to as many days before.
func growth(past []int64) float64 {
	n := min(growthDays*24, len(past)/2)
	recent, before := sum(past[len(past)-n:]), sum(past[len(past)-2*n:len(past)-n])
	if before == 0 {
		return 0
	}
	days := float64(n) / 24
	rate := float64(recent)/float64(before) - 1
	return damping * min(max(rate/days, minGrowth/growthDays), maxGrowth/growthDays)
}

// factor returns the demand of a coming month relative to now; the next month is 0.
func (f forecast) factor(month int) float64 {
	days := monthDays * (float64(min(month, growMonths)) + 0.5)
	return max(0, 1+float64(f.daily*days))
}

// top returns the highest demand, in whole units.
func (f forecast) top() float64 {
	if len(f.hours) == 0 {
		return 0
	}
	return math.Ceil(f.hours[len(f.hours)-1])
}

// use returns the mean number of units between the levels base and base + units that the hours of a month use.
func (f forecast) use(factor, base, units float64) (mean float64) {
	for _, d := range f.hours {
		mean += min(max(float64(d*factor)-base, 0), units)
	}
	return mean / float64(max(1, len(f.hours)))
}
