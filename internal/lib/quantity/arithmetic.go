package quantity

import (
	"math"
	"math/bits"
	"time"
)

// Forever is the longest span that a computation returns, some 36 years: longer than any deadline (Decade), and short
// enough that seven of them add up without overflow.
const Forever time.Duration = 1 << 60

// Nanoseconds converts a computed number of nanoseconds to a span. It drops fractions, and limits the result to Forever
// in both directions. NaN gives zero.
//
// This is the only place that converts a float64 to a span: Go leaves the result of a conversion that does not fit
// undefined, and processors differ. 1e30 gives Forever. TestArithmetic_SaturatesOnOverflow.
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

// Hours returns a number of hours as a span, with the limits of Nanoseconds.
func Hours(h float64) time.Duration { return Nanoseconds(h * float64(time.Hour)) }

// Scale returns d times f, with the limits of Nanoseconds.
func Scale(d time.Duration, f float64) time.Duration { return Nanoseconds(float64(d) * f) }

// Over returns d divided by f, with the limits of Nanoseconds.
func Over(d time.Duration, f float64) time.Duration { return Nanoseconds(float64(d) / f) }

// Int converts f to a whole number. It drops fractions, and limits the result to the range of 64 bits. NaN gives zero.
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

// Add returns a + b, limited to the range of 64 bits.
func Add[N ~int64](a, b N) N {
	sum := a + b
	if (a < 0) == (b < 0) && (sum < 0) != (a < 0) {
		return end[N](a < 0)
	}
	return sum
}

// Sub returns a - b, limited to the range of 64 bits.
func Sub[N ~int64](a, b N) N {
	diff := a - b
	if (a < 0) != (b < 0) && (diff < 0) != (a < 0) {
		return end[N](a < 0)
	}
	return diff
}

// Times returns n times a, limited to the range of 64 bits.
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

// Portion returns d · part / whole exactly, and drops fractions. A part below zero gives 0. A part of at least whole
// gives d, even if whole is 0.
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

// GPUTime returns a number of GPU-hours as a span, limited to 64 bits: GPU time is summed over GPUs, so it may be
// longer than Forever. Every number that GPUHours allows fits.
func GPUTime(hours float64) time.Duration { return time.Duration(Int(hours * float64(time.Hour))) }
