package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// The work is cut into a thousand pieces of equal time on the least number of processors. The parallel ones take that
// time divided by how many times as many processors there are.
func TestGain_IsAmdahlsLaw(t *testing.T) {
	for parallel := 0; parallel <= 1000; parallel += 50 {
		for _, c := range [][2]int{{1, 1}, {1, 2}, {4, 16}, {3, 7}, {8, 4}} {
			least, units := c[0], max(c[0], c[1])
			took := 0.0
			for piece := range 1000 {
				if piece < parallel {
					took += float64(least) / float64(units)
				} else {
					took++
				}
			}
			if got, want := Gain(float64(parallel)/1000, least, c[1]), 1000/took; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("parallel %d of 1000, %d instead of %d: %v times as fast, want %v", parallel, c[1], least, got, want)
			}
		}
	}
	if got := Gain(0.9, 4, 16); math.Abs(got-3.0769) > 1e-4 {
		t.Errorf("the example of the comment is %v", got)
	}
}

// sized returns an on-demand machine with that many processors at that price.
func sized(cpus int, dollars float64) Listing {
	rate := money.Rate(math.Round(dollars * 1e12))
	return Listing{Offer: market.Offer{ID: market.OfferID(fmt.Sprintf("m%02d", cpus)), CPUs: cpus, Capacity: market.OnDemand},
		Quote: market.Quote{Rate: rate, Priced: true, Available: true}}
}

// A job of cpus: 4..16 has 16 processors where that lowers its cost or is what meets its deadline, and otherwise 4.
func TestDecide_TakesUpperEndWhereItPays(t *testing.T) {
	market := []Listing{sized(2, 0.1), sized(4, 1), sized(16, 3), sized(32, 3)}
	for _, c := range []struct {
		name     string
		parallel float64
		within   time.Duration // to the deadline, for ten hours of work on four processors; 0: none
		want     string
	}{
		{"nothing shows a gain", 0, 0, "m04"},
		{"3.08 times as fast at three times the price", 0.9, 0, "m16"},
		{"2.5 times as fast at three times the price", 0.8, 0, "m04"},
		{"the deadline needs 2.5 times the speed", 0.8, 6 * time.Hour, "m16"},
		{"the deadline leaves time", 0.8, 20 * time.Hour, "m04"},
		{"the deadline cannot be met, and more are not faster", 0, 6 * time.Hour, "m04"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := Job{Need: Need{Requirements: Requirements{CPUs: 4, MaxCPUs: 16}, Parallel: c.parallel},
				Progress: policy.Progress{Now: now, Began: now, Left: 10 * time.Hour, Known: true, Restart: time.Minute}}
			if c.within > 0 {
				job.Progress.Deadline = now.Add(c.within)
			}
			d := decide(job, market)
			if string(d.Take) != c.want {
				t.Errorf("it takes %q (%s), want %s", d.Take, d.Why, c.want)
			}
			if has := fmt.Sprintf("m%02d", d.Gets.Units); has != c.want || d.Gets.Least != 4 || d.Gets.Most != 16 ||
				d.Gets.Shown != (c.parallel > 0) {
				t.Errorf("it has %+v", d.Gets)
			}
		})
	}
}

// Without a deadline the job takes the machine with the lowest dollars for the work, as a plain loop finds it.
func TestDecide_RangesAgreeWithPlainTwin(t *testing.T) {
	more := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 37))
		least := 1 + rng.IntN(8)
		most := least + rng.IntN(24)
		parallel := float64(rng.IntN(11)) / 10
		var options []Listing
		best, lowest := "", math.Inf(1)
		for cpus := 1; cpus <= 32; cpus++ {
			if rng.IntN(3) > 0 {
				continue
			}
			l := sized(cpus, 0.05+0.05*float64(cpus)*(0.6+0.8*rng.Float64()))
			options = append(options, l)
			if cpus < least || cpus > most {
				continue
			}
			hours := 1 - parallel + parallel*float64(least)/float64(cpus)
			if dollars := hours * l.Quote.Rate.Float(); dollars < lowest {
				best, lowest = string(l.Offer.ID), dollars
			}
		}
		need := Need{Requirements: Requirements{CPUs: least, MaxCPUs: most}, Parallel: parallel}
		d := decide(Job{Need: need, Progress: policy.Progress{Now: now, Left: time.Hour, Known: true, Restart: time.Minute}}, options)
		if string(d.Take) != best {
			t.Fatalf("seed %d: %d..%d, parallel %v: it takes %q, and %q costs least", seed, least, most, parallel, d.Take, best)
		}
		if d.Gets.Faster > 1 {
			more++
		}
	}
	if more < 300 {
		t.Errorf("%d jobs have more than their least: the draw says little", more)
	}
}

// On a machine that tasks share, a job has its upper end if nobody waits who could share it, and never what would make
// its portion larger than its range.
func TestUnits_OfSharedMachine(t *testing.T) {
	s := &Listings{Shared: func(string) bool { return true }}
	l := sized(16, 3)
	l.Offer.Memory = 64
	s.Add(&l)
	for _, c := range []struct {
		name     string
		need     Requirements
		parallel float64
		crowded  bool
		want     int
	}{
		{"nothing shows a gain", Requirements{CPUs: 4, MaxCPUs: 8}, 0, false, 4},
		{"a gain", Requirements{CPUs: 4, MaxCPUs: 8}, 0.5, false, 8},
		{"others wait", Requirements{CPUs: 4, MaxCPUs: 8}, 0.5, true, 4},
		{"no upper end", Requirements{CPUs: 4}, 0.5, false, 4},
		{"exactly", Requirements{CPUs: 4, MaxCPUs: 4}, 0.5, false, 4},
		{"the whole machine", Requirements{CPUs: 4, MaxCPUs: 20}, 0.5, false, 16},
		{"the whole machine has too much memory", Requirements{CPUs: 4, MaxCPUs: 20, Memory: 8, MaxMemory: 16}, 0.5, false, 15},
		{"any number", Requirements{Memory: 8}, 0.5, false, 0},
	} {
		need := Need{Requirements: c.need, Parallel: c.parallel}
		if got := need.Units(0, &l, c.crowded); got != c.want {
			t.Errorf("%s: %d processors, want %d", c.name, got, c.want)
		}
	}
}
