package rank_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/rank"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func rate(s string) money.Rate {
	r, err := money.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

// sold returns an offer in zone us-a with n accelerators of a kind.
func sold(kind string, n int, c market.Capacity, price string) catalog.Listing {
	o := market.Offer{Provider: "x", Region: "us", Zone: "us-a", Machine: fmt.Sprintf("%s-%d", kind, n), Capacity: c,
		CPUs: 8, Accelerator: kind, Accelerators: n, Currency: money.USD}
	o.ID = market.ID(o)
	l := catalog.Listing{Offer: o, AcceleratorMemory: 80 * size.GB,
		Quote: market.Quote{Offer: o.ID, At: now, Source: "test"}}
	if price != "" {
		l.Quote.Rate, l.Quote.Priced = rate(price), true
	}
	return l
}

// takes returns an estimate: the hours for 3600 units of work on each kind.
func takes(hours map[string]rank.Range) func(rank.Shape, int) (rank.Estimate, bool) {
	return func(s rank.Shape, _ int) (rank.Estimate, bool) {
		h, ok := hours[s.Accelerator]
		fits := true
		return rank.Estimate{Rate: rank.Range{Low: 1 / h.High, Value: 1 / h.Value, High: 1 / h.Low}, Fits: &fits,
			Source: "told"}, ok
	}
}

func near(a, b, rel float64) bool { return math.Abs(a-b) <= rel*max(math.Abs(a), math.Abs(b)) }

func id(p rank.Plan) string { return strings.TrimSuffix(p.Offer.Offer.Machine, "-1") }

func TestRank_SlowMachineWinsUnlessTheDeadlineIsTight(t *testing.T) {
	q := rank.Request{
		Offers:   []catalog.Listing{sold("fast", 1, market.OnDemand, "4.00"), sold("slow", 1, market.OnDemand, "1.40")},
		Estimate: takes(map[string]rank.Range{"fast": rank.Exactly(1), "slow": rank.Exactly(2.2)}), Work: 3600, Now: now,
	}
	for deadline, want := range map[time.Duration]string{0: "slow", 3 * time.Hour: "slow", 132 * time.Minute: "slow",
		131 * time.Minute: "fast", time.Hour: "fast"} {
		q.Deadline = deadline
		a := rank.Rank(q)
		if !a.Feasible || id(a.Plans[0]) != want {
			t.Fatalf("deadline %v: %+v, want %s", deadline, a.Plans, want)
		}
		cost := map[string]float64{"fast": 4, "slow": 3.08}[want]
		if !near(a.Plans[0].Cost.Value, cost, 1e-12) {
			t.Errorf("%s costs %v, want %v", want, a.Plans[0].Cost, cost)
		}
		if want == "slow" && (len(a.Plans) != 2 || len(a.Recommendations) != 0) {
			t.Errorf("deadline %v: %+v", deadline, a)
		}
		if want == "fast" { // the rejected option, and the time that it needs
			if len(a.Rejected) != 1 || a.Rejected[0].Why != rank.TooSlow {
				t.Errorf("rejected %+v", a.Rejected)
			}
			if len(a.Recommendations) != 1 || a.Recommendations[0].Name != rank.LaterDeadline ||
				!near(a.Recommendations[0].Saves.Value, 0.92, 1e-9) || !near(a.Recommendations[0].Hours, 2.2, 1e-9) {
				t.Errorf("recommendations %+v", a.Recommendations)
			}
		}
	}
	q.Deadline = 30 * time.Minute
	a := rank.Rank(q)
	if a.Feasible || len(a.Nearest) != 1 || a.Nearest[0].Wish != "deadline" || !near(a.Nearest[0].Hours, 1, 1e-9) ||
		id(a.Nearest[0].Plan) != "fast" {
		t.Errorf("half an hour: %+v", a.Nearest)
	}
}

