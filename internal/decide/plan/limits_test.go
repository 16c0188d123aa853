package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// limited is a range as in a job file; a most of 0 has no upper end.
type limited struct{ least, most int64 }

func drawLimited(rng *rand.Rand) limited {
	x := limited{least: rng.Int64N(6)}
	if x.least > 0 && rng.IntN(2) == 0 {
		x.most = x.least + rng.Int64N(4)
	}
	return x
}

// holds is the slow, plain twin of matching: it reports whether a job with those ranges of processors, memory and
// accelerators fits a machine of that size, alone or on a portion of it.
func holds(asks [3]limited, has [3]int64, shared bool) bool {
	gets := has
	if shared {
		some, less := false, true // it gets a portion if it requests something, and never all of something
		for i := range asks {
			some = some || asks[i].least > 0
			less = less && (asks[i].least < has[i] || has[i] == 0 && i == 2)
		}
		for i := range asks {
			if some && less && asks[i].least > 0 {
				gets[i] = asks[i].least
			}
		}
	}
	for i := range asks {
		if has[i] < asks[i].least || asks[i].most > 0 && gets[i] > asks[i].most {
			return false
		}
	}
	return true
}

// A job runs on resources within its ranges, on a machine of its own or on a portion of a shared one, and no
// suitable machine is refused.
func TestFits_AgreesWithPlainTwinOnRanges(t *testing.T) {
	fits, above := 0, 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		asks := [3]limited{drawLimited(rng), drawLimited(rng), drawLimited(rng)}
		has := [3]int64{1 + rng.Int64N(9), 1 + rng.Int64N(9), rng.Int64N(9)}
		n := Need{Requirements: Requirements{
			CPUs: int(asks[0].least), MaxCPUs: int(asks[0].most), Memory: asks[1].least, MaxMemory: asks[1].most,
			Accelerators: int(asks[2].least), MaxAccelerators: int(asks[2].most)}}
		o := market.Offer{ID: "o", Provider: "p", CPUs: int(has[0]), Memory: size.Bytes(has[1]), Accelerators: int(has[2])}
		if asks[2].least > 0 {
			n.Accelerator = "L4"
		}
		if has[2] > 0 {
			o.Accelerator = "l4"
		}
		shared := rng.IntN(2) == 0
		s := &Listings{Shared: func(p string) bool { return shared && p == "p" }}
		l := &Listing{Offer: o, Quote: market.Quote{Offer: "o", Rate: 1e12, Priced: true, Available: true}}
		s.Add(l)
		_, got := n.Fits(l)
		want := holds(asks, has, shared)
		if got != want {
			t.Fatalf("seed %d: asks %v, has %v, shared %v: fits %v, want %v", seed, asks, has, shared, got, want)
		}
		_, why, _ := n.fit(nil, l)
		short := false
		for i := range asks {
			short = short || has[i] < asks[i].least
		}
		if (why == TooLarge) != (!want && !short) {
			t.Fatalf("seed %d: asks %v, has %v, shared %v: %q", seed, asks, has, shared, why)
		}
		switch {
		case got:
			fits++
		case why == TooLarge:
			above++
		}
	}
	if fits < 1000 || above < 1000 {
		t.Errorf("%d fit and %d are too large: the draw says little", fits, above)
	}
}

// If larger machines cost less, the job takes the cheapest within its range, and every other machine has a reason.
func TestDecide_TakesCheapestWithinRange(t *testing.T) {
	var options []Listing
	for cpus := 1; cpus <= 10; cpus++ {
		options = append(options, Listing{
			Offer: market.Offer{ID: market.OfferID(fmt.Sprintf("m%02d", cpus)), CPUs: cpus, Capacity: market.OnDemand},
			Quote: market.Quote{Rate: money.Rate(20-cpus) * 1e11, Priced: true, Available: true}})
	}
	d := decide(Job{Need: Need{Requirements: Requirements{CPUs: 4, MaxCPUs: 7}}}, options)
	if d.Take != "m07" {
		t.Errorf("it takes %q (%s), want the cheapest of 4 to 7 processors", d.Take, d.Why)
	}
	counts := map[Reason]int{}
	for _, n := range d.Counts {
		counts[n.Why] = n.Count
	}
	if counts[TooSmall] != 3 || counts[TooLarge] != 3 || counts[CostsMore] != 3 {
		t.Errorf("the others: %v", d.Counts)
	}
}

// Jobs with different upper limits are in different classes.
func TestNeedKey_IncludesUpperLimits(t *testing.T) {
	seen := map[string]Requirements{}
	for _, r := range []Requirements{{CPUs: 1}, {CPUs: 1, MaxCPUs: 1}, {CPUs: 1, MaxCPUs: 2}, {MaxMemory: 1}, {MaxMemory: 2},
		{Accelerators: 1}, {MaxAccelerators: 1}, {MaxAccelerators: 2}} {
		n := Need{Requirements: r}
		if other, twice := seen[n.Key()]; twice {
			t.Errorf("%+v and %+v are one class", r, other)
		}
		seen[n.Key()] = r
	}
}
