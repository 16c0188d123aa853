package server

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/work/recommend"
)

// The spending is that of the team's costs, shown to its team alone. A machine that waited 2 hours is no recommendation, since
// its start took 4.
func TestRecommend_ComputesFromTheTeamsOwnCosts(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.idles(2 * time.Hour)
	ask := func(query, token string) (code int, list []recommend.Plan) {
		rec, p := w.ask("GET", "/v1/recommend"+query, token, nil)
		if rec.Code != 200 {
			if p.Fix == "" {
				t.Errorf("%s: %+v", query, p)
			}
			return rec.Code, nil
		}
		must.Do(t, json.Unmarshal(rec.Body.Bytes(), &list))
		return rec.Code, list
	}
	code, list := ask("?team=team-0&target=50%25", auth.OwnerName)
	if code != 200 || len(list) != 1 || list[0].Currency != money.USD {
		t.Fatalf("%d %+v", code, list)
	}
	p := list[0]
	var costs struct {
		Lines []struct {
			Spent money.Amount `json:"spent"`
		} `json:"lines"`
	}
	w.must("GET", "/v1/costs", nil, &costs)
	if spent := costs.Lines[0].Spent.Float(); p.Spent.Float() > spent+0.01 || p.Spent.Float() < spent-0.01 || p.Enough || !p.Reached.IsZero() ||
		p.Target.Float() > p.Spent.Float()/2 || p.Target.Float() < p.Spent.Float()/2-0.01 {
		t.Errorf("%+v of %v", p, costs.Lines)
	}
	for _, l := range p.Recommendations {
		if l.Name == "idle stop" {
			t.Errorf("%+v", l)
		}
	}
	for query, want := range map[string]string{
		"?team=nosuch":     `there is no team "nosuch" that you may see`,
		"?target=abc":      `"abc" is not from 1% to 99%`,
		"?target=abc%25":   `"abc%" is not from 1% to 99%`,
		"?target=1e999%25": `"1e999%" is not from 1% to 99%`,
	} {
		rec, _ := w.ask("GET", "/v1/recommend"+query, auth.OwnerName, nil)
		var text struct{ Title, Detail string }
		if err := json.Unmarshal(rec.Body.Bytes(), &text); err != nil || !strings.Contains(text.Title+text.Detail, want) ||
			strings.Contains(rec.Body.String(), "strconv") {
			t.Errorf("%s: %s, want %s", query, rec.Body, want)
		}
	}
	bob := w.user("bob", identity.Grant{Team: "team-1", Role: identity.Operator})
	for _, c := range []struct {
		query, token string
		code         int
	}{{"", bob, 404}, {"?team=team-0", bob, 404}, {"?team=team-1", bob, 404}, {"?target=0%25", auth.OwnerName, 400}, {"?target=25", auth.OwnerName, 400},
		{"?target=NaN%25", auth.OwnerName, 400}, {"?target=100%25", auth.OwnerName, 400}, {"", auth.OwnerName, 200}} {
		if code, _ := ask(c.query, c.token); code != c.code {
			t.Errorf("%s: %d, want %d", c.query, code, c.code)
		}
	}
}

// A job that computes in 32 bits would cost less in 16: by the share of its time that the estimate saves. One in 16 bits
// has nothing to save, and neither has one whose file states no precision.
func TestRecommend_MixedPrecisionSavesOf32BitJobsAlone(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.MarketSeen{
			Offers: []market.Offer{{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand,
				Currency: money.USD, CPUs: 8, Memory: 1 << 40, Accelerator: "L4", Accelerators: 1}},
			Quotes: []market.Quote{{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, Available: true, At: w.control.Now()}},
		}}))
	for name, precision := range map[string]string{"full": `,"precision":"fp32"`, "half": `,"precision":"bf16"`, "silent": ""} {
		w.went(name, fmt.Sprintf(`{"spec":{"name":%q,"command":"train","model":{"config":"resnet-50","batch":64%s},"work":{"steps":1000,"samples":3600000}}}`,
			name, precision), 1000, 1)
	}
	var list []recommend.Plan
	w.must("GET", "/v1/recommend", nil, &list)
	at := slices.IndexFunc(list[0].Recommendations, func(l recommend.Recommendation) bool { return l.Name == recommend.MixedPrecision })
	if at < 0 {
		t.Fatalf("no mixed precision: %+v", list[0].Recommendations)
	}
	l, each := list[0].Recommendations[at], list[0].Spent.Float()/3
	if l.Alone == nil || l.Alone.Float() < 0.2*each || l.Alone.Float() > 0.9*each || !strings.HasPrefix(l.Evidence, "1 job cost ") {
		t.Errorf("%v of %g that each job cost: %s", l.Alone, each, l.Evidence)
	}
	var made client.TakenRecommendation
	w.must("POST", "/v1/recommend/take", client.TakeRecommendation{Name: recommend.MixedPrecision}, &made)
	if made.Unit != string(recommend.Run) {
		t.Errorf("taken: %+v", made)
	}
}

