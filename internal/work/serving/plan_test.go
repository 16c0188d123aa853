package serving_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving"
)

func named(t *testing.T, name string) shape.Model {
	t.Helper()
	m, ok := shape.Named(name)
	if !ok {
		t.Fatalf("no model %s", name)
	}
	return m
}

func chip(t *testing.T, name string) catalog.Accelerator {
	t.Helper()
	a, ok := catalog.Find(name)
	if !ok {
		t.Fatalf("no accelerator %s", name)
	}
	return a
}

// chat is n requests, one a second, with so many tokens in and out.
func chat(n, in, out int) serving.Trace {
	var t serving.Trace
	for i := range n {
		t.At = append(t.At, time.Duration(i)*time.Second)
		t.In, t.Out = append(t.In, int32(in)), append(t.Out, int32(out))
	}
	t.Window = time.Duration(n) * time.Second
	return t
}

// Small models fit on a T4 or an L4, medium ones on an A10G or in 8 bits, large ones on several A100 or in 8 bits. The memory is
// parameters × bytes and, for each token of the longest request, 2 × layers × key heads × width × 2 bytes.
func TestFits_SizesModelsByMemoryAndFormat(t *testing.T) {
	for _, x := range []struct {
		model, chip string
		count       int
		format      string
		shards      int
		params, kv  float64
		bytes       float64
	}{
		{"llama-3.2-3b", "T4", 1, "fp16", 1, 3.21e9, 2 * 28 * 8 * 128 * 2, 2},
		{"llama-3-8b", "T4", 1, "int8", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 1},
		{"llama-3-8b", "L4", 1, "fp16", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 2},
		{"llama-3-8b", "A10G", 1, "fp16", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 2},
		{"llama-2-13b", "A10G", 1, "int8", 1, 13.02e9, 2 * 40 * 40 * 128 * 2, 1},
		{"llama-2-13b", "A100-SXM-80GB", 1, "fp16", 1, 13.02e9, 2 * 40 * 40 * 128 * 2, 2},
		{"llama-3-70b", "A100-SXM-80GB", 1, "int8", 1, 70.6e9, 2 * 80 * 8 * 128 * 2, 1},
		{"llama-3-70b", "A100-SXM-80GB", 8, "fp16", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, 2},
		{"llama-3-70b", "A100-SXM-40GB", 2, "int8", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, 1},
		{"llama-3-70b", "L4", 2, "int4", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, (4 + 20.0/128) / 8},
	} {
		m, err := serving.ModelOf(named(t, x.model), chat(3, 300, 212))
		if err != nil {
			t.Fatal(err)
		}
		f, ok := m.Fits(serving.Formats, chip(t, x.chip), x.count)
		if !ok || f.Format.Name != x.format || f.Shards != x.shards || f.Copies != x.count/x.shards {
			t.Errorf("%s on %d %s: %+v, %v", x.model, x.count, x.chip, f, ok)
			continue
		}
		if need := x.params*x.bytes + 512*x.kv; math.Abs(float64(f.Need)-need) > 1 {
			t.Errorf("%s on %s needs %d, want %.0f", x.model, x.chip, f.Need, need)
		}
		have := 0.9 * float64(chip(t, x.chip).Usable()) * float64(x.shards)
		if most := int((have - x.params*x.bytes) / (512 * x.kv)); f.Batch != min(most, serving.MaxBatch) {
			t.Errorf("%s on %s: batch %d, want %d", x.model, x.chip, f.Batch, most)
		}
	}
	m, _ := serving.ModelOf(named(t, "llama-3.1-405b"), chat(3, 300, 212))
	if f, ok := m.Fits(serving.Formats, chip(t, "A100-SXM-80GB"), 2); ok {
		t.Errorf("405 billion parameters fit on two A100: %+v", f)
	}
}

