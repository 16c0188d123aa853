package evict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/evict"
)

var now = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func draw(rng *rand.Rand, n int) (list []evict.Entry) {
	for i := range n {
		e := evict.Entry{Job: fmt.Sprint("j", i), Bytes: rng.Int64N(100), Cost: money.Picos(rng.Int64N(1e13)),
			Priced: rng.IntN(10) > 0, Made: now.Add(-time.Duration(rng.Int64N(int64(400 * day)))), Needed: rng.IntN(6) == 0}
		for range rng.IntN(4) {
			e.Uses = append(e.Uses, e.Made.Add(time.Duration(rng.Float64()*float64(now.Sub(e.Made)))))
		}
		list = append(list, e)
	}
	return list
}

// What is needed stays, what is left fits, nothing more goes than has to, and nothing goes while something of less value
// per byte and of the same size or more stays.
func TestChoose_KeepsWhatIsWorthMost(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list, fit := draw(rng, 1+rng.IntN(12)), rng.Int64N(500)
		goes := map[string]bool{}
		for _, e := range evict.Choose(list, fit, now) {
			if goes[e.Job] = true; e.Needed {
				t.Fatalf("seed %d: %s goes, which is needed", seed, e.Job)
			}
		}
		kept, needed := int64(0), int64(0)
		for _, e := range list {
			if !goes[e.Job] {
				kept += e.Bytes
			}
			if e.Needed {
				needed += e.Bytes
			}
		}
		if kept > max(fit, needed) {
			t.Fatalf("seed %d: %d bytes stay of %d", seed, kept, fit)
		}
		for _, out := range list {
			if goes[out.Job] && kept+out.Bytes <= fit {
				t.Errorf("seed %d: %s goes and would fit", seed, out.Job)
			}
			for _, in := range list {
				if goes[out.Job] && !goes[in.Job] && !in.Needed && in.Bytes >= out.Bytes && worth(in) < worth(out) {
					t.Errorf("seed %d: %s stays (%g a byte) and %s goes (%g)", seed, in.Job, worth(in), out.Job, worth(out))
				}
			}
		}
	}
}

// worth is the value per byte, computed once more.
func worth(e evict.Entry) float64 {
	if !e.Priced {
		return math.Inf(1)
	}
	uses, lived := 0.5, 30.0
	for _, at := range e.Uses {
		uses += math.Pow(0.5, now.Sub(at).Hours()/24/90)
	}
	for d := 0.0; d < now.Sub(e.Made).Hours()/24; d += 0.01 {
		lived += 0.01 * math.Pow(0.5, d/90)
	}
	return e.Cost.Float() * (1 - math.Exp(-30*uses/lived)) / math.Max(1, float64(e.Bytes))
}

// Odds are high for what is used each day and fall with time without a use; of unknown outputs they are four in ten.
func TestOdds_FollowUse(t *testing.T) {
	fresh := evict.Entry{Made: now}
	if odds := fresh.Odds(now); math.Abs(odds-(1-math.Exp(-0.5))) > 1e-12 {
		t.Errorf("new outputs: %g", odds)
	}
	daily := evict.Entry{Made: now.Add(-60 * day)}
	for d := range 60 {
		daily.Uses = append(daily.Uses, now.Add(-time.Duration(d)*day))
	}
	if odds := daily.Odds(now); odds < 0.99 {
		t.Errorf("used each day: %g", odds)
	}
	last := 1.0
	for months := range 24 {
		odds := daily.Odds(now.Add(time.Duration(months) * 30 * day))
		if odds > last || odds < 0 {
			t.Errorf("after %d months without a use: %g, a month before %g", months, odds, last)
		}
		last = odds
	}
	if last > 0.15 {
		t.Errorf("after two years without a use: %g", last)
	}
}
