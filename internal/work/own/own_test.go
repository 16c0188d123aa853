package own_test

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/own"
	"scrimp/internal/work/sheet"
)

// documented returns the page of the docs, and a file that it shows under a name.
func documented(t *testing.T, name string) (page, file string) {
	t.Helper()
	b, err := os.ReadFile("../../../docs/own.md")
	must.Do(t, err)
	_, rest, found := strings.Cut(string(b), "<!-- file: "+name+" -->")
	_, rest, fenced := strings.Cut(rest, "```yaml\n")
	file, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		t.Fatalf("docs/own.md prints no %s", name)
	}
	return string(b), file
}

// cents writes an exact sum as a page does.
func cents(t *testing.T, v *big.Rat) string {
	t.Helper()
	a, ok := sheet.Amount(v)
	if !ok {
		t.Fatalf("%v is not an amount", v)
	}
	return strings.Replace(money.Format(a, money.USD, 2), "$", "", 1)
}

// holds compares a sum with one that was computed by hand and that the page shows with thousands separators.
func holds(t *testing.T, page, what string, got *big.Rat, want string) {
	t.Helper()
	if text := cents(t, got); text != strings.ReplaceAll(want, ",", "") {
		t.Errorf("%s: %s, by hand %s", what, text, want)
	}
	if !strings.Contains(page, want) {
		t.Errorf("%s: docs/own.md does not print %s", what, want)
	}
}

func TestTCO_ReproducesTheDocsToTheCent(t *testing.T) {
	page, file := documented(t, "model.yaml")
	v, err := own.ParseTCO("model.yaml", []byte(file))
	must.Do(t, err)
	cloud, premises, hybrid := v.Options[0], v.Options[1], v.Options[2]
	for phase, want := range map[string]string{"development": "91,200.00", "training": "52,848.00", "inference": "34,207.80",
		"maintenance": "4,338.00", "engineering": "50,160.00", "": "232,753.80"} {
		holds(t, page, "cloud, "+phase, v.Phase(cloud, phase), want)
	}
	holds(t, page, "a month", new(big.Rat).Quo(v.Phase(cloud, ""), big.NewRat(36, 1)), "6,465.38")
	for phase, want := range map[string]string{"training": "40,764.80", "inference": "1,541.76", "": "221,346.56"} {
		holds(t, page, "on-premises, "+phase, v.Phase(premises, phase), want)
	}
	holds(t, page, "hybrid", v.Phase(hybrid, ""), "223,668.00")
	if v.Options[v.Cheapest()].Name != "on-premises" {
		t.Errorf("the cheapest is %s", v.Options[v.Cheapest()].Name)
	}
	// By hand: the server costs 38,000 more at first. Three months save 400 × 3.67 - 76.80 + 120.50 - 350 = 1,161.70
	// each, later ones 1,161.70 + 1,036.60 - 46.72 - 760 = 1,391.58: 3,485.10 + 24 × 1,391.58 = 36,883.02 after 27
	// months, and 38,274.60 after 28.
	if m := v.Below(premises, cloud); m != 28 {
		t.Errorf("on-premises costs less from month %d on", m)
	}
	if m := v.Below(cloud, premises); m != 0 {
		t.Errorf("the cloud costs less from month %d on", m)
	}
	swings := v.Swings(premises)
	if len(swings) != 3 || swings[0].Value.Name != "engineer" || cents(t, swings[0].Low) != "195066.56" || cents(t, swings[0].High) != "265146.56" {
		t.Errorf("%+v", swings)
	}
	if to := v.Switches(); len(to) != 3 || to[0].To != "hybrid" {
		t.Errorf("%+v", to)
	}
}

func TestROI_ReproducesTheDocsToTheCent(t *testing.T) {
	page, file := documented(t, "change.yaml")
	v, err := own.ParseROI("change.yaml", []byte(file))
	must.Do(t, err)
	c := v.Case()
	for _, one := range []struct {
		what string
		got  *big.Rat
		want string
	}{{"before", c.Before, "2,937.52"}, {"after", c.After, "1,468.76"}, {"saved", c.Saved, "1,468.76"}, {"lost", c.Lost, "600.00"},
		{"net", c.Net, "868.76"}, {"investment", c.Investment, "7,600.00"}, {"gain", c.Gain, "13,250.24"},
		{"most worth", c.MostWorth, "2,880.23"}} {
		holds(t, page, one.what, one.got, one.want)
	}
	if months, percent := c.Payback.FloatString(1), new(big.Rat).Mul(c.Return, big.NewRat(100, 1)).FloatString(1); months != "8.7" || percent != "174.3" {
		t.Errorf("paid back in %s months, %s %%", months, percent)
	}
}

const change = "name: n\nmonths: 12\n"

