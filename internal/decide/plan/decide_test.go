package plan

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func draw(rng *rand.Rand) (Job, []Listing) {
	job := Job{
		Progress: policy.Progress{
			Now:      now,
			Began:    now.Add(-time.Hour),
			Deadline: now.Add(time.Duration(rng.IntN(20)) * time.Hour),
			Left:     time.Duration(rng.IntN(10)) * time.Hour,
			Known:    rng.IntN(4) > 0,
			Done:     time.Duration(rng.IntN(3)) * time.Hour,
			Restart:  6 * time.Minute,
			Detect:   time.Minute,
		},
		Limited: rng.IntN(2) == 0, DeadlineFirst: rng.IntN(3) == 0,
		Need: Need{Critical: rng.IntN(5) == 0, Requirements: Requirements{CPUs: rng.IntN(4)}},
	}
	job.Left = money.Picos(rng.Int64N(2e12))
	if rng.IntN(3) == 0 {
		job.Need.MaxRate = money.Rate(rng.Int64N(4e12))
	}
	var options []Listing
	for i := range 1 + rng.IntN(6) {
		o := Listing{
			Offer: market.Offer{
				ID:       market.OfferID(rune('a' + i)),
				Capacity: market.Spot,
				CPUs:     1 + rng.IntN(4),
				Speed:    1,
			},
		}
		if rng.IntN(5) == 0 {
			o.Backoff = now.Add(time.Minute)
		}
		if rng.IntN(2) == 0 {
			o.Offer.Capacity = market.OnDemand
		}
		o.Quote = market.Quote{
			Offer:     o.Offer.ID,
			Rate:      money.Rate(1 + rng.Int64N(4e12)),
			Priced:    rng.IntN(6) > 0,
			Available: rng.IntN(3) > 0,
		}
		options = append(options, o)
	}
	if seed := rng.IntN(40); seed > 0 { // the default policy's tables are slow
		job.Rule = policy.Rules[seed%4]
	}
	if rng.IntN(2) == 0 {
		job.Held, job.HeldRate = options[rng.IntN(len(options))].Offer.ID, money.Rate(1+rng.Int64N(4e12))
	}
	return job, options
}

// classOf returns the class of a job in a market.
func classOf(job Job, sale []Listing) *Class {
	s := &Listings{}
	for _, l := range sale {
		s.Add(&l)
	}
	return NewClass(s, job.Need)
}

// decide decides with a new planner.
func decide(job Job, sale []Listing) Decision { return NewPlanner().Decide(job, classOf(job, sale)) }

func TestDecide_TakesAllowedOfferAndExplainsOthers(t *testing.T) {
	planner := NewPlanner()
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		job, options := draw(rng)
		d := decide(job, options)
		if d.Why == "" {
			t.Fatalf("seed %d: no reason", seed)
		}
		firm := false
		for _, o := range options {
			if o.Offer.ID == job.Held && !o.Quote.Priced {
				o.Quote.Rate, o.Quote.Priced = job.HeldRate, true
			}
			_, _, fits := job.Need.fit(nil, &o)
			firm = firm ||
				fits && o.Offer.Capacity != market.Spot &&
					(o.Quote.Available && !o.cools(now) || o.Offer.ID == job.Held)
			if o.Offer.ID != d.Take {
				continue
			}
			switch {
			case !fits:
				t.Fatalf("seed %d: %s does not fit", seed, o.Offer.ID)
			case !o.Quote.Priced:
				t.Fatalf("seed %d: bought at an unknown price", seed)
			case o.Offer.ID != job.Held && (!o.Quote.Available || o.cools(now)):
				t.Fatalf("seed %d: %s cannot be had", seed, o.Offer.ID)
			case o.Offer.ID != job.Held && job.Limited && !job.DeadlineFirst && o.Quote.Rate.Until(6*time.Minute).Cmp(job.Left) > 0:
				t.Fatalf("seed %d: beyond the budget", seed)
			case job.Need.Critical && o.Offer.Capacity == market.Spot:
				t.Fatalf("seed %d: a critical job on spot", seed)
			}
		}
		rejected := map[market.OfferID]bool{}
		for _, r := range d.Rejected {
			rejected[r.Offer] = r.Why != ""
		}
		others := 0
		for _, o := range options {
			if o.Offer.ID != d.Take {
				others++
			}
			if len(d.Counts) == 0 && o.Offer.ID != d.Take && !rejected[o.Offer.ID] {
				t.Fatalf("seed %d: %s was not taken and nobody says why", seed, o.Offer.ID)
			}
		}
		if n := tally(d.Counts).total(); n > 0 && (n != others || len(d.Rejected) != mostShown) {
			t.Fatalf("seed %d: of %d others %d are counted and %d shown", seed, others, n, len(d.Rejected))
		}
		if d.Mode == policy.Certain && firm && !job.Limited {
			for _, o := range options {
				if o.Offer.ID == d.Take && o.Offer.Capacity == market.Spot &&
					(o.Offer.ID != job.Held || !late(&job, &Option{speed: 1})) {
					t.Fatalf("seed %d: spot without slack, though firm capacity can be had", seed)
				}
			}
		}
		if warm := planner.Decide(job, classOf(job, options)); !reflect.DeepEqual(d, warm) {
			t.Fatalf("seed %d: what was thought of before changes the decision:\n%+v\n%+v", seed, d, warm)
		}
		rng.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
		if again := decide(job, options); !reflect.DeepEqual(d, again) {
			t.Fatalf("seed %d: the order of the options matters:\n%+v\n%+v", seed, d, again)
		}
	}
}

