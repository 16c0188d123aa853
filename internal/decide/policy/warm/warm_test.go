package warm

import (
	"math/rand/v2"
	"testing"
	"time"
)

// cost returns the machine cost of a gap if the machine is kept for the given time.
func cost(keep, start, paid, gap time.Duration) time.Duration {
	idle := max(0, min(gap, keep)-paid)
	if gap > keep {
		return idle + start
	}
	return idle
}

// For any earlier gaps and any next one, waiting costs at most twice the optimum in hindsight: the lesser of
// waiting through the gap and a new start.
func TestWait_CostsAtMostTwiceTheHindsight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		start, paid := time.Duration(r.Int64N(1000)), time.Duration(r.Int64N(300))
		gaps := make([]time.Duration, r.IntN(20))
		for i := range gaps {
			gaps[i] = time.Duration(r.Int64N(4000))
		}
		keep := Keep(start, paid, gaps)
		if keep < paid || keep > paid+start {
			t.Fatalf("kept %v of start %v and paid %v", keep, start, paid)
		}
		gap := time.Duration(r.Int64N(4000))
		best := min(max(0, gap-paid), start)
		if gap <= paid {
			best = 0
		}
		if got := cost(keep, start, paid, gap); len(gaps) < known && got > 2*best {
			t.Fatalf("a gap of %v costs %v, at best %v (start %v, paid %v, kept %v)", gap, got, best, start, paid, keep)
		}
	}
}

// Over gaps from the same distribution as before, the learned time costs no more than the best fixed time within
// the bound, found by trying all.
func TestWait_LearnsTheBestFixedTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		start, paid := time.Duration(1+r.Int64N(60)), time.Duration(r.Int64N(20))
		gaps := make([]time.Duration, known+r.IntN(13))
		for i := range gaps {
			gaps[i] = time.Duration(r.Int64N(150))
		}
		total := func(keep time.Duration) (sum time.Duration) {
			for _, g := range gaps {
				sum += cost(keep, start, paid, g)
			}
			return sum
		}
		keep := Keep(start, paid, gaps)
		for other := range paid + start + 1 {
			if total(other) < total(keep) {
				t.Fatalf("to keep %v costs %v, and %v costs %v (start %v, paid %v, %v)", other, total(other), keep,
					total(keep), start, paid, gaps)
			}
		}
	}
}

func TestWait_LastsOneStartWithoutHistory(t *testing.T) {
	for _, c := range []struct {
		start, paid, want time.Duration
		gaps              []time.Duration
	}{
		{start: time.Minute, want: time.Minute},
		{start: time.Minute, paid: 40 * time.Second, want: 100 * time.Second},
		{start: time.Minute, paid: 40 * time.Second, gaps: []time.Duration{time.Hour, time.Hour}, want: 100 * time.Second},
		{start: time.Minute, paid: 40 * time.Second, gaps: []time.Duration{time.Hour, time.Hour, time.Hour},
			want: 40 * time.Second},
		{start: time.Minute, gaps: []time.Duration{5 * time.Second, 20 * time.Second, time.Hour}, want: 20 * time.Second},
		{start: -1, paid: -1},
	} {
		if got := Keep(c.start, c.paid, c.gaps); got != c.want {
			t.Errorf("start %v, paid %v, %v: kept %v, want %v", c.start, c.paid, c.gaps, got, c.want)
		}
	}
}
