package policy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// at returns a job with three hours left, six hours done in six, and the given time to its deadline.
func at(left time.Duration) Progress {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	return Progress{Now: now, Began: now.Add(-6 * time.Hour), Deadline: now.Add(left), Left: 3 * time.Hour, Known: true, Done: 6 * time.Hour, Restart: 6 * time.Minute, Reserve: 6 * time.Minute, Detect: time.Minute}
}

func TestMode_TurnsCertainAtTheGuard(t *testing.T) {
	looked := at(3*time.Hour + 20*time.Minute)
	looked.Poll = 10 * time.Minute
	late := at(4 * time.Hour)
	late.Done = time.Minute
	unknown := at(time.Minute)
	unknown.Known = false
	never := at(0)
	never.Deadline = time.Time{}
	for _, c := range []struct {
		name    string
		p       Progress
		working bool
		want    Mode
	}{
		{"an hour of slack", at(4 * time.Hour), false, Patient},
		{"the guard, to the minute", at(3*time.Hour + 13*time.Minute), false, Patient},
		{"and a moment later", at(3*time.Hour + 13*time.Minute - 1), false, Certain},
		{"too late already", at(time.Hour), true, Certain},
		{"rare looks, nothing works", looked, false, Certain},
		{"rare looks, spot works", looked, true, Patient},
		{"behind the line", late, false, Steady},
		{"nobody knows the work", unknown, false, Patient},
		{"no deadline", never, false, Patient},
	} {
		if got := c.p.Mode(c.working); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestGuard_WakesAtTheFirstMomentItHolds(t *testing.T) {
	for _, working := range []bool{true, false} {
		p := at(8 * time.Hour)
		p.Poll = 7 * time.Minute
		wake, ok := p.GuardAt(working)
		if !ok {
			t.Fatal("a deadline never gets tight")
		}
		p.Now = wake.Add(-1)
		if p.Guard(working) {
			t.Error("it held a moment before")
		}
		p.Now = wake
		if !p.Guard(working) {
			t.Error("it does not hold when it was said to")
		}
	}
}

// The comparison in 128 bits must change exactly at the announced time; otherwise the core wakes the job again and
// again at the same instant.
func TestBehind_StartsExactlyAtTheAnnouncedTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		p := at(0)
		p.Deadline = p.Began.Add(time.Duration(1 + rng.Int64N(int64(3000*time.Hour))))
		p.Done, p.Left = time.Duration(rng.Int64N(int64(1000*time.Hour))), time.Duration(rng.Int64N(int64(1000*time.Hour)))
		p.Now = p.Began
		wake, ok := p.BehindAt()
		if !ok {
			t.Fatal("never behind")
		}
		p.Now = wake
		if behind, _ := p.Behind(0); !behind && wake.Before(p.Deadline) {
			t.Fatalf("%+v is not behind when it was said", p)
		}
		p.Now = wake.Add(-1)
		if behind, _ := p.Behind(0); behind && p.Now.After(p.Began) {
			t.Fatalf("%+v is behind a moment before", p)
		}
	}
}

