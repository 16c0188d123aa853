package money_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/money"
)

// slowUntil is the plain twin of Rate.Until: rate times span over an hour, cut off.
func slowUntil(rate, span int64) *big.Int {
	n := new(big.Int).Mul(big.NewInt(rate), big.NewInt(span))
	return n.Quo(n, big.NewInt(int64(time.Hour)))
}

func FuzzRateUntil(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0))
	f.Add(int64(973_100_000_000), int64(1e9), int64(3_600e9)) // $0.9731 an hour
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MaxInt64))
	f.Add(int64(1), int64(time.Hour)-1, int64(time.Hour))
	f.Fuzz(func(t *testing.T, rate, cut, end int64) {
		if rate < 0 || cut < 0 || end < cut {
			t.Skip()
		}
		r := money.Rate(rate)
		first, whole := r.Until(time.Duration(cut)), r.Until(time.Duration(end))
		if want := slowUntil(rate, end); whole.Big().Cmp(want) != 0 {
			t.Fatalf("Rate(%d).Until(%d) = %v, want %v", rate, end, whole.Big(), want)
		}
		if first.Cmp(whole) > 0 {
			t.Fatalf("Rate(%d): %v after %d, but %v after %d", rate, first, cut, whole, end)
		}
	})
}

func TestASpanHasTheSameSumHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := money.Rate(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate"))
		var end time.Duration
		var sum, posted money.Amount
		for _, piece := range rapid.SliceOf(rapid.Int64Range(0, int64(1000*time.Hour))).Draw(t, "pieces") {
			end += time.Duration(piece)
			delta := rate.Until(end).Sub(posted)
			if delta.Sign() < 0 {
				t.Fatalf("a piece of %d ns cost %v", piece, delta)
			}
			posted, sum = rate.Until(end), sum.Add(delta)
		}
		if want := rate.Until(end); sum != want {
			t.Fatalf("the pieces sum to %v, the whole is %v", sum, want)
		}
	})
}

func TestRatePanicsWhereItsCallerIsWrong(t *testing.T) {
	for name, f := range map[string]func(){
		"negative rate":  func() { money.Rate(-1).Until(1) },
		"negative span":  func() { money.Rate(1).Until(-1) },
		"negative count": func() { money.Rate(1).Times(-1) },
		"negative price": func() { money.Rate(-1).Times(1) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
	if got := money.Rate(3).Times(4); got != 12 {
		t.Errorf("3 times 4 is %d", got)
	}
	if got := money.Rate(math.MaxInt64).Times(1); got != math.MaxInt64 {
		t.Errorf("the largest rate of one machine is %d", got)
	}
	for n := range 3 {
		if got := money.Rate(math.MaxInt64 - 1).Times(2 << (30 * n)); got != math.MaxInt64 {
			t.Errorf("the largest rate of many machines is %d", got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for in, want := range map[string]money.Rate{
		"0": 0, "-0": 0, "0.9731": 973_100_000_000, "9223372.036854775807": math.MaxInt64,
	} {
		r, err := money.ParseRate(in)
		if err != nil || r != want {
			t.Errorf("ParseRate(%q) = %d, %v, want %d", in, r, err, want)
		}
	}
	for _, in := range []string{"", "-0.1", "9223372.036854775808", "1e3", "1/3", "$1"} {
		if r, err := money.ParseRate(in); err == nil {
			t.Errorf("ParseRate(%q) = %d", in, r)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := money.Rate(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate"))
		data, err := json.Marshal(r)
		var back money.Rate
		if err != nil || json.Unmarshal(data, &back) != nil || back != r {
			t.Fatalf("rate %d became %s, %v and then %d", int64(r), data, err, int64(back))
		}
	})
}