// A change that saves nothing never pays for itself. Quality that was not given is unknown, not unchanged.
func TestROI_SaysNeverAndUnknown(t *testing.T) {
	v, err := own.ParseROI("a.yaml", []byte(change+"before: [{what: a, monthly: 10}]\nafter: [{what: a, monthly: 30}]\ninvestment: []\n"))
	must.Do(t, err)
	c := v.Case()
	if v.Quality || c.Payback != nil || c.Return != nil || c.MostWorth != nil || cents(t, c.Gain) != "-240.00" {
		t.Errorf("%+v", c)
	}
	v, err = own.ParseROI("a.yaml", []byte(change+"before: [{what: a, monthly: 30}]\nafter: [{what: a, monthly: 10}]\ninvestment: []\n"+
		"quality: {metric: points, given_up: 0, worth: 5}\n"))
	if c := v.Case(); err != nil || !v.Quality || c.Payback.Sign() != 0 || c.MostWorth != nil || cents(t, c.Gain) != "240.00" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A total equals a simple count over lines and months, in cents.
func TestTCO_AgreesWithAPlainCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		text, want := "name: n\nmonths: 24\noptions:\n  cloud:\n", 0
		for range 1 + rng.IntN(6) {
			price, count := 1+rng.IntN(500), 1+rng.IntN(9)
			from := 1 + rng.IntN(24)
			until := from + rng.IntN(25-from)
			if rng.IntN(2) == 0 {
				text += "    - {phase: training, what: a, once: [" + dollars(price) + ", " + whole(count) + "], at: " + whole(from) + "}\n"
				want += price * count
				continue
			}
			text += "    - {phase: inference, what: b, monthly: [" + whole(count) + ", " + dollars(price) + "], from: " + whole(from) +
				", until: " + whole(until) + "}\n"
			want += price * count * (until - from + 1)
		}
		v, err := own.ParseTCO("a.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := v.Phase(v.Options[0], ""); got.Cmp(big.NewRat(int64(want), 100)) != 0 {
			t.Fatalf("%s: %v, want %d cents", text, got, want)
		}
	}
}

func whole(n int) string { return new(big.Int).SetInt64(int64(n)).String() }

func dollars(cents int) string { return big.NewRat(int64(cents), 100).FloatString(2) }

