package rank_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/catalog"
	"scrimp/internal/market"
	"scrimp/internal/rank"
)

// question draws offers, estimates and wishes.
func question(t *rapid.T) rank.Question {
	hours := map[string]rank.Range{}
	q := rank.Question{Work: 3600, Now: now, Checkpoints: rapid.Bool().Draw(t, "checkpoints"), Resume: 3 * time.Minute, Gap: 10 * time.Minute, Save: 20 * time.Second, Start: 3 * time.Minute}
	for _, k := range []string{"a", "b", "c"} {
		v := rapid.Float64Range(0.1, 50).Draw(t, k)
		hours[k] = rank.Range{Low: v / rapid.Float64Range(1, 2).Draw(t, "below"), Value: v, High: v * rapid.Float64Range(1, 2).Draw(t, "above")}
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
		q.Budget = catalog.Known(rapid.Float64Range(0.1, 100).Draw(t, "budget"))
	}
	return q
}

func TestAnAnswerIsSoundWhateverIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := question(t)
		a := rank.Rank(q)
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
		for i, p := range a.Plans {
			if i > 0 && p.Cost.Value < a.Plans[i-1].Cost.Value || q.Budget.OK && p.Cost.Value > q.Budget.V || p.Chance != nil && *p.Chance < a.Promise {
				t.Fatalf("plan %d: %+v", i, p)
			}
			if p.Cost.Low > p.Cost.Value || p.Cost.Value > p.Cost.High || p.Hours.Low > p.Hours.Value || p.Hours.Value > p.Hours.High || p.Cost.Low <= 0 || (p.Chance == nil) != (q.Deadline == 0) {
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
		for i := range q.Offers { // whatever order they come in
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

// More money, more time or one more offer never makes the best plan dearer.
func TestAWiderWishNeverCostsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := question(t)
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

func TestManyOffersAndVariants(t *testing.T) {
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

// large has offers of 20 kinds with 1, 2, 4 and 8 accelerators in many zones, half of them spot.
func large(offers, variants int) rank.Question {
	r := rand.New(rand.NewPCG(7, 7))
	q := rank.Question{Work: 3600 * 100, Now: now, Deadline: 200 * time.Hour, Checkpoints: true, Resume: 3 * time.Minute, Gap: 10 * time.Minute, Save: 20 * time.Second, Start: 5 * time.Minute, Asks: catalog.Filter{Regions: []string{"*"}}, Most: 20}
	for i := range offers {
		kind, each := fmt.Sprintf("kind-%02d", i%20), 1<<(i/20%4)
		l := sold(kind, each, []market.Capacity{market.Spot, market.OnDemand}[i%2], fmt.Sprintf("%.4f", float64(each)*(0.5+3*r.Float64())))
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

func BenchmarkRank(b *testing.B) {
	q := large(10_000, 50)
	var a rank.Answer
	for b.Loop() {
		a = rank.Rank(q)
	}
	if a.Considered != 500_000 || !a.Feasible || a.Counts[rank.CostsMore] < 10_000 {
		b.Fatalf("%d options, %v", a.Considered, a.Counts)
	}
	b.ReportMetric(float64(a.Considered)*float64(b.N)/b.Elapsed().Seconds(), "options/s")
}