// The guide's table names the smallest accelerators that hold a copy, and its figures are those of the formulas.
func TestGuide_SizesModelsAsScrimpDoes(t *testing.T) {
	b, err := os.ReadFile("../../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	ladder := []struct {
		name, chip string
		count      int
	}{{"T4", "T4", 1}, {"L4, A10G", "L4", 1}, {"A100 40 GB", "A100-SXM-40GB", 1}, {"A100 80 GB", "A100-SXM-80GB", 1},
		{"2 × A100 80 GB", "A100-SXM-80GB", 2}}
	for _, model := range []string{"llama-3.2-3b", "llama-3-8b", "llama-2-13b", "llama-3-70b"} {
		m, err := serving.ModelOf(named(t, model), chat(1, 300, 212))
		if err != nil {
			t.Fatal(err)
		}
		row := "| " + model + " |"
		for _, f := range serving.Formats {
			for _, l := range ladder {
				if _, ok := m.Fits([]serving.Format{f}, chip(t, l.chip), l.count); ok {
					row += " " + l.name + " |"
					break
				}
			}
		}
		if !strings.Contains(string(b), row+"\n") {
			t.Errorf("docs/serving.md does not have %s", row)
		}
	}
	rate, _ := money.ParseRate("0.80")
	all := rate.Until(48 * time.Hour).Times(2)
	for _, text := range []string{money.Format(all, money.USD, 2), money.Format(all.Over(36_168), money.USD, 5),
		fmt.Sprintf("%.1f ms", 2*8.03e9/300e9*1e3)} {
		if !strings.Contains(string(b), text) {
			t.Errorf("docs/serving.md does not print %s", text)
		}
	}
}

// By hand, Llama-3-8B in fp16 on an L4 at its limits (121e12 operations and 300e9 bytes a second): a prompt of 300 tokens takes
// 300 · (2 · 7.505e9 + 2 · 32 · 4096 · 300) / 121e12 s, less than reading the weights (53.5 ms), and each of 9 more tokens
// takes as long as reading the weights and the cache.
func TestRoofline_IsTheSlowerOfComputeAndMemory(t *testing.T) {
	m, err := serving.ModelOf(named(t, "llama-3-8b"), chat(4, 300, 10))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.Fits(serving.Formats, chip(t, "L4"), 1)
	r, ok := serving.NewRoofline(m, f, chip(t, "L4"), catalog.Figure{}, serving.Fast)
	if !ok {
		t.Fatal("nothing is known of L4")
	}
	read := 2 * 8.03e9 / 300e9
	cache := 9 * (300 + 4.5) * 131072 / 300e9
	if p, d := r.Phases(0, 1); math.Abs(p-read) > 1e-9 || math.Abs(d-9*read-cache) > 1e-9 {
		t.Errorf("prompt %v, want %v; decode %v, want %v", p, read, d, 9*read+cache)
	}
	compute := 4 * 300 * (2*(8.03e9-128256*4096) + 2*32*4096*300) / 121e12
	if p, _ := r.Phases(0, 4); math.Abs(p-compute) > 1e-9 {
		t.Errorf("four prompts take %v, want %v", p, compute)
	}
	slow, _ := serving.NewRoofline(m, f, chip(t, "L4"), catalog.Figure{}, serving.Slow)
	typical, _ := serving.NewRoofline(m, f, chip(t, "L4"), catalog.Figure{}, serving.Typical)
	if !(r.Time(0, 4) < typical.Time(0, 4) && typical.Time(0, 4) < slow.Time(0, 4)) {
		t.Errorf("%v, %v, %v", r.Time(0, 4), typical.Time(0, 4), slow.Time(0, 4))
	}
}

