package retrain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/pipeline"
)

var start = time.Date(2026, 11, 2, 3, 0, 0, 0, time.UTC) // a Monday

func usd(t testing.TB, text string) money.Amount {
	t.Helper()
	a, err := money.Parse(text)
	must.Do(t, err)
	return a
}

func rate(t testing.TB, text string) *money.Rate {
	t.Helper()
	r, err := money.ParseRate(text)
	must.Do(t, err)
	return &r
}

// Whatever objects arrive between listings, each is new exactly once, also where many share a second.
func TestCounter_CountsEachObjectOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var objects []time.Time
		var mark Mark
		total, now := 0, start
		for range 1 + rng.IntN(8) {
			for range rng.IntN(5) { // also in the second of the last listing
				objects = append(objects, now.Add(time.Duration(rng.IntN(3))*time.Second))
			}
			now = now.Add(3 * time.Second)
			c := NewCounter(mark, now)
			for _, at := range objects {
				c.Add(at)
			}
			seen := c.Seen()
			total, mark = total+seen.New, seen.Mark
			// an object of the newest second can still arrive
			if mark.Count > 0 && rng.IntN(2) == 0 {
				objects = append(objects, mark.Newest)
			}
		}
		c := NewCounter(mark, now)
		for _, at := range objects {
			c.Add(at)
		}
		if total += c.Seen().New; total != len(objects) {
			t.Fatalf("round %d: %d of %d objects were new", round, total, len(objects))
		}
	}
}

func TestCounter_IgnoresADatedAheadObjectOnceItIsKnown(t *testing.T) {
	list := func(since Mark) Seen {
		c := NewCounter(since, start)
		c.Add(start.Add(-time.Hour))
		c.Add(start.AddDate(50, 0, 0))
		return c.Seen()
	}
	first := list(Mark{})
	if first.New != 2 || first.Newest.After(start) {
		t.Errorf("the first listing: %+v, want two new objects, and none after now as the newest", first)
	}
	if again := list(first.Mark); again.New != 0 {
		t.Errorf("the second listing has %d new objects, want none", again.New)
	}
}

func TestCounter_KeepsItsMarkWhereObjectsAreDeleted(t *testing.T) {
	mark := Mark{Newest: start, Count: 2}
	c := NewCounter(mark, start.Add(time.Hour))
	c.Add(start.Add(-time.Hour)) // the newest two are gone
	if seen := c.Seen(); seen.New != 0 || !seen.Newest.Equal(start) {
		t.Errorf("%+v, want nothing new and the mark of before", seen)
	}
}

// runs returns earlier runs with these values, new objects and costs, one a day.
func runs(t testing.TB, values []string, fresh []int, costs []string) (list []Past) {
	for i := range values {
		p := Past{At: start.AddDate(0, 0, i), Value: values[i]}
		if fresh != nil {
			p.New = fresh[i]
		}
		if costs[i] != "" {
			a := usd(t, costs[i])
			p.Cost = &a
		}
		list = append(list, p)
	}
	return list
}

func pays(t testing.TB, value string) *Pays {
	return &Pays{Value: usd(t, value), Point: "0.01", AtLeast: LeastGains, Metric: "evaluate.accuracy"}
}

// Gains of 0.02, 0.01 and 0.03 average 0.02, which is two points; the runs cost $9, $11, $10 and $10: $10.
func TestPays_ComparesTheAverageGainWithTheAverageCost(t *testing.T) {
	past := runs(t, []string{"0.80", "0.82", "0.83", "0.86"}, nil, []string{"9", "11", "10", "10"})
	for _, c := range []struct {
		value string
		pass  bool
		says  string
	}{
		{"5", true, "an expected gain of 2 points (average of 3 runs; they gained 1 to 3) is worth $10.00, and a run costs $10.00 ($9.00 to $11.00)"},
		{"4.99", false, "is worth $9.98, and a run costs $10.00"},
		{"6", true, "is worth $12.00"},
	} {
		got := pays(t, c.value).decide(Facts{Now: start.AddDate(0, 0, 4), Last: start.AddDate(0, 0, 3), Past: past}, false)
		if got.Pass != c.pass || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s a point: %t: %s, want %t: %s", c.value, got.Pass, got.Why, c.pass, c.says)
		}
		p := got.Pays
		if p.Gain != "0.02" || p.Low != "0.01" || p.High != "0.03" || p.Cost.Cmp(usd(t, "10")) != 0 || p.Gains != 3 {
			t.Errorf("its figures are %+v", p)
		}
	}
}

