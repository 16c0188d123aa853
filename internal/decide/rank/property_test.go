package rank_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/lib/figure"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/decide/rank"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// request draws offers, estimates and limits.
func request(t *rapid.T) rank.Request {
	hours := map[string]rank.Range{}
	q := rank.Request{Work: 3600, Now: now, Checkpoints: rapid.Bool().Draw(t, "checkpoints"), Resume: 3 * time.Minute,
		Gap: 10 * time.Minute, Save: 20 * time.Second, Start: 3 * time.Minute}
	for _, k := range []string{"a", "b", "c"} {
		v := rapid.Float64Range(0.1, 50).Draw(t, k)
		hours[k] = rank.Range{Low: v / rapid.Float64Range(1, 2).Draw(t, "below"), Value: v,
			High: v * rapid.Float64Range(1, 2).Draw(t, "above")}
		for n := range rapid.IntRange(0, 3).Draw(t, "offers") {
			kind := []market.Capacity{market.Spot, market.OnDemand, market.Reserved}[rapid.IntRange(0, 2).Draw(t, "capacity")]
			q.Offers = append(q.Offers, sold(k, n+1, kind, fmt.Sprintf("%.2f", rapid.Float64Range(0.01, 20).Draw(t, "price"))))
		}
	}
	q.Estimate = takes(hours)
	if rapid.Bool().Draw(t, "timed") {
		q.Deadline = time.Duration(rapid.Int64Range(int64(time.Minute), int64(100*time.Hour)).Draw(t, "deadline"))
	}
	if rapid.Bool().Draw(t, "limited") {
		q.Budget = figure.Known(rapid.Float64Range(0.1, 100).Draw(t, "budget"))
	}
	return q
}

func TestRank_AnswersAnyRequestSoundly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := request(t)
		a := rank.Rank(q)
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
		for i, p := range a.Plans {
			if i > 0 && p.Cost.Value < a.Plans[i-1].Cost.Value || q.Budget.OK && p.Cost.Value > q.Budget.V ||
				p.Chance != nil && *p.Chance < a.Promise {
				t.Fatalf("plan %d: %+v", i, p)
			}
			if p.Cost.Low > p.Cost.Value || p.Cost.Value > p.Cost.High || p.Hours.Low > p.Hours.Value ||
				p.Hours.Value > p.Hours.High || p.Cost.Low <= 0 || (p.Chance == nil) != (q.Deadline == 0) {
				t.Fatalf("plan %d: %+v", i, p)
			}
		}
		if len(a.Plans)+len(a.Rejected) != len(q.Offers) || a.Feasible != (len(a.Plans) > 0) {
			t.Fatalf("%d offers: %d plans, %d rejected", len(q.Offers), len(a.Plans), len(a.Rejected))
		}
		for i, f := range a.Frontier {
			if i > 0 && (f.Hours < a.Frontier[i-1].Hours || f.Cost >= a.Frontier[i-1].Cost) {
				t.Fatalf("frontier %+v", a.Frontier)
			}
		}
		for i := range q.Offers { // in any order
			j := rapid.IntRange(0, i).Draw(t, "swap")
			q.Offers[i], q.Offers[j] = q.Offers[j], q.Offers[i]
		}
		b := rank.Rank(q)
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Fatalf("in another order\n%s\n%s", x, y)
		}
	})
}

// More money, more time or one more offer never makes the best plan more expensive.
func TestRank_LooserRequestNeverCostsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := request(t)
		a := rank.Rank(q)
		if !a.Feasible {
			return
		}
		wider := q
		if q.Deadline > 0 {
			wider.Deadline += time.Duration(rapid.Int64Range(0, int64(50*time.Hour)).Draw(t, "more"))
		}
		wider.Budget.V += rapid.Float64Range(0, 50).Draw(t, "money")
		b := rank.Rank(wider)
		if !b.Feasible || b.Plans[0].Cost.Value > a.Plans[0].Cost.Value*(1+1e-9) {
			t.Fatalf("%v, then %v\n%+v\n%+v", q.Deadline, wider.Deadline, a.Plans[0], b.Plans)
		}
	})
}

func TestRank_HandlesManyOffersAndVariants(t *testing.T) {
	q := large(100, 5)
	a := rank.Rank(q)
	b := rank.Rank(q)
	if a.Considered != 500 || !a.Feasible || !reflect.DeepEqual(a.Counts, b.Counts) {
		t.Errorf("%d options, %v", a.Considered, a.Counts)
	}
	q.Most = 3
	if c := rank.Rank(q); len(c.Plans) != 3 || len(c.Rejected) > 3 || c.Considered != 500 {
		t.Errorf("%d plans", len(c.Plans))
	}
}

