package show_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
	"scrimp/internal/work/commit"
	ownership "scrimp/internal/work/own"
)

var firstHour = commit.Calendar{Zero: time.Date(2021, 2, 1, 0, 0, 0, 0, time.UTC)}

func replayed(t *testing.T) purchase.Replay {
	t.Helper()
	p := commit.Policy{Price: commit.Share(7200), Months: 12, Insure: 0.1, Fall: 5000}
	play := func() purchase.Replay {
		var results []commit.Result
		for i, shape := range []string{"growth", "from-zero"} {
			r, err := commit.Generate(shape, firstHour.Month(26), 100, 1)
			must.Do(t, err)
			r.Name = []string{"eu-west", "a-region-whose-name-is-long-beyond-all-that-a-table-has-room-for"}[i]
			results = append(results, p.Simulate(r, firstHour, 12, 26, true))
		}
		return purchase.ReplayOf(p, results, firstHour, 12, 26)
	}
	v := play()
	for _, insure := range []float64{0, 0.1, 0.5} {
		p.Insure = insure
		one := play()
		v.Curve = append(v.Curve, purchase.Point{Insure: insure, Cost: one.Mean.All.Cost, Falls: one.Mean.Falls.Cost})
	}
	return v
}

const twoTerms = `
on_demand: {price: 4, source: example}
terms:
  - {name: reserved-1y, kind: reserved, years: 1, hourly: 2.88, source: example}
  - {name: savings-plan-3y-partly-upfront, kind: savings-plan, years: 3, upfront: 26280, hourly: 1, source: example}
`

func commitPlans(t *testing.T, shape string) (list []purchase.Plan) {
	t.Helper()
	terms, err := commit.ReadTerms("terms.yaml", []byte(twoTerms))
	must.Do(t, err)
	r, err := commit.Generate(shape, firstHour.Month(14), 100, 1)
	must.Do(t, err)
	for _, o := range terms.Offers {
		p := commit.Policy{Price: o.Price, Months: 12 * o.Years, Fall: 5000}
		list = append(list, purchase.PlanOf(p.Outlook(r, firstHour, nil, []int64{5000, 10_000}), p, o, &terms))
	}
	return list
}

// Commitments and ownership print for people and programs; no line exceeds the terminal's width.
func TestCommit_MatchesGolden(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile("../../../docs/own.md")
		must.Do(t, err)
		_, rest, _ := strings.Cut(string(b), "<!-- file: "+name+" -->")
		_, rest, _ = strings.Cut(rest, "```yaml\n")
		file, _, _ := strings.Cut(rest, "```")
		return []byte(file)
	}
	tco, err := ownership.ParseTCO("model.yaml", read("model.yaml"))
	must.Do(t, err)
	roi, err := ownership.ParseROI("change.yaml", read("change.yaml"))
	must.Do(t, err)
	replay, flat, zero := replayed(t), commitPlans(t, "flat"), commitPlans(t, "from-zero")
	golden.JSON(t, "commit-simulate.json", replay)
	golden.JSON(t, "commit-plan.json", flat[0])
	golden.JSON(t, "commit-plan-zero.json", zero[1])
	golden.JSON(t, "tco.json", purchase.TCOOf(tco, ""))
	golden.JSON(t, "roi.json", purchase.ROIOf(roi))
	page, err := purchase.ROIPage(roi)
	must.Do(t, err)
	golden.Check(t, "roi.html", string(page))
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "piped": {}} {
		for name, text := range map[string]string{
			"commit-simulate": replay.Text(p), "commit-plan": flat[0].Text(p), "commit-plan-zero": zero[1].Text(p),
			"commit-terms": purchase.Terms(flat, p), "tco": purchase.TCOOf(tco, "").Text(p), "roi": purchase.ROIOf(roi).Text(p),
		} {
			golden.Check(t, name+"."+width, text)
			for line := range strings.Lines(text) {
				if p.Width > 0 && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > p.Width {
					t.Errorf("%s: a line is wider than %d columns: %s", name, p.Width, line)
				}
			}
		}
	}
}

// By hand (docs/commit.md): 100 machines that always run, at $4.00 an hour on-demand and $2.88 committed for a year.
func TestCommitPlan_ReproducesTheDocsToTheCent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/commit.md")
	must.Do(t, err)
	v := commitPlans(t, "flat")[0]
	if v.BuyNow != 100 || v.Owed.String() != "2522880" || v.BreakEven == nil || *v.BreakEven != 9 {
		t.Errorf("buy %d, owed %s, paid off in month %v", v.BuyNow, v.Owed, v.BreakEven)
	}
	f := v.Falls[0]
	near := func(a *float64, b float64) bool { return a != nil && *a > b-0.005 && *a < b+0.005 }
	if !near(f.Cost, 144) || !near(f.Regret, 72) || f.RegretAmount.String() != "1261440" {
		t.Errorf("%v %%, regret %v %%, $%v", *f.Cost, *f.Regret, *f.RegretAmount)
	}
	for _, text := range []string{"$2,522,880.00", "month 9", "144 %", "$1,261,440.00"} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/commit.md does not print %s", text)
		}
	}
	if z := commitPlans(t, "from-zero")[1]; z.BuyNow != 0 || z.BreakEven != nil || z.Months[0].Cost != nil {
		t.Errorf("without demand: %+v", z)
	}
}