// TestRank_DeadlineDecidesAmongGenerations follows the published LoRA runs of Llama-2-70B on eight H100, H200 and
// B200: about the same cost, a factor of 2.2 in time.
func TestRank_DeadlineDecidesAmongGenerations(t *testing.T) {
	q := rank.Request{
		Offers: []catalog.Listing{sold("H100", 8, market.OnDemand, "24"), sold("H200", 8, market.OnDemand, "29"),
			sold("B200", 8, market.OnDemand, "53")},
		Estimate: takes(map[string]rank.Range{"H100": rank.Exactly(2.2), "H200": rank.Exactly(1.85),
			"B200": rank.Exactly(1)}), Work: 3600, Now: now,
	}
	a := rank.Rank(q)
	if len(a.Plans) != 3 {
		t.Fatalf("%+v", a)
	}
	low, high := a.Plans[0].Cost.Value, a.Plans[2].Cost.Value
	if high > 1.05*low {
		t.Errorf("cost %v to %v: not about the same", low, high)
	}
	for hours, want := range map[float64]string{3: "H100", 2: "B200", 1.9: "B200", 1.2: "B200", 1: "B200"} {
		q.Deadline = time.Duration(hours * float64(time.Hour))
		if got := rank.Rank(q).Plans[0].Offer.Offer.Accelerator; got != want {
			t.Errorf("in %v h: %s, want %s", hours, got, want)
		}
	}
	if f := rank.Rank(rank.Request{Offers: q.Offers, Estimate: q.Estimate, Work: 3600, Now: now}).Frontier; len(f) !=
		2 || f[0].Hours != 1 || !near(f[1].Hours, 2.2, 1e-9) {
		t.Errorf("frontier %+v", f)
	}
}

// TestCatalog_PricesOfThreeGenerationsMatchTheirSpeeds uses the prices of the embedded catalog: the three cost
// about the same, and differ by a factor of 2.2 in time.
func TestCatalog_PricesOfThreeGenerationsMatchTheirSpeeds(t *testing.T) {
	a := rank.Rank(rank.Request{
		Offers: catalog.Builtin().Listings,
		Requirements: catalog.Filter{Providers: []string{"aws"},
			Machines: []string{"p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"}}, Work: 3600, Now: now,
		Estimate: takes(map[string]rank.Range{"H100-SXM-80GB": rank.Exactly(2.2), "H200-SXM": rank.Exactly(1.85),
			"B200-SXM": rank.Exactly(1)}),
	})
	if len(a.Plans) != 3 {
		t.Fatalf("%+v", a.Plans)
	}
	if low, high := a.Plans[0].Cost.Value, a.Plans[2].Cost.Value; high > 1.1*low {
		t.Errorf("$%.2f to $%.2f: not about the same", low, high)
	}
	for _, p := range a.Plans {
		if !p.Stale {
			t.Errorf("%s: a price of %s is fresh on %s", p.ID, p.Offer.Quote.At, now)
		}
	}
}

