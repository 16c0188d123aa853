package quantity

import (
	"math"
	"math/bits"
	"time"
)

// Forever is the longest span that a computation gives, some 36 years: longer than any deadline is
// away (Decade), and short enough that seven add up without overflow.
const Forever time.Duration = 1 << 60

// Nanoseconds returns a computed number of nanoseconds as a span, cut off below one, and at Forever
// on both sides. What is no number is zero.
//
// It is the one place where a float64 becomes a span: Go says nothing of what a conversion gives that
// does not fit, and processors differ. 1e30 gives Forever. TestWhatDoesNotFitSaturates.
func Nanoseconds(f float64) time.Duration {
	switch {
	case f != f:
		return 0
	case f >= float64(Forever):
		return Forever
	case f <= -float64(Forever):
		return -Forever
	}
	return time.Duration(f)
}

// Hours returns so many hours as a span, as Nanoseconds does.
func Hours(h float64) time.Duration { return Nanoseconds(h * float64(time.Hour)) }

// Scale returns d times f, as Nanoseconds does.
func Scale(d time.Duration, f float64) time.Duration { return Nanoseconds(float64(d) * f) }

// Over returns d divided by f, as Nanoseconds does.
func Over(d time.Duration, f float64) time.Duration { return Nanoseconds(float64(d) / f) }

// Int returns f as a whole number, cut off, and at the ends of 64 bits where it does not fit. What is
// no number is zero.
func Int(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= 1<<63:
		return math.MaxInt64
	case f <= -1<<63:
		return math.MinInt64
	}
	return int64(f)
}

// Add returns a + b, and the end of 64 bits that is nearer where that does not fit.
func Add[N ~int64](a, b N) N {
	sum := a + b
	if (a < 0) == (b < 0) && (sum < 0) != (a < 0) {
		return end[N](a < 0)
	}
	return sum
}

// Sub returns a - b, and the end of 64 bits that is nearer where that does not fit.
func Sub[N ~int64](a, b N) N {
	diff := a - b
	if (a < 0) != (b < 0) && (diff < 0) != (a < 0) {
		return end[N](a < 0)
	}
	return diff
}

// Times returns n times a, and the end of 64 bits that is nearer where that does not fit.
func Times[N ~int64](a N, n int) N {
	hi, lo := bits.Mul64(magnitude(int64(a)), magnitude(int64(n)))
	negative := (a < 0) != (n < 0)
	if hi != 0 || lo > math.MaxInt64 {
		return end[N](negative)
	}
	if negative {
		return -N(lo)
	}
	return N(lo)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

func end[N ~int64](negative bool) N {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}

// Portion returns d · part / whole, cut off, exactly. A part below zero is none, and one above the
// whole is all; so is any part of nothing.
func Portion(d time.Duration, part, whole int64) time.Duration {
	switch {
	case d <= 0 || part <= 0:
		return 0
	case part >= whole:
		return d
	}
	hi, lo := bits.Mul64(uint64(d), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole)) // part < whole, so it fits
	return time.Duration(q)
}

// GPUTime returns so many GPU-hours as a span, cut off at the end of 64 bits: GPU time is summed over
// GPUs, so it may be longer than Forever. All that GPUHours allows fits.
func GPUTime(hours float64) time.Duration { return time.Duration(Int(hours * float64(time.Hour))) }