// large returns offers of 20 kinds with 1, 2, 4 and 8 accelerators in many zones, half of them spot.
func large(offers, variants int) rank.Request {
	r := rand.New(rand.NewPCG(7, 7))
	q := rank.Request{Work: 3600 * 100, Now: now, Deadline: 200 * time.Hour, Checkpoints: true,
		Resume: 3 * time.Minute, Gap: 10 * time.Minute, Save: 20 * time.Second, Start: 5 * time.Minute,
		Requirements: catalog.Filter{Regions: []string{"*"}}, Most: 20}
	for i := range offers {
		kind, each := fmt.Sprintf("kind-%02d", i%20), 1<<(i/20%4)
		l := sold(kind, each, []market.Capacity{market.Spot, market.OnDemand}[i%2],
			fmt.Sprintf("%.4f", float64(each)*(0.5+3*r.Float64())))
		l.Offer.Zone = fmt.Sprintf("zone-%d", i)
		l.Offer.ID = market.ID(l.Offer)
		q.Offers = append(q.Offers, l)
	}
	for v := range variants {
		q.Variants = append(q.Variants, rank.Variant{Name: fmt.Sprintf("variant-%02d", v)})
	}
	fits := true
	q.Estimate = func(s rank.Shape, v int) (rank.Estimate, bool) {
		value := (0.5 + float64(len(s.Accelerator)+int(s.Accelerator[6]-'0'))/10) * float64(s.Count()) * (1 + float64(v)/100)
		return rank.Estimate{Rate: rank.Range{Low: value / 1.2, Value: value, High: value * 1.2}, Fits: &fits}, true
	}
	return q
}

// BenchmarkRank ranks 10,000 offers in 50 variants, against the limit of a tenth of a second per plan on one core:
// once with free estimates, once with an estimator that has learned from runs and has no cached answers. The offers
// have 20 accelerators of the catalog, 1, 2, 4 and 8 of each: 80 shapes, 4,000 estimates.
func BenchmarkRank(b *testing.B) {
	for name, learned := range map[string]int{"rank-alone": -1, "by-arithmetic": 0, "learned-from-200-runs": 200} {
		b.Run(name, func(b *testing.B) {
			q := large(10_000, 50)
			var e *estimate.Estimator
			if learned >= 0 {
				e = realistic(&q, learned)
			}
			plain := q.Estimate
			var a rank.Answer
			before := processor()
			for b.Loop() {
				if e != nil {
					fresh := e.Fork()
					q.Estimate = func(s rank.Shape, v int) (rank.Estimate, bool) { return estimated(fresh, s, v) }
				} else {
					q.Estimate = plain
				}
				a = rank.Rank(q)
			}
			if a.Considered != 500_000 || !a.Feasible || a.Counts[rank.CostsMore] < 10_000 {
				b.Fatalf("%d options, %v", a.Considered, a.Counts)
			}
			b.ReportMetric(float64(a.Considered)*float64(b.N)/b.Elapsed().Seconds(), "options/s")
			b.ReportMetric((processor()-before).Seconds()/float64(b.N)/0.1, "of-100ms-cpu")
		})
	}
}

// processor returns the processor time of this process, which does not depend on other programs.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// realistic gives the offers accelerators of the catalog, and returns an estimator that has learned from n runs.
func realistic(q *rank.Request, learned int) *estimate.Estimator {
	var kinds []accelerator.Accelerator
	for _, k := range accelerator.Accelerators() {
		if _, ok := k.Dense(accelerator.BF16); ok && k.Vendor == "nvidia" && len(kinds) < 20 {
			kinds = append(kinds, k)
		}
	}
	for i := range q.Offers {
		k := kinds[i%20%len(kinds)]
		q.Offers[i].Offer.Accelerator = k.Name
		q.Offers[i].AcceleratorMemory = k.Memory
		q.Offers[i].Offer.ID = market.ID(q.Offers[i].Offer)
	}
	chips := hardware.Catalogued()
	r := rand.New(rand.NewPCG(3, 3))
	var rows []runs.Row
	for i := range learned {
		ask := asked(i % 50)
		k, _ := chips.Find(kinds[r.IntN(len(kinds))].Name)
		row := ask.Row(k, float64(int(1)<<r.IntN(4)), float64(int(1)<<r.IntN(5)))
		row.ID, row.Throughput, row.Source, row.Unit = fmt.Sprint(i), 1e5*math.Exp(r.NormFloat64()/3),
			fmt.Sprintf("own/job-%d", i%7), "tokens/s"
		rows = append(rows, row)
	}
	return estimate.New(chips, nil, rows)
}

// asked returns one of 50 ways to train a small transformer.
func asked(v int) estimate.Request {
	m, _ := shape.Published("gpt2")
	return estimate.Request{
		Model: m, Seq: float64(int(512) << (v / 25)), Precision: []string{"bf16", "fp32", "fp8", "tf32", "fp16"}[v%5],
		Keep: []runs.Recompute{runs.KeepAll, runs.KeepEnds, runs.KeepSome, runs.KeepAll,
			runs.KeepEnds}[v/5%5], Tokens: 1e9,
	}
}

func estimated(e *estimate.Estimator, s rank.Shape, v int) (rank.Estimate, bool) {
	x := asked(v)
	x.Chip, x.Count = s.Accelerator, float64(s.Count())
	o, err := e.Answer(x)
	if err != nil || o.Hours == nil {
		return rank.Estimate{}, false
	}
	return rank.Estimate{Rate: rank.Range{Low: 100 / o.Hours.High, Value: 100 / o.Hours.Value, High: 100 / o.Hours.Low},
		Fits: o.Fits, Source: o.Provenance}, true
}