func TestRank_StatesWhyEachOptionWasRejected(t *testing.T) {
	no := false
	offers := []catalog.Listing{
		sold("best", 1, market.OnDemand, "1"), sold("dear", 1, market.OnDemand, "2"),
		sold("free", 1, market.OnDemand, ""), sold("euro", 1, market.OnDemand, "0.5"), sold("far", 1, market.OnDemand, "0.5"),
		sold("tiny", 1, market.OnDemand, "0.5"), sold("new", 1, market.OnDemand, "0.5"),
		sold("slow", 1, market.OnDemand, "0.1"), sold("lavish", 1, market.OnDemand, "9"),
		sold("luxury", 1, market.OnDemand, "30"),
		sold("best", 4, market.OnDemand, "0.5"), sold("spotty", 1, market.Spot, "0.1"), sold("brief", 1, market.Spot, "0.2"),
	}
	offers[3].Offer.Currency = "EUR"
	offers[4].Offer.Region, offers[4].Offer.Zone = "eu", "eu-a"
	offers[12].Offer.MaxLifetime = 30 * time.Second
	one := rank.Exactly(1)
	known := takes(map[string]rank.Range{"best": one, "dear": one, "free": one, "euro": one, "far": one, "tiny": one,
		"slow": rank.Exactly(50), "lavish": one, "luxury": one, "spotty": one, "brief": one})
	q := rank.Request{
		Offers: offers, Work: 3600, Now: now, Deadline: 10 * time.Hour, Budget: figure.Known(5), Checkpoints: true,
		Resume: 2 * time.Minute, Save: 20 * time.Second, Storage: figure.Known(0),
		Requirements: catalog.Filter{Least: 1, Most: 1, Regions: []string{"us*"}, MaxRate: rate("20"),
			Capacity: []market.Capacity{market.OnDemand}},
		Estimate: func(s rank.Shape, v int) (rank.Estimate, bool) {
			e, ok := known(s, v)
			if s.Accelerator == "tiny" {
				e.Fits = &no
			}
			return e, ok
		},
	}
	want := map[string]rank.Reason{
		"free": rank.Unpriced, "euro": rank.OtherCurrency, "far": rank.WrongPlace, "tiny": rank.DoesNotFit,
		"new": rank.NoEstimate, "slow": rank.TooSlow, "lavish": rank.OverBudget, "luxury": rank.OverPrice,
		"best-4": rank.OtherMachine, "spotty": rank.WrongKind, "brief": rank.WrongKind,
	}
	a := rank.Rank(q)
	if len(a.Plans) != 2 || id(a.Plans[0]) != "best" || id(a.Plans[1]) != "dear" {
		t.Fatalf("%+v", a.Plans)
	}
	for _, r := range a.Rejected {
		if want[id(r.Plan)] != r.Why {
			t.Errorf("%s: %s, want %s", id(r.Plan), r.Why, want[id(r.Plan)])
		}
		delete(want, id(r.Plan))
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v", want)
	}
	sum := 0
	for why, n := range a.Counts {
		if !slices.Contains(rank.Reasons, why) {
			t.Errorf("%s is no reason", why)
		}
		sum += n
	}
	if sum+1 != a.Considered || a.Considered != len(offers) || a.Counts[rank.CostsMore] != 1 {
		t.Errorf("%d options, %v", a.Considered, a.Counts)
	}
	q.Requirements.Capacity = nil
	for _, r := range rank.Rank(q).Rejected {
		if id(r.Plan) == "brief" && r.Why != rank.InterruptedTooOften {
			t.Errorf("interrupted every half minute: %s", r.Why)
		}
	}
	names := map[string]bool{}
	for _, l := range a.Recommendations {
		names[l.Name] = true
		if l.Saves == nil || l.Saves.Value <= 0 {
			t.Errorf("%s saves %v", l.Name, l.Saves)
		}
	}
	if !names[rank.Elsewhere] || !names[rank.OtherCapacity] {
		t.Errorf("recommendations %v", names)
	}
}

func TestRecommendation_IsNeverChosen(t *testing.T) {
	q := rank.Request{
		Offers: []catalog.Listing{sold("gpu", 1, market.OnDemand, "2")}, Work: 3600, Now: now,
		Variants: []rank.Variant{{Name: "as it stands"}, {Name: "bf16", Recommendation: "mixed precision"},
			{Name: "early", Recommendation: "early stopping", Work: 0.8}, {Name: "slower", Recommendation: "slower"}},
		Estimate: func(_ rank.Shape, v int) (rank.Estimate, bool) {
			fits := true
			return rank.Estimate{Rate: rank.Exactly([]float64{1, 2, 1, 0.5}[v]), Fits: &fits}, true
		},
	}
	a := rank.Rank(q)
	if len(a.Plans) != 1 || a.Plans[0].Variant != "as it stands" || a.Counts[rank.NotAllowed] != 3 {
		t.Fatalf("%+v", a)
	}
	if len(a.Recommendations) != 2 || a.Recommendations[0].Name != "mixed precision" ||
		!near(a.Recommendations[0].Saves.Value, 1, 1e-9) ||
		a.Recommendations[1].Name != "early stopping" || !near(a.Recommendations[1].Saves.Value, 0.4, 1e-9) {
		t.Errorf("%+v", a.Recommendations)
	}
	q.Deadline = 40 * time.Minute
	a = rank.Rank(q)
	if a.Feasible || len(a.Recommendations) == 0 || a.Recommendations[0].Name != "mixed precision" ||
		a.Recommendations[0].Saves != nil {
		t.Errorf("what would make it feasible: %+v", a.Recommendations)
	}
}