func TestPays_BeginsWithoutAnEstimateAndSaysSo(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		costs  []string
		says   string
	}{
		{"no run", nil, nil, "0 gains of earlier runs, and an estimate needs 3: the run begins"},
		{"one run", []string{"0.8"}, []string{"9"}, "0 gains of earlier runs"},
		{"two runs", []string{"0.8", "0.9"}, []string{"9", "9"}, "1 gain of earlier runs"},
		{"no final cost", []string{"1", "2", "3", "4"}, []string{"", "", "", ""}, "no earlier run has a final cost yet"},
		{"a value out of bounds", []string{"1", "2", "1e900", "4"}, []string{"1", "1", "1", "1"}, "2 gains of earlier runs"},
		{"a gain out of bounds", []string{"1", "1e17", "1", "1e17"}, []string{"1", "1", "1", "1"}, "out of bounds"},
	} {
		x := pays(t, "1000000000")
		got := x.decide(Facts{Now: start, Past: runs(t, c.values, nil, c.costs)}, false)
		if !got.Pass || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s: %t: %s, want %q", c.name, got.Pass, got.Why, c.says)
		}
	}
}

// The gains lie on a line: a thousandth for each new object. The line is not continued beyond the observed counts.
func TestPays_FollowsTheLineAgainstNewObjects(t *testing.T) {
	fresh := []int{0, 10, 20, 40, 30, 20}
	values, at := []string{"0.500"}, 500
	for _, n := range fresh[1:] {
		at += n
		values = append(values, fmt.Sprintf("0.%03d", at))
	}
	past := runs(t, values, fresh, []string{"1", "1", "1", "1", "1", "1"})
	for n, want := range map[int]string{5: "0.01", 10: "0.01", 25: "0.025", 40: "0.04", 1000: "0.04"} {
		x := pays(t, "1")
		got := x.decide(Facts{Now: start, Past: past, Data: &Seen{New: n}}, true)
		if got.Pays.Gain != want || got.Pays.Estimator != "line through 5 runs against new objects" {
			t.Errorf("%d new objects: a gain of %s by %s, want %s", n, got.Pays.Gain, got.Pays.Estimator, want)
		}
	}
}

// A plain computation with floats gives the same line.
func TestPays_AgreesWithAPlainRegression(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := 6 + rng.IntN(20)
		var values, costs []string
		var fresh []int
		for range n {
			values, costs = append(values, fmt.Sprintf("%.4f", rng.Float64())), append(costs, "1")
			fresh = append(fresh, rng.IntN(50))
		}
		at := rng.IntN(60)
		var sx, sy, sxx, sxy, k float64
		low, high := 1<<30, -1
		for i := 1; i < n; i++ {
			var a, b float64
			_, _ = fmt.Sscan(values[i], &a)
			_, _ = fmt.Sscan(values[i-1], &b)
			x, y := float64(fresh[i]), a-b
			sx, sy, sxx, sxy, k = sx+x, sy+y, sxx+x*x, sxy+x*y, k+1
			low, high = min(low, fresh[i]), max(high, fresh[i])
		}
		if low == high {
			continue
		}
		slope := (k*sxy - sx*sy) / (k*sxx - sx*sx)
		want := sy/k + slope*(float64(min(max(at, low), high))-sx/k)
		x := pays(t, "1")
		got := x.decide(Facts{Now: start, Past: runs(t, values, fresh, costs), Data: &Seen{New: at}}, true)
		var gain float64
		_, _ = fmt.Sscan(got.Pays.Gain, &gain)
		if diff := gain - want; diff > 2e-6 || diff < -2e-6 {
			t.Fatalf("a gain of %s, the plain line has %v", got.Pays.Gain, want)
		}
	}
}