// market has one spot and one on-demand offer at these hourly prices; 0 means unavailable.
func offered(spot, firm float64) []Listing {
	option := func(id string, c market.Capacity, usd float64) Listing {
		rate := money.Rate(max(usd, 1) * 1e12)
		return Listing{
			Offer: market.Offer{ID: market.OfferID(id), Capacity: c, CPUs: 1, Speed: 1},
			Quote: market.Quote{Rate: rate, Priced: true, Available: usd > 0},
		}
	}
	return []Listing{option("spot", market.Spot, spot), option("firm", market.OnDemand, firm)}
}

// Work that is short relative to the table's steps takes available spot however far the deadline is, because
// waiting gains nothing.
func TestDecide_ShortWorkDoesNotWaitForFarDeadline(t *testing.T) {
	for _, deadline := range []time.Duration{10 * time.Minute, 3 * time.Hour, 24 * time.Hour, 60 * 24 * time.Hour} {
		for _, look := range []time.Duration{600 * time.Millisecond, 30 * time.Second, 10 * time.Minute} {
			job := Job{
				Progress: policy.Progress{
					Now:      now,
					Began:    now,
					Deadline: now.Add(deadline),
					Left:     35 * time.Second,
					Known:    true,
					Restart:  3 * time.Second,
					Detect:   look,
				},
			}
			if d := decide(job, offered(1, 3)); look < deadline/8 && d.Take != "spot" {
				t.Errorf("with a deadline in %v and a look every %v it takes %q: %s", deadline, look, d.Take, d.Why)
			}
		}
	}
}