func TestRank_InfeasibleRequestNamesTheNearestFeasible(t *testing.T) {
	q := rank.Request{
		Offers: []catalog.Listing{sold("fast", 1, market.OnDemand, "10"), sold("mid", 1, market.OnDemand, "3"),
			sold("slow", 1, market.OnDemand, "1")},
		Estimate: takes(map[string]rank.Range{"fast": rank.Exactly(1), "mid": rank.Exactly(2),
			"slow": rank.Exactly(4)}), Work: 3600, Now: now,
		Deadline: 90 * time.Minute, Budget: figure.Known(5),
	}
	a := rank.Rank(q)
	want := []struct {
		wish string
		id   string
		cost float64
		by   float64
	}{{"budget", "fast", 10, 0}, {"deadline", "slow", 4, 4}}
	if a.Feasible || len(a.Nearest) != len(want) {
		t.Fatalf("%+v", a.Nearest)
	}
	for i, w := range want {
		n := a.Nearest[i]
		if n.Wish != w.wish || id(n.Plan) != w.id || !near(n.Cost, w.cost, 1e-9) || !near(n.Hours, w.by, 1e-9) {
			t.Errorf("%+v, want %+v", n, w)
		}
	}
	for _, n := range a.Nearest { // each of them is feasible
		fixed := q
		if n.Wish == "budget" {
			fixed.Budget = figure.Known(n.Cost)
		} else {
			fixed.Deadline = time.Duration(math.Ceil(n.Hours * float64(time.Hour)))
		}
		if !rank.Rank(fixed).Feasible {
			t.Errorf("%s is not enough", n.Wish)
		}
	}
	q.Budget = figure.Known(1)
	q.Deadline = 30 * time.Minute
	if a := rank.Rank(q); len(a.Nearest) != 1 || a.Nearest[0].Wish != "both" || id(a.Nearest[0].Plan) != "slow" {
		t.Errorf("%+v", a.Nearest)
	}
}

func TestOdds_FollowTheInterval(t *testing.T) {
	q := rank.Request{
		Offers:   []catalog.Listing{sold("gpu", 1, market.OnDemand, "1")},
		Estimate: takes(map[string]rank.Range{"gpu": {Low: 8, Value: 10, High: 12.5}}), Work: 3600, Now: now, Promise: 0.01,
	}
	for deadline, odds := range map[float64]float64{8: 0.1, 10: 0.5, 12.5: 0.9} {
		q.Deadline = time.Duration(deadline * float64(time.Hour))
		a := rank.Rank(q)
		if !a.Feasible || a.Plans[0].Chance == nil || math.Abs(*a.Plans[0].Chance-odds) > 1e-6 {
			t.Errorf("in %v h: %+v, want %v", deadline, a.Plans, odds)
		}
	}
	q.Deadline = 0
	p := rank.Rank(q).Plans[0]
	if p.Chance != nil || !near(p.Hours.Low, 8, 1e-9) || !near(p.Cost.High, 12.5, 1e-9) {
		t.Errorf("%+v", p)
	}
	q.Promise, q.Deadline = 0.9, 11*time.Hour
	a := rank.Rank(q)
	if a.Feasible || len(a.Nearest) != 1 || !near(a.Nearest[0].Hours, 12.5, 1e-6) {
		t.Errorf("nine of ten: %+v", a.Nearest)
	}
}