// The hourly payment excludes the upfront part: 100 units at $1 an hour and $26,280 upfront each over three years owe
// $5,256,000. A term that is paid upfront has no hourly payment.
func TestCommitPlan_SplitsOwedIntoUpfrontAndHourly(t *testing.T) {
	v := commitPlans(t, "flat")[1]
	if v.Owed.String() != "5256000" || v.Upfront.String() != "2628000" || v.AnHour.String() != "100" {
		t.Errorf("owed %s, %s of it at once, %s an hour", v.Owed, v.Upfront, v.AnHour)
	}
	if text := v.Text(show.Place{}); !strings.Contains(text, "$5256000.00 owed in all, $2628000.00 of it at once and $100.0000 an hour.") {
		t.Errorf("%s", text)
	}
	none := money.Amount{}
	v.AnHour, v.Upfront = &none, v.Owed
	if text := v.Text(show.Place{}); !strings.Contains(text, "$5256000.00 owed, all of it at once.") {
		t.Errorf("%s", text)
	}
}

// The loss if all demand disappears never exceeds the amount owed, even at a discount without a round percentage: 1.50
// of 3.06.
func TestCommitPlan_RegretDoesNotExceedOwed(t *testing.T) {
	terms, err := commit.ReadTerms("terms.yaml", []byte("on_demand: {price: 3.06, source: example}\nterms:\n"+
		"  - {name: a, kind: savings-plan, years: 3, hourly: 1.50, source: example}\n"))
	must.Do(t, err)
	r, err := commit.Generate("flat", firstHour.Month(14), 100, 1)
	must.Do(t, err)
	p := commit.Policy{Price: terms.Offers[0].Price, Months: 36, Fall: 5000}
	v := purchase.PlanOf(p.Outlook(r, firstHour, nil, []int64{10_000}), p, terms.Offers[0], &terms)
	if got := v.Falls[0].RegretAmount; v.Owed.String() != "3942000" || got == nil || got.String() != "3942000" {
		t.Errorf("owed %s, regret %s", v.Owed, got)
	}
}

// At 80 columns no option is omitted, however many there are and however long their names. There is one line per option
// about what costs less than what. Options with equal costs are both the cheapest.
func TestTCO_FitsManyOptionsWithLongNames(t *testing.T) {
	text := "name: n\nmonths: 12\noptions:\n"
	for i := range 6 {
		text += fmt.Sprintf("  a-way-to-run-the-model-whose-name-is-long-number-%d: [{phase: training, what: a, monthly: %d}]\n", i, 100+max(i, 1))
	}
	tco, err := ownership.ParseTCO("a.yaml", []byte(text))
	must.Do(t, err)
	got := purchase.TCOOf(tco, "").Text(show.Place{Width: 80, Now: now})
	for i := range 6 {
		if total := fmt.Sprintf("$%d.00", 12*(100+max(i, 1))); !strings.Contains(got, total) || !strings.Contains(got, fmt.Sprintf("\n%d: a-way", i+1)) {
			t.Errorf("option %d, %s, is missing", i, total)
		}
	}
	if n := strings.Count(got, "costs less in all than"); n != 5 { // all but the dearest
		t.Errorf("%d lines say what costs less", n)
	}
	if !strings.Contains(strings.ReplaceAll(got, "\n", " "), "Cheapest: a-way-to-run-the-model-whose-name-is-long-number-0 and "+
		"a-way-to-run-the-model-whose-name-is-long-number-1, which cost the same.") {
		t.Error("the tie is not said")
	}
	for line := range strings.Lines(got) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("a line is wider than 80 columns: %s", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A change that breaks even exactly at the end neither pays nor loses.
func TestROI_SaysThatItBreaksEven(t *testing.T) {
	for text, says := range map[string]string{
		"before: [{what: a, monthly: 3}]\nafter: []\ninvestment: [{what: b, once: 36}]": "It breaks even:",
		"before: [{what: a, monthly: 3}]\nafter: []\ninvestment: [{what: b, once: 37}]": "It does not pay.",
		"before: [{what: a, monthly: 3}]\nafter: []\ninvestment: [{what: b, once: 35}]": "It pays.",
		"before: []\nafter: []\ninvestment: []":                                         "It neither saves nor costs money.",
	} {
		roi, err := ownership.ParseROI("a.yaml", []byte("name: n\nmonths: 12\n"+text))
		must.Do(t, err)
		if got := purchase.ROIOf(roi).Text(show.Place{}); !strings.Contains(got, "\n"+says) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// The table of a simulation is followed by an explanation of the row of means.
func TestCommitSimulate_ExplainsMean(t *testing.T) {
	v := replayed(t)
	if got := v.Text(show.Place{}); !strings.Contains(got, "mean gives each region the same weight") {
		t.Errorf("%s", got)
	}
	v.Regions = v.Regions[:1]
	if got := v.Text(show.Place{}); strings.Contains(got, "same weight") {
		t.Errorf("there is no mean of one region: %s", got)
	}
}