// No rule overrides the guard, and none takes unavailable spot.
func TestRules_ObeyTheGuard(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := map[Choice]int{}
	for range 50_000 {
		v := View{Progress: at(time.Duration(rng.Int64N(int64(8 * time.Hour)))), Held: []Choice{Wait, Spot, NonPreemptible}[rng.IntN(3)], Spot: rng.IntN(2) == 0, Sold: rng.IntN(4) > 0}
		v.Done = time.Duration(rng.Int64N(int64(8 * time.Hour)))
		v.Poll = time.Duration(rng.Int64N(int64(20 * time.Minute)))
		if rng.IntN(2) == 0 {
			v.Warming = time.Minute
		}
		for _, r := range Rules {
			got := Choose(r, v)
			seen[got]++
			if v.Guard(v.Working()) && got != NonPreemptible {
				t.Fatalf("%s chooses %s against the guard: %+v", r, got, v)
			}
			if got == Spot && !v.Spot || got == Wait && !v.Sold && !v.Spot {
				t.Fatalf("%s chooses %s, which is not for sale: %+v", r, got, v)
			}
			if wake := Again(r, v, got); got != NonPreemptible && wake.IsZero() {
				t.Fatalf("%s chooses %s and is never woken: %+v", r, got, v)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("the choices were %v", seen)
	}
}

// TestInterval_MinimizesTheLoss compares the interval with the one found by a search over the exact expected time
// per unit of work under interruptions at a constant rate: M·(e^((τ+δ)/M) − 1)/τ.
func TestInterval_MinimizesTheLoss(t *testing.T) {
	for _, c := range []struct{ cost, between time.Duration }{
		{10 * time.Second, time.Hour}, {time.Minute, 4 * time.Hour}, {5 * time.Minute, time.Hour}, {time.Second, 30 * time.Minute}, {50 * time.Minute, 20 * time.Minute},
	} {
		d, m := c.cost.Seconds(), c.between.Seconds()
		per := func(tau float64) float64 { return m * (math.Exp((tau+d)/m) - 1) / tau }
		best := math.Inf(1)
		for tau := 1.0; tau < 3*m; tau *= 1.002 {
			best = min(best, per(tau))
		}
		if got := per(Interval(c.cost, c.between).Seconds()); got > best*1.002 {
			t.Errorf("δ=%v M=%v: %v costs %.5f for each unit of work, the best is %.5f", c.cost, c.between, Interval(c.cost, c.between), got, best)
		}
	}
	if got := Interval(10*time.Second, time.Hour).Round(time.Second); got != 262*time.Second {
		t.Errorf("the worked number is %v", got)
	}
}

func TestHazard_Learns(t *testing.T) {
	if got := (Hazard{}).Between(); got != 4*time.Hour {
		t.Errorf("nothing seen: %v", got)
	}
	if got := (Hazard{Lost: 9, Served: 6 * time.Hour}).Between(); got != time.Hour {
		t.Errorf("nine losses in six hours: %v", got)
	}
}

func TestGuardrails(t *testing.T) {
	loss := Metric{Name: "loss", Target: 2, HasGoal: true, Patience: 10}
	for name, c := range map[string]struct {
		seen   Seen
		step   int64
		value  float64
		broken []string
		want   Stop
	}{
		"a value that is none":   {Seen{}, 1, math.NaN(), nil, Diverged},
		"without bound":          {Seen{}, 1, math.Inf(-1), nil, Diverged},
		"above the target":       {Seen{}, 1, 2.5, nil, ""},
		"at the target":          {Seen{}, 1, 2, nil, TargetReached},
		"not a number":           {Seen{}, 1, 3, []string{"loss"}, Diverged},
		"no better for too long": {Seen{Best: 2.5, BestStep: 5, Any: true}, 15, 2.6, nil, Plateau},
		"no better for a while":  {Seen{Best: 2.5, BestStep: 5, Any: true}, 14, 2.6, nil, ""},
	} {
		said := loss.Of(time.Time{}, c.step, 0, map[string]float64{"loss": c.value}, c.broken)
		if _, got := c.seen.Judge(loss, said); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// With uneven work, the remaining work exceeds its estimate by more than the margin no more often than the promise
// allows.
func TestGuard_KeepsItsPromiseForUncertainWork(t *testing.T) {
	for _, spread := range []float64{0.05, 0.2, 0.5} {
		for _, promise := range []float64{0.9, 0.99} {
			rng := rand.New(rand.NewPCG(3, 3))
			late, all := 0, 0
			for range 4000 {
				total := 50 + rng.IntN(400) // one-minute looks that the work takes at its mean rate
				know := 5 + rng.IntN(40)
				var p Pace
				done := 0.0
				draw := func() float64 { return math.Exp(spread*rng.NormFloat64() - spread*spread/2) }
				for range know {
					r := draw()
					done += r
					p = p.See(r, time.Minute)
				}
				rest := float64(total) - done
				if rest <= 0 {
					continue
				}
				left := time.Duration(rest / (done / float64(know)) * float64(time.Minute))
				takes := 0
				for d := 0.0; d < rest; takes++ {
					d += draw()
				}
				all++
				if time.Duration(takes-1)*time.Minute > left+p.Margin(left, promise) {
					late++
				}
			}
			if share := float64(late) / float64(all); share > 2*(1-promise)+0.005 {
				t.Errorf("spread %v: %.3f are later than the doubt, %.2f may be", spread, share, 1-promise)
			}
		}
	}
	if (Pace{}).Margin(time.Hour, 0.99) != 0 {
		t.Error("doubt about what nobody has seen")
	}
	var steady Pace
	for range 60 {
		steady = steady.See(100, time.Minute)
	}
	if d := steady.Margin(2*time.Hour, 0.99); d <= 0 || d > 3*time.Minute {
		t.Errorf("after an hour of even pace, %v of doubt about two more", d)
	}
}

// A job whose program's step count does not cover the whole job does not wait for spot, because the time left is
// unknown. It takes available spot. A job whose work is not known yet waits.
func TestChoose_AnUncountedJobDoesNotWait(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range []Rule{Default, Greedy, UniformProgress} {
		for _, c := range []struct {
			uncounted, spot, timed bool
			want                   Choice
		}{
			{true, false, true, NonPreemptible}, {true, true, true, Spot}, {true, false, false, Wait}, {false, false, true, Wait},
		} {
			v := View{Progress: Progress{Now: now, Began: now, Uncounted: c.uncounted}, Spot: c.spot, Sold: true}
			if c.timed {
				v.Deadline = now.Add(time.Hour)
			}
			if got := Choose(r, v); got != c.want {
				t.Errorf("%s, %+v: %v", r, c, got)
			}
		}
	}
}