// simulate simulates a spot run: machine lifetimes are exponential, and every interval is saved.
func simulate(r *rand.Rand, work, between, start, resume, gap, save, tau float64, checkpoints bool) (hours,
	held float64) {
	t, paid, done, begin := 0.0, 0.0, 0.0, start
	for {
		life := r.ExpFloat64() * between
		left := work - done
		need := begin + left
		if checkpoints {
			need += math.Floor(left/tau) * save
		}
		if life >= need {
			return t + need, paid + need
		}
		t, paid = t+life, paid+life
		if checkpoints && life > begin {
			done += math.Floor((life-begin)/(tau+save)) * tau
		}
		t += gap
		begin = resume
	}
}

func TestSpotCourse_MatchesASimulation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		hours       float64
		between     time.Duration
		checkpoints bool
		tolerance   float64
	}{{10, 4 * time.Hour, true, 0.01}, {40, 2 * time.Hour, true, 0.01}, {3, 30 * time.Minute, true, 0.03},
		{4, 4 * time.Hour, false, 0.03}, {1, 8 * time.Hour, false, 0.02}} {
		o := sold("gpu", 1, market.Spot, "1")
		served := 99*c.between - 4*time.Hour // the prior and 98 interruptions give this mean
		q := rank.Request{
			Offers: []catalog.Listing{o}, Estimate: takes(map[string]rank.Range{"gpu": rank.Exactly(c.hours)}),
			Work: 3600, Now: now, Checkpoints: c.checkpoints, Storage: figure.Known(0),
			Hazards: map[market.OfferID]policy.Hazard{o.Offer.ID: {Lost: 98, Served: served}}, Start: 6 * time.Minute,
			Resume: 6 * time.Minute, Gap: 10 * time.Minute, Save: 30 * time.Second,
		}
		p := rank.Rank(q).Plans[0]
		sum, paid, n := 0.0, 0.0, 20_000
		for range n {
			h, held := simulate(r, c.hours, c.between.Hours(), 0.1, 0.1, 1.0/6, 30.0/3600, p.IntervalS/3600, c.checkpoints)
			sum, paid = sum+h, paid+held
		}
		if !near(sum/float64(n), p.Hours.Value, c.tolerance) || !near(paid/float64(n), p.Cost.Value, c.tolerance) {
			t.Errorf("%v h on machines that last %v, checkpoints %v: %.3f h for $%.3f; simulated %.3f h for $%.3f",
				c.hours, c.between, c.checkpoints, p.Hours.Value, p.Cost.Value, sum/float64(n), paid/float64(n))
		}
	}
}

func TestSpotCourse_FallsBackToOnDemandWithoutSlack(t *testing.T) {
	spot, onDemand := sold("gpu", 1, market.Spot, "1"), sold("gpu", 1, market.OnDemand, "3")
	q := rank.Request{
		Offers: []catalog.Listing{spot, onDemand}, Estimate: takes(map[string]rank.Range{"gpu": rank.Exactly(10)}),
		Work: 3600, Now: now, Checkpoints: true, Resume: 6 * time.Minute, Save: 30 * time.Second, Storage: figure.Known(0),
	}
	var before float64
	// the nearer the deadline, the larger the on-demand part
	for i, hours := range []float64{40, 14, 12, 11, 10.5, 10.2} {
		q.Deadline = time.Duration(hours * float64(time.Hour))
		a := rank.Rank(q)
		p := a.Plans[0]
		if p.Offer.Offer.Capacity != market.Spot || *p.Chance < 0.9 || p.Cost.Value > 30.0001 {
			t.Fatalf("in %v h: %+v", hours, p)
		}
		if i > 0 && p.Cost.Value < before {
			t.Errorf("in %v h it costs %v, in more %v", hours, p.Cost.Value, before)
		}
		if hours < 12 && p.Fallback != onDemand.Offer.ID {
			t.Errorf("in %v h falls back to %q", hours, p.Fallback)
		}
		before = p.Cost.Value
	}
	q.Offers = q.Offers[:1]
	q.Deadline = 10*time.Hour + 30*time.Minute
	if a := rank.Rank(q); a.Feasible || a.Rejected[0].Why != rank.TooSlow {
		t.Errorf("spot alone: %+v", a.Plans)
	}
}