func TestPays_BeginsOnceTheLastRunIsTooOld(t *testing.T) {
	past := runs(t, []string{"0.9", "0.9", "0.9", "0.9"}, nil, []string{"1", "1", "1", "1"})
	x := pays(t, "5")
	x.Latest = 30
	last := start.AddDate(0, 0, 3)
	for days, pass := range map[int]bool{29: false, 30: true} {
		got := x.decide(Facts{Now: last.AddDate(0, 0, days), Last: last, Past: past}, false)
		if got.Pass != pass || !strings.Contains(got.Why, "is worth $0.00, and a run costs $1.00") {
			t.Errorf("after %d days: %t: %s", days, got.Pass, got.Why)
		}
	}
}

// A metric that should fall gains by falling.
func TestPays_MinimizesALoss(t *testing.T) {
	past := runs(t, []string{"4", "3", "2", "1"}, nil, []string{"1", "1", "1", "1"})
	x := pays(t, "1")
	x.Goal, x.Point = pipeline.Minimize, "1"
	if got := x.decide(Facts{Now: start, Past: past}, false); got.Pays.Gain != "1" || !got.Pass {
		t.Errorf("%+v: %s", got.Pays, got.Why)
	}
}

func TestPrice_WaitsAndNeverForEver(t *testing.T) {
	c := Conditions{Price: &Price{Most: *rate(t, "1.20"), By: time.Hour}}
	for _, x := range []struct {
		name  string
		after time.Duration
		price *money.Rate
		begin bool
		wait  time.Duration // after the due time
		says  string
	}{
		{"at the limit", 0, rate(t, "1.20"), true, 0, "spot costs $1.20 an hour, at most $1.20"},
		{"above", 0, rate(t, "1.21"), false, 10 * time.Minute, "the run waits until 2026-11-02 04:00 UTC at most"},
		{"at the limit after a wait", 40 * time.Minute, rate(t, "1.20"), true, 0, "at most $1.20: the run has waited 40m"},
		{"above, near the end", 55 * time.Minute, rate(t, "2"), false, time.Hour, "waits until"},
		{"above, at the end", time.Hour, rate(t, "2"), true, 0, "the run has waited 1h and begins at any price"},
		{"nothing fits", 0, nil, false, 10 * time.Minute, "nothing for sale fits"},
		{"nothing fits at the end", 2 * time.Hour, nil, true, 0, "begins at any price"},
	} {
		v := c.Decide(Facts{Now: start.Add(x.after), Since: start, Price: x.price, Offer: "spot"})
		if v.Begin != x.begin || x.wait > 0 && !v.Wait.Equal(start.Add(x.wait)) || !strings.Contains(v.Checks[0].Why, x.says) {
			t.Errorf("%s: %+v, want %q", x.name, v, x.says)
		}
	}
}

func TestDecide_SkipsAtTheFirstConditionThatDoesNotHold(t *testing.T) {
	c := Conditions{Data: &Data{Path: "/new", AtLeast: 3}, Price: &Price{Most: *rate(t, "1"), By: time.Hour}}
	v := c.Decide(Facts{Now: start, Since: start, Data: &Seen{New: 2}, Price: rate(t, "9")})
	if v.Begin || !v.Wait.IsZero() || len(v.Checks) != 1 || v.Why != "2 new objects, and a run needs 3" {
		t.Errorf("%+v", v)
	}
	v = c.Decide(Facts{Now: start, Since: start, Data: &Seen{Err: "the server has no folder /new"}})
	if v.Begin || !strings.Contains(v.Why, "the new data was not counted: the server has no folder /new") {
		t.Errorf("%+v", v)
	}
	v = c.Decide(Facts{Now: start, Since: start, Data: &Seen{New: 3}, Price: rate(t, "1")})
	if !v.Begin || len(v.Checks) != 2 {
		t.Errorf("%+v", v)
	}
}

