package quantity_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/quantity"
)

// whole draws integers, often the limits of 64 bits.
var whole = rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1,
	math.MinInt64 + 1, 1 << 32, -1 << 32}))

// cutOff limits a whole number to the range of 64 bits.
func cutOff(b *big.Int) int64 {
	switch {
	case b.IsInt64():
		return b.Int64()
	case b.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// Sums, differences and products agree with big numbers that are limited to the range of 64 bits.
func TestArithmetic_SaturatesOnOverflow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := whole.Draw(t, "a"), whole.Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		for name, c := range map[string]struct{ got, want int64 }{
			"sum":        {quantity.Add(a, b), cutOff(new(big.Int).Add(x, y))},
			"difference": {quantity.Sub(a, b), cutOff(new(big.Int).Sub(x, y))},
			"product":    {quantity.Times(a, int(b)), cutOff(new(big.Int).Mul(x, y))},
		} {
			if c.got != c.want {
				t.Fatalf("%s of %d and %d: %d, want %d", name, a, b, c.got, c.want)
			}
		}
	})
	for f, want := range map[float64]time.Duration{1e30: quantity.Forever, -1e30: -quantity.Forever, math.Inf(1): quantity.Forever,
		math.Inf(-1): -quantity.Forever, 1.9: 1, -1.9: -1, 3.6e12: time.Hour} {
		if got := quantity.Nanoseconds(f); got != want {
			t.Errorf("%g ns are %v, want %v", f, got, want)
		}
	}
	if got := quantity.Nanoseconds(math.NaN()); got != 0 {
		t.Errorf("no number is %v", got)
	}
	for f, want := range map[float64]int64{1e19: math.MaxInt64, -1e19: math.MinInt64, 1 << 63: math.MaxInt64, -1 << 63: math.MinInt64,
		1 << 62: 1 << 62, 2.9: 2} {
		if got := quantity.Int(f); got != want {
			t.Errorf("%g is %d, want %d", f, got, want)
		}
	}
}

// A part of a span is exact, and never more than the whole.
func TestPortion_IsExactAndAtMostTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, part, of := whole.Draw(t, "d"), whole.Draw(t, "part"), whole.Draw(t, "whole")
		got := quantity.Portion(time.Duration(d), part, of)
		want := new(big.Int)
		switch {
		case d <= 0 || part <= 0:
		case part >= of:
			want.SetInt64(d)
		default:
			want.Div(want.Mul(big.NewInt(d), big.NewInt(part)), big.NewInt(of))
		}
		if int64(got) != want.Int64() {
			t.Fatalf("%d of %d of %d: %d, want %v", part, of, d, got, want)
		}
	})
}

// The promises that Kind's bounds make about sums hold.
func TestKinds_LeaveRoomForSums(t *testing.T) {
	t.Parallel()
	const mostJobs = 10_000_000
	if float64(quantity.Decade)*29 > math.MaxInt64 || float64(quantity.Forever)*7 > math.MaxInt64 || quantity.Decade >= quantity.Forever {
		t.Error("spans do not add up")
	}
	if quantity.Steps.Most*mostJobs > math.MaxInt64 || quantity.Bytes.Most*1000 > math.MaxInt64 {
		t.Error("counts do not add up")
	}
	if quantity.GPUHours.Most*float64(time.Hour) > math.MaxInt64 || quantity.Count.Most*quantity.Count.Most > math.MaxInt64 {
		t.Error("products do not fit")
	}
	if quantity.Dollars.Most*mostJobs > 1.7e26/1e6 || quantity.Dollars.Most*1e6 > math.MaxInt64 || quantity.Price.Most*9e12 > math.MaxInt64 {
		t.Error("money does not fit")
	}
	if math.IsInf(quantity.Metric.Most*quantity.Metric.Most*mostJobs, 0) {
		t.Error("squares of metrics do not add up")
	}
	for _, k := range quantity.Kinds {
		if k.Name == "" || k.Why == "" || k.Least > k.Most {
			t.Errorf("%+v", k)
		}
	}
}

// AllowsTime accepts times from 1700 to ten years ahead, and the zero time.
func TestAllowsTime_AcceptsUpToTenYearsAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]bool{{}: true, now: true, now.Add(quantity.Decade): true, now.Add(quantity.Decade + 1): false,
		time.Unix(0, 0): true, time.Date(1699, 12, 31, 0, 0, 0, 0, time.UTC): false, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC): false} {
		if got := quantity.AllowsTime(at, now); got != want {
			t.Errorf("%v: %v", at, got)
		}
	}
	if quantity.Steps.Range() != "0 to 100000000000" || quantity.Price.Range() != "0 to 1000000 currency units an hour" {
		t.Errorf("%s, %s", quantity.Steps.Range(), quantity.Price.Range())
	}
	if quantity.Metric.Allows(math.NaN()) || quantity.Metric.Allows(math.Inf(1)) || !quantity.Span.AllowsInt(int64(quantity.Decade)) ||
		quantity.Span.AllowsInt(int64(quantity.Decade)+1) {
		t.Error("a bound is not held")
	}
}