// Each invalid file is refused with file, line, field and fix.
func TestParse_NamesFileLineAndFix(t *testing.T) {
	const head = "name: n\nmonths: 12\n"
	line := func(s string) string { return head + "options:\n  cloud:\n    - " + s + "\n" }
	for text, says := range map[string]string{
		"":                                     "a.yaml: the file is empty",
		"months: 12\noptions: {}":              "`name` is missing",
		head:                                   "`options` is missing: list 1 to 10",
		head + "options:\n  cloud: []\n":       "`options.cloud` has no lines",
		"name: n\nmonths: 0\n":                 "`months` is \"0\": write a whole number from 1 to 240",
		"name: n\ncurrency: dollars\n":         "`currency` is \"dollars\"",
		line("{what: a, once: 1}"):             "a.yaml:5: `options.cloud[0]` has no phase",
		line("{phase: fun, what: a, once: 1}"): "`options.cloud[0].phase` is \"fun\": write one of development",
		line("{phase: training, once: 1}"):     "`options.cloud[0].what` is missing",
		line("{phase: training, what: a}"):     "needs either once or monthly, and not both",
		line("{phase: training, what: a, once: 1, monthly: 2}"):                                "needs either once or monthly, and not both",
		line("{phase: training, what: a, once: NaN}"):                                          "is \"NaN\": write a decimal",
		line("{phase: training, what: a, once: 1e300}"):                                        "is \"1e300\": write a decimal",
		line("{phase: training, what: a, once: -3}"):                                           "is \"-3\": write an amount such as 12.34, from 0",
		line("{phase: training, what: a, once: 33%}"):                                          "`options.cloud[0].once` is a percentage, and of no amount: write the amount itself",
		line("{phase: training, what: a, monthly: [50%, 33%]}"):                                "`options.cloud[0].monthly` is a percentage, and of no amount",
		"currency: EUR\n" + line("{phase: training, what: a, once: $33}"):                      "`options.cloud[0].once` is \"$33\", and the currency is EUR",
		head + "values: {share: 40%}\noptions: {c: [{phase: training, what: a, once: share}]}": "`options.c[0].once` is a percentage, and of no amount",
		line("{phase: training, what: a, once: [rate, 2]}"):                                    "`options.cloud[0].once[0]` is \"rate\"",
		line("{phase: training, what: a, once: []}"):                                           "has 0 factors",
		line("{phase: training, what: a, once: [1, 1, 1, 1, 1, 1, 1, 1, 1]}"):                  "has 9 factors",
		line("{phase: training, what: a, monthly: [1000000, 1000000]}"):                        "costs more than 10^12 in all",
		line("{phase: training, what: a, monthly: 1, from: 5, until: 4}"):                      "`options.cloud[0].until` is before from",
		line("{phase: training, what: a, monthly: 1, until: 13}"):                              "`options.cloud[0].until` is \"13\"",
		line("{phase: training, what: a, monthly: 1, at: 3}"):                                  "`options.cloud[0].at` goes with once",
		line("{phase: training, what: a, once: 1, from: 3}"):                                   "`options.cloud[0].from` goes with monthly",
		head + "values: {a: 1}\noptions: {cloud: [{phase: training, what: a, once: 1}]}":       "`values.a` is used by no line",
		head + "values: {a: {value: 1, low: 2, high: 3}}\noptions: {}":                         "`values.a` lies outside its range",
		head + "values: {a: {value: 1, low: 0}}\noptions: {}":                                  "`values.a` has one end of a range",
		head + "values: {a: {low: 0, high: 1}}\noptions: {}":                                   "`values.a` has no value",
		head + "values: {12: 1}\noptions: {}":                                                  "`values.12` has a number as its name",
		head + "values: {a: {value: 1, low: 0, high: 1e9}}\noptions: {}":                       "`values.a.high` is \"1e9\"",
	} {
		if _, err := own.ParseTCO("a.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "a.yaml:") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	for text, says := range map[string]string{
		change: "has no before: write before as a list of lines",
		change + "before: [{what: a, once: 3}]\nafter: []\ninvestment: []":                             "`before[0]` is once, and before is paid each month: write monthly",
		change + "before: []\nafter: []\ninvestment: [{what: a, monthly: 3}]":                          "`investment[0]` is each month, and investment is paid once",
		change + "before: [{what: a, monthly: 3, from: 2}]\nafter: []\ninvestment: []":                 "`before[0]` from has no meaning here",
		change + "before: [{phase: training, what: a, monthly: 3}]\nafter: []":                         "`before[0].phase` is of scrimp tco",
		change + "before: [{what: a, monthly: 28%}]\nafter: []\ninvestment: []":                        "`before[0].monthly` is a percentage, and of no amount",
		change + "before: []\nafter: []\ninvestment: []\nquality: {metric: a, given_up: 1, worth: 2%}": "`quality.worth` is a percentage, and of no amount",
		change + "before: []\nafter: []\ninvestment: []\nquality: {metric: a, worth: 1}":               "`quality` has no given_up",
		change + "before: []\nafter: []\ninvestment: []\nquality: {given_up: 1, worth: 1}":             "`quality.metric` is missing",
		change + "before: []\nafter: []\ninvestment: []\nquality: {metric: a, given_up: x, worth: 1}":  "`quality.given_up` is \"x\"",
	} {
		if _, err := own.ParseROI("a.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Percentages of amounts, and dollars, are sums of money.
func TestParse_TakesPercentagesOfAmountsAndDollars(t *testing.T) {
	v, err := own.ParseTCO("a.yaml", []byte("name: n\nmonths: 1\nvalues: {share: 40%, price: $3.06}\noptions:\n  c:\n"+
		"    - {phase: training, what: a, once: [1000, share]}\n    - {phase: training, what: b, monthly: [price, 50%, $2]}\n"))
	must.Do(t, err)
	if got := cents(t, v.Phase(v.Options[0], "")); got != "403.06" {
		t.Errorf("400 and 3.06: %s", got)
	}
}

// Each mistake is reported once.
func TestParse_NamesEachMistakeOnce(t *testing.T) {
	const head = "name: n\nmonths: 12\n"
	for _, text := range []string{"name: {", "", "[]", head + "options: 3", head + "options: {c: 3}", head + "options: {c: [3]}",
		head + "values: {a: 2}\noptions: {c: [{phase: training, what: x, monthly: [b]}]}",
		head + "values: {a: {value: 2, low: x, high: 3}}\noptions: {c: [{phase: training, what: x, monthly: [a]}]}",
		head + "options: {c: [{phase: training, what: [], once: 3}]}", head + "options: {c: [{phase: training, what: x, once: {}}]}"} {
		_, err := own.ParseTCO("a.yaml", []byte(text))
		if list, is := errors.AsType[spec.Problems](err); !is || len(list) != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"values: {a: {value: 1, low: 0, high: 3}}\noptions: {c: [{phase: training, what: a, once: [a, 2%]}]}\n",
		"before: [{what: a, monthly: 3}]\nafter: []\ninvestment: []\nquality: {metric: m, given_up: 1, worth: 2}\n"} {
		f.Add([]byte(change + name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, err := own.ParseTCO("a.yaml", text); err == nil {
			for _, o := range v.Options {
				if _, ok := sheet.Amount(v.Phase(o, "")); !ok {
					t.Errorf("%q: a total is not an amount", text)
				}
				v.Swings(o)
				v.Below(o, v.Options[0])
			}
			v.Switches()
		}
		if v, err := own.ParseROI("a.yaml", text); err == nil {
			c := v.Case()
			if _, ok := sheet.Amount(c.Gain); !ok {
				t.Errorf("%q: a gain is not an amount", text)
			}
			v.Swings()
		}
	})
}