func TestCheck_NamesTheField(t *testing.T) {
	p, err := pipeline.New([]pipeline.Stage{{Name: "evaluate", Outs: []string{"r.json"}, Metrics: []string{"r.json"}}})
	must.Do(t, err)
	good := usd(t, "5")
	for _, c := range []struct {
		when Conditions
		want string
	}{
		{Conditions{Data: &Data{}}, "on_data: write a folder"},
		{Conditions{Data: &Data{Path: "a\nb", AtLeast: 1}}, "on_data: write a folder"},
		{Conditions{Data: &Data{Path: "/a"}}, "at_least: 0: write how many"},
		{Conditions{Price: &Price{By: time.Hour}}, "not_before: the price must be above zero"},
		{Conditions{Price: &Price{Most: 1, By: 8 * 24 * time.Hour}}, "by: 192h0m0s"},
		{Conditions{Pays: &Pays{Metric: "evaluate.a"}}, "when_it_pays.value_of_point"},
		{Conditions{Pays: &Pays{Value: good, Metric: "evaluate.a", Point: "0"}}, "when_it_pays.point"},
		{Conditions{Pays: &Pays{Value: good, Metric: "evaluate.a", Goal: "up"}}, "when_it_pays.goal"},
		{Conditions{Pays: &Pays{Value: good}}, "when_it_pays.metric"},
		{Conditions{Pays: &Pays{Value: good, Metric: "a", AtLeast: 101}}, "when_it_pays.runs"},
		{Conditions{Pays: &Pays{Value: good, Metric: "nope.f1"}}, `when_it_pays.metric: "nope.f1" is a metric of no stage`},
		{Conditions{Pays: &Pays{Value: good, Metric: "evaluate."}}, "when_it_pays.metric"},
	} {
		if err := c.when.Check(p); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.when, err, c.want)
		}
	}
	if x := (&Pays{Value: good, Metric: "f1"}); (&Conditions{Pays: x}).Check(p) != nil || x.Stage != "evaluate" || x.Figure != "f1" {
		t.Errorf("the name alone: %+v", x)
	}
	x := &Pays{Value: good, Metric: "evaluate.top.five"}
	if err := (&Conditions{Pays: x}).Check(p); err != nil || x.Stage != "evaluate" || x.Figure != "top.five" || x.AtLeast != 3 {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestWeeks_AddUp(t *testing.T) {
	dollars := func(n int64) *money.Amount { a := usd(t, fmt.Sprint(n)); return &a }
	weeks := Weeks([]Run{
		{Due: start, Cost: *dollars(4), OnDemand: dollars(10), Value: "0.80"},
		{Due: start.AddDate(0, 0, 6), Skipped: 5},
		{Due: start.AddDate(0, 0, 6).Add(20*time.Hour + 59*time.Minute), Cost: *dollars(5), OnDemand: dollars(11), Value: "0.83"},
		{Due: start.AddDate(0, 0, 7), Cost: *dollars(6), OnDemand: dollars(12), Value: "0.81"},
		{Due: start.AddDate(0, 0, 8), Cost: *dollars(7), Open: true},
		{Due: start.AddDate(0, 0, 21), Skipped: 1},
	}, false)
	want := []string{"2026-11-02 2 5 $9.00 false $21.00 0.03", "2026-11-09 2 0 $13.00 true - -0.02", "2026-11-23 0 1 $0.00 false $0.00 "}
	if len(weeks) != len(want) {
		t.Fatalf("%+v", weeks)
	}
	for i, w := range weeks {
		onDemand := "-"
		if w.OnDemand != nil {
			onDemand = money.Format(*w.OnDemand, money.USD, 2)
		}
		got := fmt.Sprint(w.Begin.Format(time.DateOnly), " ", w.Runs, " ", w.Skipped, " ", money.Format(w.Cost, money.USD, 2), " ", w.Open, " ",
			onDemand, " ", w.Gain)
		if got != want[i] {
			t.Errorf("week %d: %q, want %q", i, got, want[i])
		}
	}
}
