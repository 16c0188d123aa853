package serving_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
	"scrimp/internal/test/must"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

func named(t *testing.T, name string) shape.Model {
	t.Helper()
	m, ok := shape.Named(name)
	if !ok {
		t.Fatalf("no model %s", name)
	}
	return m
}

// chat is n requests, one a second, with so many tokens in and out.
func chat(n, in, out int) load.Trace {
	var t load.Trace
	for i := range n {
		t.At = append(t.At, time.Duration(i)*time.Second)
		t.In, t.Out = append(t.In, int32(in)), append(t.Out, int32(out))
	}
	t.Window = time.Duration(n) * time.Second
	return t
}

// Dollars are those of each span, by the second and at least the minimum: added up here in whole picos.
func TestCost_IsTheSumOverSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	rate, _ := money.ParseRate("0.8048")
	for range 50 {
		var o simulation.Outcome
		want := new(big.Int)
		for range r.IntN(20) {
			from := time.Duration(r.Int64N(1e15))
			took := time.Duration(r.Int64N(3e11))
			o.Spans = append(o.Spans, simulation.Span{From: from, To: from + took})
			// A minimum is a second line of the bill, cut off as part of the whole.
			billed := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(int64(max(took, time.Minute))))
			want.Add(want, billed.Quo(billed, big.NewInt(int64(time.Hour))))
		}
		if got := o.Cost(rate, market.Billing{Minimum: time.Minute}); got.Big().Cmp(want) != 0 {
			t.Errorf("%v: %s, want %s picos", o.Spans, got, want)
		}
	}
	nine, _ := money.ParseRate("0.09")
	if got := egress.Cost(2_500_000_000, nine); got.String() != "0.225" {
		t.Errorf("2.5 GB at $0.09 are %s", got)
	}
	sum, _ := money.Parse("3")
	if got, ok := serving.PerMillion(sum, 1_500_000); !ok || got.String() != "2" {
		t.Errorf("%s", got)
	}
	if _, ok := serving.PerMillion(sum, 0); ok {
		t.Error("a price of no tokens")
	}
}

const functions = `functions:
  - {name: fn, memory: 2GiB, per_request: 0.0000002, per_gib_second: 0.0000166667, cold_start: 3s, keep_alive: 60s,
     billed_in: 100ms, source: "example"}
`