// Data in a provider's store costs less to its other regions of the continent than elsewhere, and nothing within
// its region. The cost across an ocean is unknown.
func TestTransfer_CostDependsOnTheDestination(t *testing.T) {
	for where, want := range map[string]float64{"aws us-east-1": 0, "aws us-west-2": 2, "aws eu-west-1": -1,
		"gcp us-central1": 9, "gcp us-east-1": 9} {
		provider, region, _ := strings.Cut(where, " ")
		o := sold("gpu", 1, market.OnDemand, "1")
		o.Offer.Provider, o.Offer.Region = provider, region
		p := rank.Rank(rank.Request{
			Offers: []catalog.Listing{o}, Work: 3600, Now: now, Checkpoints: true, Kept: 730 * size.GB,
			PerGBMonth: map[string]float64{"aws": 0.02, "gcp": 0.02},
			Data: rank.Data{Size: 100 * size.GB, Origin: egress.Origin{Region: "us-east-1", Provider: "aws",
				Out: new(money.Rate(9e10)), Near: new(money.Rate(2e10))}},
			Estimate: func(rank.Shape, int) (rank.Estimate, bool) { return rank.Estimate{Rate: rank.Exactly(1)}, true },
		}).Plans[0]
		unknown := slices.Contains(p.Missing, "transfer")
		// an hour of 730 GB at 2 cents per month
		if unknown != (want < 0) || !near(p.Cost.Value, 1+max(0, want)+0.02, 1e-9) {
			t.Errorf("%s: %v without %v, want $%g more", where, p.Cost, p.Missing, want)
		}
		if !near(p.Data, max(0, want), 1e-9) || !near(p.Stored, 0.02, 1e-9) {
			t.Errorf("%s: of it data %v and checkpoints %v", where, p.Data, p.Stored)
		}
	}
}

func TestRank_NamesUnknownCosts(t *testing.T) {
	o := sold("gpu", 1, market.OnDemand, "1")
	q := rank.Request{
		Offers: []catalog.Listing{o}, Work: 3600, Now: now, Checkpoints: true,
		Data:     rank.Data{Size: 100 * size.GB, Origin: egress.Origin{Region: "eu"}},
		Estimate: func(rank.Shape, int) (rank.Estimate, bool) { return rank.Estimate{Rate: rank.Exactly(1)}, true },
	}
	p := rank.Rank(q).Plans[0]
	if got := strings.Join(p.Missing, " "); got != "memory transfer storage" || p.Stale {
		t.Errorf("missing %q, stale %v", got, p.Stale)
	}
	q.Data.Out, q.Storage = new(money.Rate(2e10)), figure.Known(0.5)
	if p := rank.Rank(q).Plans[0]; !near(p.Cost.Value, 1+2+0.5, 1e-9) {
		t.Errorf("with transfer and storage: %v", p.Cost)
	}
	q.Offers[0].Quote.At = time.Time{}
	if !rank.Rank(q).Plans[0].Stale {
		t.Error("a price of unknown age is not marked")
	}
	for _, bad := range []rank.Range{{}, {Low: -1, Value: 1, High: 2}, {Low: 1, Value: math.NaN(), High: 2},
		{Low: 1, Value: 2, High: math.Inf(1)}, {Low: 3, Value: 2, High: 4}, rank.Exactly(1e-300)} {
		q.Estimate = func(rank.Shape, int) (rank.Estimate, bool) { return rank.Estimate{Rate: bad}, true }
		if a := rank.Rank(q); a.Feasible || a.Rejected[0].Why != rank.NoEstimate {
			t.Errorf("rate %v: %+v", bad, a)
		}
	}
	if a := rank.Rank(rank.Request{}); a.Feasible || a.Considered != 0 {
		t.Errorf("nothing: %+v", a)
	}
}
