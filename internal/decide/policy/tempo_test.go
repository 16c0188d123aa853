package policy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// program makes steps like a real one: a delay before the first, varying step times, validations, and possibly one
// sleep of its machine.
type program struct {
	rng      *rand.Rand
	step     float64 // seconds, mean
	spread   float64
	first    float64 // seconds before the first step
	validate int64   // steps between validations; 0: none
	takes    float64
	sleeps   int64 // step before which the machine sleeps; 0: never
	asleep   float64
	slower   int64 // from this step on, a step takes three times as long; 0: never
	every    int64 // steps between two reports
}

// times returns the completion time of each step in seconds from the start.
func (p *program) times(steps int64) []float64 {
	at, list := p.first, make([]float64, steps+1)
	for n := int64(1); n <= steps; n++ {
		d := p.step * math.Exp(p.spread*p.rng.NormFloat64()-p.spread*p.spread/2)
		if p.slower > 0 && n > p.slower {
			d *= 3
		}
		if at += d; n == p.sleeps {
			at += p.asleep
		}
		list[n] = at
		if p.validate > 0 && n%p.validate == 0 {
			at += p.takes
		}
	}
	return list
}

func drawn(seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := &program{rng: rng, step: math.Exp(rng.Float64()*6 - 2.5), spread: rng.Float64() * 0.3, first: rng.Float64() * 120}
	p.every = max(1, int64((1+rng.Float64()*20)/p.step))
	if rng.IntN(2) == 0 {
		p.validate = p.every * int64(5+rng.IntN(40))
		p.takes = float64(p.validate) * p.step * rng.Float64() / 2
	}
	if rng.IntN(2) == 0 {
		p.sleeps, p.asleep = 1+rng.Int64N(100*p.every), 120
	}
	return p
}

// Over a population of programs, the estimate of the remaining time is within a quarter for nearly all once a third
// is done, and never more than three times too large after ten reports, whatever the start-up, the pauses and the
// sleep of a machine. A mean pace over all the time is worse for many.
func TestTempo_EstimatesTheTimeLeftOfRealPrograms(t *testing.T) {
	const population, reports = 2000, 300
	good, naive := 0, 0
	for seed := range uint64(population) {
		p := drawn(seed)
		steps := p.every * reports
		at := p.times(steps)
		var tempo Tempo
		last := p.every
		for n := 2 * p.every; n <= steps/3; n += p.every {
			tempo, _ = tempo.See(Span{n - last, time.Duration((at[n] - at[last]) * 1e9)})
			last = n
			left := float64(steps-n) / tempo.Rate() * 3600
			if truth := at[steps] - at[n]; n > 10*p.every && left > 3*truth {
				t.Fatalf("program %d %+v: after step %d of %d it has %.0f s left, and it takes %.0f", seed, p, n, steps, left, truth)
			}
		}
		truth := at[steps] - at[last]
		if left := float64(steps-last) / tempo.Rate() * 3600; math.Abs(left/truth-1) < 0.25 {
			good++
		}
		if left := float64(steps-last) * at[last] / float64(last); math.Abs(left/truth-1) < 0.25 {
			naive++
		}
	}
	t.Logf("within a quarter: %d of %d, over all of the time %d", good, population, naive)
	if good < population*99/100 || good <= naive {
		t.Errorf("within a quarter: %d of %d, over all of the time %d", good, population, naive)
	}
}

func feed(p Tempo, spans ...float64) Tempo {
	for _, s := range spans { // ten steps each
		p, _ = p.See(Span{10, time.Duration(s * 1e9)})
	}
	return p
}

func repeat(s float64, n int) (list []float64) {
	for range n {
		list = append(list, s)
	}
	return list
}

func TestTempo(t *testing.T) {
	near := func(name string, p Tempo, secondsAStep float64) {
		t.Helper()
		if got := 3600 / p.Rate(); math.Abs(got/secondsAStep-1) > 0.02 {
			t.Errorf("%s: %.3f s a step and not %.3f: %+v", name, got, secondsAStep, p)
		}
	}
	steady := feed(Tempo{}, repeat(10, 20)...)
	near("steady", steady, 1)
	slept := feed(steady, 130, 10, 10)
	near("one sleep of two minutes", slept, 1)
	if d := slept.Margin(1000, 0.99); d < 4*time.Minute || d > 5*time.Minute {
		t.Errorf("another sleep may come: a margin of %v", d)
	}
	near("a sleep within the first reports", feed(Tempo{}, 130, 10, 10), 1)
	var validates []float64
	for range 20 {
		validates = append(validates, append(repeat(10, 9), 60)...)
	}
	// 19 of 20 pauses count as regular
	near("a validation of 50 s after each 100 steps", feed(Tempo{}, validates...), 1.475)
	near("three times as slow from here on", feed(steady, repeat(30, 8)...), 3)
	near("three times as fast", feed(steady, repeat(3.3, 8)...), 0.33)
	late := feed(steady, 130)                       // its reports were delayed by two minutes,
	late, _ = late.See(Span{130, 10 * time.Second}) // and arrive all at once
	near("reports that were held up", late, 1)
	if late.Pauses != 0 {
		t.Errorf("reports that come late are no pause: %+v", late)
	}
	if (Tempo{}).Rate() != 0 || (Tempo{}).Margin(10, 0.99) != 0 {
		t.Error("nothing seen, and something said")
	}
}

func FuzzTempo(f *testing.F) {
	f.Add(int64(10), int64(1e9), int64(1), int64(1e12))
	f.Add(int64(1), int64(1), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b, c, d int64) {
		var p Tempo
		for i := range 30 {
			s := Span{a, time.Duration(b)}
			if i%3 == 2 {
				s = Span{c, time.Duration(d)}
			}
			p, _ = p.See(s)
			if r := p.Rate(); r < 0 || math.IsNaN(r) || math.IsInf(r, 0) {
				t.Fatalf("a rate of %v: %+v", r, p)
			}
			if p.Margin(1000, 0.99) < 0 {
				t.Fatalf("a margin of %v: %+v", p.Margin(1000, 0.99), p)
			}
		}
	})
}