func TestDecide_ExplainsEachChoice(t *testing.T) {
	hours := func(left, deadline, done float64) policy.Progress {
		d := func(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }
		return policy.Progress{
			Now:      now,
			Began:    now.Add(-time.Hour),
			Deadline: now.Add(d(deadline)),
			Left:     d(left),
			Known:    true,
			Done:     d(done),
			Restart:  6 * time.Minute,
			Reserve:  6 * time.Minute,
			Detect:   time.Minute,
		}
	}
	unknown := hours(0, 8, 0)
	unknown.Known = false
	endless := func(p policy.Progress) policy.Progress { p.Deadline = time.Time{}; return p }
	dearer := func(spot, firm float64) []Listing {
		list := offered(spot, firm)
		list[0].Low = Low{Rate: 1e12, Known: true}
		return list
	}
	gone := offered(1, 3)
	gone[0].Quote.Priced = false
	cases := []struct {
		name string
		job  Job
		sale []Listing
		take market.OfferID
		why  Reason
		not  Reason // why the other one was not taken
	}{
		{"spot is cheapest", Job{Progress: hours(3, 8, 3)}, offered(1, 3), "spot", Cheapest, CostsMore},
		{"spot is dearer than on-demand", Job{Progress: hours(3, 8, 3)}, offered(4, 3), "firm", Cheapest, CostsMore},
		{
			"it is, and nobody knows the work",
			Job{Progress: unknown, Held: "firm"},
			offered(4, 3),
			"firm",
			Stays,
			CostsMore,
		},
		{
			"cheap spot, and nobody knows the work",
			Job{Progress: unknown, Held: "firm"},
			offered(1, 3),
			"spot",
			Cheapest,
			CostsMore,
		},
		{"spot is gone, there is time", Job{Progress: hours(3, 8, 3)}, offered(0, 3), "", WaitsSpot, ""},
		{
			"spot is gone, behind the line",
			Job{Progress: hours(3, 8, 0), Rule: policy.UniformProgress},
			offered(0, 3),
			"firm",
			BehindPace,
			Unavailable,
		},
		{
			"spot is gone, but may come back in time",
			Job{Progress: hours(3, 8, 0)},
			offered(0, 3),
			"",
			WaitsSpot,
			NotYet,
		},
		{
			"spot is gone, and there is hardly time for its return",
			Job{Progress: hours(3, 3.4, 3)},
			offered(0, 3),
			"firm",
			WaitsMore,
			Unavailable,
		},
		{"no slack", Job{Progress: hours(3, 3.2, 3)}, offered(1, 3), "firm", SlackGone, TooRisky},
		{"no slack, on-demand is gone", Job{Progress: hours(3, 3.2, 3)}, offered(1, 0), "spot", Cheapest, Unavailable},
		{
			"no slack, on-demand is held",
			Job{Progress: hours(3, 3.2, 3), Held: "firm"},
			offered(1, 3),
			"firm",
			Stays,
			TooRisky,
		},
		{"moving would not pay", Job{Progress: hours(0.05, 8, 3), Held: "firm"}, offered(1, 3), "firm", Stays, Moving},
		{"moving pays", Job{Progress: hours(2, 8, 3), Held: "firm"}, offered(1, 3), "spot", Cheapest, CostsMore},
		{
			"nobody knows the price of what is held",
			Job{Progress: hours(3, 8, 3), Held: "spot", HeldRate: 1e12},
			gone,
			"spot",
			Stays,
			CostsMore,
		},
		{
			"its price rose over on-demand",
			Job{Progress: hours(3, 8, 3), Held: "spot"},
			offered(4, 3),
			"firm",
			Cheapest,
			CostsMore,
		},
		{
			"the budget is gone",
			Job{Progress: endless(hours(3, 8, 3)), Limited: true, Left: money.Picos(1e9)},
			offered(1, 3),
			"",
			BudgetGone,
			OverBudget,
		},
		{
			"the first minutes of spot are all that the budget allows",
			Job{Progress: endless(hours(3, 8, 3)), Limited: true, Left: money.Picos(2e11)},
			offered(0, 3),
			"",
			WaitsSpot,
			Unavailable,
		},
		{
			"the budget pays for spot to the end",
			Job{Progress: hours(3, 8, 3), Limited: true, Left: money.Picos(4e12)},
			offered(1, 3),
			"spot",
			Cheapest,
			OverBudget,
		},
		{
			"the budget pays for on-demand, and for a move to spot",
			Job{Progress: hours(3, 8, 3), Held: "firm", HeldRate: 3e12, Limited: true, Left: money.Picos(10e12)},
			offered(1, 3),
			"spot",
			Cheapest,
			CostsMore,
		},
		{
			"the same, but on-demand has a minimum charge that a move does not save",
			Job{Progress: hours(3, 8, 3), Held: "firm", HeldRate: 3e12, Limited: true, Left: money.Picos(10e12),
				DueElsewhere: money.Picos(8e12)},
			offered(1, 3),
			"firm",
			Stays,
			OverBudget,
		},
		{
			"the budget pays for spot only, and it is gone",
			Job{Progress: hours(3, 3.2, 3), Limited: true, Left: money.Picos(4e12)},
			offered(0, 3),
			"",
			BudgetWait,
			OverBudget,
		},
		{
			"the same, and the deadline comes first",
			Job{Progress: hours(3, 3.2, 3), Limited: true, DeadlineFirst: true, Left: money.Picos(4e12)},
			offered(0, 3),
			"firm",
			SlackGone,
			Unavailable,
		},
		{
			"the budget pays for on-demand to the end",
			Job{Progress: hours(3, 3.2, 3), Limited: true, Left: money.Picos(10e12)},
			offered(0, 3),
			"firm",
			SlackGone,
			Unavailable,
		},
		{
			"the budget does not pay for spot to the end",
			Job{Progress: hours(3, 8, 3), Limited: true, Left: money.Picos(2e12)},
			offered(1, 3),
			"",
			OutOfMoney,
			OverBudget,
		},
		{
			"the same, at a pace that was hardly seen yet",
			Job{Progress: hours(3, 8, 3), Limited: true, Rough: true, Left: money.Picos(2e12)},
			offered(1, 3),
			"spot",
			Cheapest,
			OverBudget,
		},
		{
			"the same, but a target may end it sooner",
			Job{Progress: hours(3, 8, 3), Limited: true, Sooner: true, Left: money.Picos(2e12)},
			offered(1, 3),
			"spot",
			Cheapest,
			CostsMore,
		},
		{
			"it does but for what an estimate may be off",
			Job{Progress: hours(3, 8, 3), Limited: true, Left: money.Picos(2.9e12)},
			offered(1, 3),
			"spot",
			Cheapest,
			OverBudget,
		},
		{
			"spot rose beyond the budget, and was cheaper",
			Job{Progress: hours(3, 8, 3), Limited: true, Left: money.Picos(4e12), Held: "spot"},
			dearer(2, 3),
			"",
			BudgetWait,
			OverBudget,
		},
		{
			"it works in spite of the deadline that nothing else meets",
			Job{Progress: hours(3, 2, 3), Held: "spot"},
			offered(1, 3),
			"spot",
			Stays,
			CostsMore,
		},
		{
			"a critical job",
			Job{Progress: hours(3, 8, 3), Need: Need{Critical: true}},
			offered(1, 3),
			"firm",
			ByRule,
			WrongKind,
		},
		{
			"on-demand by rule",
			Job{Progress: hours(3, 8, 3), Rule: policy.OnDemand},
			offered(1, 3),
			"firm",
			ByRule,
			TooRisky,
		},
		{
			"nothing fits",
			Job{Progress: hours(3, 8, 3), Need: Need{Requirements: Requirements{CPUs: 9}}},
			offered(1, 3),
			"",
			NoOffer,
			TooSmall,
		},
		{"all is gone", Job{Progress: hours(3, 3, 3)}, offered(0, 0), "", NoCapacity, Unavailable},
	}
	for _, c := range cases {
		d := decide(c.job, c.sale)
		if d.Take != c.take || d.Why != c.why {
			t.Errorf("%s: takes %q because %s, want %q because %s", c.name, d.Take, d.Why, c.take, c.why)
		}
		if c.not != "" && !slices.ContainsFunc(d.Rejected, func(r Rejection) bool { return r.Why == c.not }) {
			t.Errorf("%s: rejected %+v, want one because %s", c.name, d.Rejected, c.not)
		}
	}
}

// Whole accepts an expectation only if every number in it is finite.
func TestExpectWhole_RefusesNonFiniteNumbers(t *testing.T) {
	t.Parallel()
	usd := func(v float64) *float64 { return &v }
	good := Expect{Spot: usd(3), Chance: 0.5, Zones: []ZoneExpect{{USD: usd(2), Chance: 1}, {}}}
	if !good.Whole() {
		t.Errorf("%+v is whole", good)
	}
	for _, bad := range []Expect{
		{Chance: math.NaN()}, {Spot: usd(math.Inf(1))}, {Zones: []ZoneExpect{{Chance: math.NaN()}}}, {Zones: []ZoneExpect{{USD: usd(math.NaN())}}},
	} {
		if bad.Whole() {
			t.Errorf("%+v is not whole", bad)
		}
	}
}