// Three requests an hour apart, 120 ms each: by hand 3 · $0.0000002 + 2 GiB · (3 · 0.2 s + 3 · 3 s) · $0.0000166667.
func TestFunction_IsPaidByRequestAndByGiBSecond(t *testing.T) {
	list, err := serving.ReadFunctions("f.yaml", []byte(functions))
	must.Do(t, err)
	trace := load.Trace{At: []time.Duration{0, time.Hour, 2 * time.Hour}, Window: 2 * time.Hour}
	o := simulation.NewSimulation(trace, flat(120*ms), 1, nil).Run(list[0].Rule())
	if o.Colds != 3 || o.Quantiles[990] != 3120*ms {
		t.Errorf("%+v", o)
	}
	if got := list[0].Cost(trace, flat(120*ms), o); got.String() != "0.00032060064" {
		t.Errorf("%s", got)
	}
	for text, says := range map[string]string{
		"functions: []":   "lists 0 functions",
		"functions: [{}]": "`functions[0].name` is missing",
		"functions:\n  - {name: a, memory: 2, per_request: -1, per_gib_second: 10%, cold_start: soon, source: s}": "f.yaml:2",
		"price: 1": "`price` is not known here",
	} {
		if _, err := serving.ReadFunctions("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// listing is an offer of one accelerator at a dollar an hour.
func listing(provider, machine, accelerator string, count int, price string) catalog.Listing {
	l := catalog.Listing{}
	l.Offer = market.Offer{ID: market.OfferID(provider + "/r/" + machine + "/on-demand"), Provider: provider, Region: "r",
		Machine: machine, Capacity: market.OnDemand, Accelerator: accelerator, Accelerators: count, Currency: money.USD,
		Billing: market.Billing{Minimum: time.Minute}}
	l.Quote.Rate, _ = money.ParseRate(price)
	l.Quote.Priced, l.Quote.Source = true, "example"
	return l
}

func play(t *testing.T, list []catalog.Listing, ask serving.Ask) *serving.Plan {
	t.Helper()
	if ask.Options.Machines == 0 {
		ask.Options.Machines = 16
	}
	if ask.Options.Kinds == nil {
		ask.Options.Kinds = simulation.Kinds
	}
	p, err := serving.NewPlan(catalog.Catalog{}, list, ask)
	must.Do(t, err)
	for i := range p.Runs() {
		p.Play(i)
	}
	return p
}

// steady is a Poisson trace of requests for an hour.
func steady(rate float64) load.Trace {
	return poisson(rand.New(rand.NewPCG(1, 1)), int(3600*rate), rate)
}

// A fixed rule has the fewest machines that meet the target: one machine less misses it.
func TestPlan_TakesTheFewestMachinesThatMeetTheTarget(t *testing.T) {
	trace := steady(20)
	targets := []simulation.Target{{PerMille: 990, Limit: 400 * ms}}
	ask := serving.Ask{Trace: trace, Measured: map[string]load.Measured{"l4": {{Batch: 1, Seconds: 0.2}, {Batch: 8, Seconds: 0.4}}},
		Options: serving.Options{Targets: targets, Kinds: []simulation.Kind{simulation.Fixed}}}
	c := play(t, []catalog.Listing{listing("a", "m", "L4", 1, "1")}, ask).Choices()
	if len(c) != 1 || !c[0].Met {
		t.Fatalf("%+v", c)
	}
	n := c[0].Outcome.Rule.Max
	for machines, meets := range map[int]bool{n: true, n - 1: false} {
		o := simulation.NewSimulation(trace, ask.Measured["l4"], 1, nil).Run(simulation.Rule{Batch: 1, Min: machines, Max: machines})
		if o.Meets(targets) != meets {
			t.Errorf("%d machines: p99 %v", machines, o.Quantiles[990])
		}
	}
}

// Batches that share their time need fewer machines, so the batched rule costs less; it comes first.
func TestPlan_PutsTheCheapestRuleThatMeetsTheTargetFirst(t *testing.T) {
	ask := serving.Ask{Trace: steady(20), Measured: map[string]load.Measured{"l4": {{Batch: 1, Seconds: 0.2}, {Batch: 16, Seconds: 0.3}}},
		Options: serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: 2 * time.Second}}, Cold: time.Minute}}
	list := play(t, []catalog.Listing{listing("a", "dear", "L4", 1, "2"), listing("b", "cheap", "L4", 1, "1")}, ask).Choices()
	if k := list[0].Outcome.Rule.Kind; k == simulation.Fixed || list[0].Listing.Offer.Machine != "cheap" || list[0].Outcome.Rule.Batch < 2 {
		t.Errorf("%v on %s", list[0].Outcome.Rule, list[0].Name())
	}
	for i, c := range list {
		if !c.Met || i > 0 && c.Total.Cmp(list[i-1].Total) < 0 {
			t.Errorf("%d: %v for %s after %s", i, c.Outcome.Rule, c.Total, list[max(0, i-1)].Total)
		}
		if c.Outcome.Requests != len(ask.Trace.At) {
			t.Errorf("%v answers %d of %d requests", c.Outcome.Rule, c.Outcome.Requests, len(ask.Trace.At))
		}
	}
}

// With one burst a day, scale to zero costs least if a cold start is within the target, and is not offered otherwise.
func TestPlan_ScalesToZeroOnlyWithinTheTarget(t *testing.T) {
	var trace load.Trace
	for day := range 3 {
		for i := range 50 {
			trace.At = append(trace.At, time.Duration(day)*24*time.Hour+9*time.Hour+time.Duration(i)*time.Second)
		}
	}
	trace.Window = 72 * time.Hour
	trace.Start = 0
	for limit, kind := range map[time.Duration]simulation.Kind{2 * time.Minute: simulation.ScaleToZero, time.Second: simulation.WarmHours} {
		ask := serving.Ask{Trace: trace, Measured: map[string]load.Measured{"l4": {{Batch: 1, Seconds: 0.2}}},
			Options: serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: limit}}, Cold: time.Minute,
				Keep: 5 * time.Minute, Warm: load.Hours{From: 8, To: 10}}}
		c := play(t, []catalog.Listing{listing("a", "m", "L4", 1, "1")}, ask).Choices()
		if got := c[0].Outcome.Rule.Kind; got != kind {
			t.Errorf("%v: %v comes first", limit, c[0].Outcome.Rule)
		}
	}
}