// The saving of spot is that of the job itself, simulated with the work that it did, on demand and on spot: that of two
// plans. A job that saves nothing, and one that ran on spot, are not simulated.
func TestRecommend_SpotShareIsSimulated(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	offer := func(capacity market.Capacity) market.Offer {
		return market.Offer{ID: market.OfferID("p/z/m/" + string(capacity)), Provider: "p", Zone: "z", Machine: "m", Capacity: capacity,
			Currency: money.USD, CPUs: 8, Memory: 1 << 40, Accelerator: "L4", Accelerators: 1}
	}
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.MarketSeen{Offers: []market.Offer{offer(market.OnDemand), offer(market.Spot)}, Quotes: []market.Quote{
			{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, Available: true, At: w.control.Now()},
			{Offer: "p/z/m/spot", Rate: 25e10, Priced: true, Available: true, At: w.control.Now()}}}}))
	text := func(name, more string) string {
		return fmt.Sprintf(`{"spec":{"name":%q,"command":"train","resources":{"capacity":["on-demand"]},"work":{"steps":1000}%s}}`, name, more)
	}
	const saves = `,"checkpoint":{"dir":"c"}`
	w.went("saver", text("saver", saves+`,"budget":{"dollars":"9"}`), 1000, 3)
	w.went("silent", text("silent", ""), 1000, 2)
	w.planning.Limit = eventually.Limit
	var list []recommend.Plan
	w.must("GET", "/v1/recommend?target=25%25", nil, &list)
	at := slices.IndexFunc(list[0].Recommendations, func(l recommend.Recommendation) bool { return l.Name == "spot share" })
	if at < 0 {
		t.Fatalf("%+v", list[0].Recommendations)
	}
	l := list[0].Recommendations[at]
	planned := func(capacity string) float64 {
		var p client.Plan
		w.must("POST", "/v1/plan", fmt.Sprintf(`{"spec":{"name":"x","command":"train","resources":{"capacity":[%q]},"work":{"time":"3h"}%s}}`,
			capacity, saves), &p)
		if p.CostUSD == nil {
			t.Fatalf("%+v", p)
		}
		return p.CostUSD[1]
	}
	share := 1 - planned("spot")/planned("on-demand")
	cost := 3 * list[0].Spent.Float() / 5 // the hours of the other job are 2 of 5
	if l.Method != recommend.Simulated || l.Alone == nil || l.Alone.Float() < (share-0.05)*cost || l.Alone.Float() > (share+0.05)*cost ||
		share < 0.3 || !strings.Contains(l.Evidence, " is of 1 job, simulated on demand and on spot") {
		t.Errorf("%+v: %v saved of %g, two plans save %g of it", l, l.Alone, cost, share)
	}
}

// An interval that loses hours of work with each interruption costs more than the one that scrimp picks. Equal jobs
// differ by nothing.
func TestCheaper_ComparesIntervalsOfTheSameJob(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.MarketSeen{Offers: []market.Offer{{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot,
			Currency: money.USD, CPUs: 8, Memory: 1 << 40}},
			Quotes: []market.Quote{{Offer: "p/z/m/spot", Rate: 25e10, Priced: true, Available: true, At: w.control.Now()}}}}))
	job := func(interval string) spec.Job {
		text := fmt.Sprintf(`{"name":"x","command":"train","work":{"time":"6h"},"checkpoint":{"dir":"c","interval":%q}}`, interval)
		j, _, err := spec.ParseJSON(spec.Read, []byte(text), "", w.control.Now())
		must.Do(t, err)
		return j
	}
	w.planning.Limit = eventually.Limit
	got := w.planning.Cheaper(httptest.NewRequest("GET", "/", nil), [][2]spec.Job{{job("5h"), job("auto")}, {job("1h"), job("1h")}},
		[]time.Duration{0, 0})
	if len(got) != 2 || got[0] == nil || got[1] == nil || *got[0] < 0.02 || *got[1] != 0 {
		for i, x := range got {
			if x != nil {
				t.Errorf("pair %d: %g", i, *x)
			} else {
				t.Errorf("pair %d is unknown", i)
			}
		}
	}
}