func TestModelOf_RefusesWhatItCannotEstimate(t *testing.T) {
	bare := serving.Trace{At: []time.Duration{0}}
	for name, says := range map[string]string{"llama-3-8b": "reads tokens, and the trace has no column input_tokens",
		"ncf": "no formula"} {
		if _, err := serving.ModelOf(named(t, name), bare); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := serving.ModelOf(named(t, "resnet-50"), bare); err != nil {
		t.Error(err)
	}
}

func TestMeasured_InterpolatesBetweenBatches(t *testing.T) {
	all, err := serving.ReadMeasured("m.csv", strings.NewReader("accelerator,batch,seconds\nL4,8,0.080\nL4,1,0.010\nL4,4,0.040\n"))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]time.Duration{1: 10 * ms, 2: 20 * ms, 4: 40 * ms, 6: 60 * ms, 8: 80 * ms} {
		if got := all["l4"].Time(0, n); got.Round(time.Microsecond) != want {
			t.Errorf("batch %d takes %v, want %v", n, got, want)
		}
	}
	for text, says := range map[string]string{
		"":                                            "has no measurement",
		"accelerator,batch,seconds":                   "has no measurement",
		"time,input_tokens\n":                         "is not the header of measurements",
		"accelerator,batch,seconds\nL4,0,1\n":         "line 2: batch: \"0\" is out of range",
		"accelerator,batch,seconds\nL4,1,0\n":         "seconds: \"0\" is out of range",
		"accelerator,batch,seconds\nL4,1,-1\n":        "seconds: \"-1\" is out of range",
		"accelerator,batch,seconds\nL4,1,NaN\n":       "seconds: \"NaN\" is out of range",
		"accelerator,batch,seconds\nL4,1,99999999\n":  "is out of range",
		"accelerator,batch,seconds\nL4,1,1\nl4,1,2\n": "has batch 1 twice",
		"accelerator,batch,seconds\nL4,1\n":           "has 2 fields",
		"accelerator,batch,seconds\n,1,1\n":           "write accelerator,batch,seconds",
	} {
		if _, err := serving.ReadMeasured("m.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Dollars are those of each span, by the second and at least the minimum: added up here in whole picos.
func TestCost_IsTheSumOverSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	rate, _ := money.ParseRate("0.8048")
	for range 50 {
		var o serving.Outcome
		want := new(big.Int)
		for range r.IntN(20) {
			from := time.Duration(r.Int64N(1e15))
			took := time.Duration(r.Int64N(3e11))
			o.Spans = append(o.Spans, serving.Span{From: from, To: from + took})
			// A minimum is a second line of the bill, cut off as part of the whole.
			billed := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(int64(max(took, time.Minute))))
			want.Add(want, billed.Quo(billed, big.NewInt(int64(time.Hour))))
		}
		if got := o.Cost(rate, market.Billing{Minimum: time.Minute}); got.Big().Cmp(want) != 0 {
			t.Errorf("%v: %s, want %s picos", o.Spans, got, want)
		}
	}
	nine, _ := money.ParseRate("0.09")
	if got := serving.Egress(2_500_000_000, nine); got.String() != "0.225" {
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
	if err != nil {
		t.Fatal(err)
	}
	trace := serving.Trace{At: []time.Duration{0, time.Hour, 2 * time.Hour}, Window: 2 * time.Hour}
	o := serving.NewSimulation(trace, flat(120*ms), 1, nil).Run(list[0].Rule())
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
		ask.Options.Kinds = serving.Kinds
	}
	p, err := serving.NewPlan(catalog.Catalog{}, list, ask)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Runs() {
		p.Play(i)
	}
	return p
}

// steady is a Poisson trace of requests for an hour.
func steady(rate float64) serving.Trace {
	return poisson(rand.New(rand.NewPCG(1, 1)), int(3600*rate), rate)
}

// A fixed rule has the fewest machines that meet the target: one machine less misses it.
func TestPlan_TakesTheFewestMachinesThatMeetTheTarget(t *testing.T) {
	trace := steady(20)
	targets := []serving.Target{{PerMille: 990, Limit: 400 * ms}}
	ask := serving.Ask{Trace: trace, Measured: map[string]serving.Measured{"l4": {{1, 0.2}, {8, 0.4}}},
		Options: serving.Options{Targets: targets, Kinds: []serving.Kind{serving.Fixed}}}
	c := play(t, []catalog.Listing{listing("a", "m", "L4", 1, "1")}, ask).Choices()
	if len(c) != 1 || !c[0].Met {
		t.Fatalf("%+v", c)
	}
	n := c[0].Outcome.Rule.Max
	for machines, meets := range map[int]bool{n: true, n - 1: false} {
		o := serving.NewSimulation(trace, ask.Measured["l4"], 1, nil).Run(serving.Rule{Batch: 1, Min: machines, Max: machines})
		if o.Meets(targets) != meets {
			t.Errorf("%d machines: p99 %v", machines, o.Quantiles[990])
		}
	}
}

// Batches that share their time need fewer machines, so the batched rule costs less; it comes first.
func TestPlan_PutsTheCheapestRuleThatMeetsTheTargetFirst(t *testing.T) {
	ask := serving.Ask{Trace: steady(20), Measured: map[string]serving.Measured{"l4": {{1, 0.2}, {16, 0.3}}},
		Options: serving.Options{Targets: []serving.Target{{PerMille: 990, Limit: 2 * time.Second}}, Cold: time.Minute}}
	list := play(t, []catalog.Listing{listing("a", "dear", "L4", 1, "2"), listing("b", "cheap", "L4", 1, "1")}, ask).Choices()
	if k := list[0].Outcome.Rule.Kind; k == serving.Fixed || list[0].Listing.Offer.Machine != "cheap" || list[0].Outcome.Rule.Batch < 2 {
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
	var trace serving.Trace
	for day := range 3 {
		for i := range 50 {
			trace.At = append(trace.At, time.Duration(day)*24*time.Hour+9*time.Hour+time.Duration(i)*time.Second)
		}
	}
	trace.Window = 72 * time.Hour
	trace.Start = 0
	for limit, kind := range map[time.Duration]serving.Kind{2 * time.Minute: serving.ScaleToZero, time.Second: serving.WarmHours} {
		ask := serving.Ask{Trace: trace, Measured: map[string]serving.Measured{"l4": {{1, 0.2}}},
			Options: serving.Options{Targets: []serving.Target{{PerMille: 990, Limit: limit}}, Cold: time.Minute,
				Keep: 5 * time.Minute, Warm: serving.Hours{From: 8, To: 10}}}
		c := play(t, []catalog.Listing{listing("a", "m", "L4", 1, "1")}, ask).Choices()
		if got := c[0].Outcome.Rule.Kind; got != kind {
			t.Errorf("%v: %v comes first", limit, c[0].Outcome.Rule)
		}
	}
}

// Where no rule meets the target the one that comes nearest is first, and says by how much it misses.
func TestPlan_NamesTheNearestWhereNothingMeetsTheTarget(t *testing.T) {
	ask := serving.Ask{Trace: steady(2), Measured: map[string]serving.Measured{"l4": {{1, 0.2}, {4, 0.8}}, "t4": {{1, 0.5}}},
		Options: serving.Options{Targets: []serving.Target{{PerMille: 990, Limit: 100 * ms}}}}
	c := play(t, []catalog.Listing{listing("a", "t", "T4", 1, "1"), listing("a", "l", "L4", 1, "1")}, ask).Choices()
	if len(c) != 2 || c[0].Met || c[0].Listing.Offer.Machine != "l" || c[0].Outcome.Miss(ask.Options.Targets) != 2 {
		t.Errorf("%+v", c)
	}
}

func TestNewPlan_SaysWhyNothingServesTheModel(t *testing.T) {
	model := named(t, "llama-3.1-405b")
	ask := serving.Ask{Trace: chat(3, 10, 10), Model: &model, Formats: serving.Formats}
	_, err := serving.NewPlan(catalog.Catalog{}, []catalog.Listing{listing("a", "m", "L4", 4, "1")}, ask)
	if err == nil || !strings.Contains(err.Error(), "the model needs 234.3 GB in int4") || !strings.Contains(err.Error(), "has 96.6 GB") {
		t.Errorf("%v", err)
	}
	ask = serving.Ask{Trace: chat(3, 10, 10), Measured: map[string]serving.Measured{"h100": {{1, 1}}}}
	_, err = serving.NewPlan(catalog.Catalog{}, []catalog.Listing{listing("a", "m", "L4", 4, "1")}, ask)
	if err == nil || !strings.Contains(err.Error(), `"h100", which is no accelerator or machine of the offers`) {
		t.Errorf("%v", err)
	}
}

// Manifests are YAML of the right kind, and an HPA is refused for rules that it cannot express.
func TestManifests_SayWhatTheRuleSays(t *testing.T) {
	d := serving.Deployment{Name: "chat", Metric: "in_flight", Prometheus: "http://p:9090"}
	rule := serving.Rule{Kind: serving.WarmHours, Batch: 8, Wait: 40 * ms, Max: 4, WarmMin: 2, Warm: serving.Hours{From: 8, To: 18},
		Keep: 5 * time.Minute, Poll: 15 * time.Second}
	if _, ok := serving.HPA(rule, 1, d); ok {
		t.Error("an HPA scales to zero")
	}
	text, ok := serving.KEDA(rule, 2, d)
	var k struct {
		Kind string
		Spec struct {
			Min      int `yaml:"minReplicaCount"`
			Max      int `yaml:"maxReplicaCount"`
			Poll     int `yaml:"pollingInterval"`
			Cooldown int `yaml:"cooldownPeriod"`
			Triggers []struct {
				Type     string
				Metadata map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &k); err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	s := k.Spec
	if k.Kind != "ScaledObject" || s.Min != 0 || s.Max != 4 || s.Poll != 15 || s.Cooldown != 300 || len(s.Triggers) != 2 ||
		s.Triggers[0].Metadata["threshold"] != "16" || s.Triggers[0].Metadata["query"] != "sum(in_flight)" ||
		s.Triggers[1].Metadata["start"] != "0 8 * * *" || s.Triggers[1].Metadata["desiredReplicas"] != "2" {
		t.Errorf("%+v of %s", k, text)
	}
	rule.WarmMin, rule.Min, rule.Kind = 0, 1, serving.Autoscale
	text, ok = serving.HPA(rule, 1, d)
	var h struct {
		Kind string
		Spec struct {
			MinReplicas, MaxReplicas int `yaml:",omitempty"`
		}
	}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "Replicas", "replicas")), &h); err != nil || !ok || h.Kind != "HorizontalPodAutoscaler" {
		t.Errorf("%v: %s", err, text)
	}
	if !strings.Contains(text, "averageValue: \"8\"") || !strings.Contains(text, "minReplicas: 1\n  maxReplicas: 4\n") {
		t.Errorf("%s", text)
	}
}

// Formats are read in any order and kept from the widest on.
func TestParseFormats_KeepsTheWidestFirst(t *testing.T) {
	list, err := serving.ParseFormats("int4, FP16")
	if err != nil || len(list) != 2 || list[0].Name != "fp16" {
		t.Errorf("%v %v", list, err)
	}
	if _, err := serving.ParseFormats("fp16,fp64"); err == nil {
		t.Error("fp64")
	}
	if serving.Gigabytes(16_060_000_000*size.Bytes(1)) != "16.1 GB" {
		t.Error(serving.Gigabytes(16_060_000_000))
	}
}

// One million requests under each kind of rule, for the time that a run takes.
func BenchmarkRun(b *testing.B) {
	const n = 1_000_000
	trace := poisson(rand.New(rand.NewPCG(1, 1)), n, 100)
	for name, rule := range map[string]serving.Rule{
		"fixed":         {Batch: 1, Min: 16, Max: 16},
		"batched":       {Batch: 8, Wait: 20 * ms, Min: 8, Max: 8},
		"scale-to-zero": {Batch: 8, Max: 16, Cold: time.Minute, Keep: 5 * time.Minute, Poll: 15 * time.Second},
	} {
		b.Run(name, func(b *testing.B) {
			s := serving.NewSimulation(trace, affine{50 * ms, 5 * ms}, 1, nil)
			for b.Loop() {
				if o := s.Run(rule); o.Requests != n {
					b.Fatalf("%d of %d answered", o.Requests, n)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