// Where no rule meets the target the one that comes nearest is first, and says by how much it misses.
func TestPlan_NamesTheNearestWhereNothingMeetsTheTarget(t *testing.T) {
	ask := serving.Ask{Trace: steady(2), Measured: map[string]load.Measured{"l4": {{Batch: 1, Seconds: 0.2}, {Batch: 4, Seconds: 0.8}}, "t4": {{Batch: 1, Seconds: 0.5}}},
		Options: serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: 100 * ms}}}}
	c := play(t, []catalog.Listing{listing("a", "t", "T4", 1, "1"), listing("a", "l", "L4", 1, "1")}, ask).Choices()
	if len(c) != 2 || c[0].Met || c[0].Listing.Offer.Machine != "l" || c[0].Outcome.Miss(ask.Options.Targets) != 2 {
		t.Errorf("%+v", c)
	}
}

func TestNewPlan_SaysWhyNothingServesTheModel(t *testing.T) {
	model := named(t, "llama-3.1-405b")
	ask := serving.Ask{Trace: chat(3, 10, 10), Model: &model, Formats: load.Formats}
	_, err := serving.NewPlan(catalog.Catalog{}, []catalog.Listing{listing("a", "m", "L4", 4, "1")}, ask)
	if err == nil || !strings.Contains(err.Error(), "the model needs 234.3 GB in int4") || !strings.Contains(err.Error(), "has 96.6 GB") {
		t.Errorf("%v", err)
	}
	ask = serving.Ask{Trace: chat(3, 10, 10), Measured: map[string]load.Measured{"h100": {{Batch: 1, Seconds: 1}}}}
	_, err = serving.NewPlan(catalog.Catalog{}, []catalog.Listing{listing("a", "m", "L4", 4, "1")}, ask)
	if err == nil || !strings.Contains(err.Error(), `"h100", which is no accelerator or machine of the catalogue`) {
		t.Errorf("%v", err)
	}
}

func TestParseTargets_SaysWhatIsWrong(t *testing.T) {
	list, err := simulation.ParseTargets("p50<=50ms, p99.9 <= 2s,p90<=24h,p95<=90s")
	if err != nil || len(list) != 4 || list[2].String() != "p90<=24h" || list[3].String() != "p95<=1m30s" || list[0].String() != "p50<=50ms" || list[1].String() != "p99.9<=2s" {
		t.Errorf("%v %v", list, err)
	}
	for _, text := range []string{"", "300ms", "p99<300ms", "p98<=1s", "p99<=0s", "p99<=-1s", "p99<=1e300h", "p99<=1s,p99<=2s",
		"p99<=NaN"} {
		if list, err := simulation.ParseTargets(text); err == nil {
			t.Errorf("%q: %v", text, list)
		}
	}
	for text, says := range map[string]string{
		"p99<=20":         "20 has no unit, such as ms, s or m",
		"p99<20s":         "it has no <=",
		"p98<=20s":        `the quantile "p98" is none of p50`,
		"p99<=soon":       `"soon" is not a span of time`,
		"p99<=1s,P99<=2s": `"P99<=2s" is no bound on the latency: a quantile has one bound, and this is the second`,
		"p99<=9601h":      "at most 9600h",
	} {
		if _, err := simulation.ParseTargets(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if list, err := simulation.ParseTargets(" P99 <= 20 s "); err != nil || list[0] != (simulation.Target{PerMille: 990, Limit: 20 * time.Second}) {
		t.Errorf("%v %v", list, err)
	}
}

// One million requests under each kind of rule, for the time that a run takes.
func BenchmarkRun(b *testing.B) {
	const n = 1_000_000
	trace := poisson(rand.New(rand.NewPCG(1, 1)), n, 100)
	for name, rule := range map[string]simulation.Rule{
		"fixed":         {Batch: 1, Min: 16, Max: 16},
		"batched":       {Batch: 8, Wait: 20 * ms, Min: 8, Max: 8},
		"scale-to-zero": {Batch: 8, Max: 16, Cold: time.Minute, Keep: 5 * time.Minute, Poll: 15 * time.Second},
	} {
		b.Run(name, func(b *testing.B) {
			s := simulation.NewSimulation(trace, affine{50 * ms, 5 * ms}, 1, nil)
			for b.Loop() {
				if o := s.Run(rule); o.Requests != n {
					b.Fatalf("%d of %d answered", o.Requests, n)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
