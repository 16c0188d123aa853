package show_test

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/test/golden"
	"scrimp/internal/work/commit"
	ownership "scrimp/internal/work/own"
)

var firstHour = commit.Calendar{Zero: time.Date(2021, 2, 1, 0, 0, 0, 0, time.UTC)}

func replayed(t *testing.T) show.CommitReplay {
	t.Helper()
	p := commit.Policy{Price: commit.Share(7200), Months: 12, Insure: 0.1, Fall: 5000}
	play := func() show.CommitReplay {
		var results []commit.Result
		for i, shape := range []string{"growth", "from-zero"} {
			r, err := commit.Generate(shape, firstHour.Month(26), 100, 1)
			if err != nil {
				t.Fatal(err)
			}
			r.Name = []string{"eu-west", "a-region-whose-name-is-long-beyond-all-that-a-table-has-room-for"}[i]
			results = append(results, p.Simulate(r, firstHour, 12, 26, true))
		}
		return show.CommitReplayOf(p, results, firstHour, 12, 26)
	}
	v := play()
	for _, insure := range []float64{0, 0.1, 0.5} {
		p.Insure = insure
		one := play()
		v.Curve = append(v.Curve, show.CommitPoint{Insure: insure, Cost: one.Mean.All.Cost, Falls: one.Mean.Falls.Cost})
	}
	return v
}

const twoTerms = `
on_demand: {price: 4, source: example}
terms:
  - {name: reserved-1y, kind: reserved, years: 1, hourly: 2.88, source: example}
  - {name: savings-plan-3y-partly-upfront, kind: savings-plan, years: 3, upfront: 26280, hourly: 1, source: example}
`

func commitPlans(t *testing.T, shape string) (list []show.CommitPlan) {
	t.Helper()
	terms, err := commit.ReadTerms("terms.yaml", []byte(twoTerms))
	if err != nil {
		t.Fatal(err)
	}
	r, err := commit.Generate(shape, firstHour.Month(14), 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range terms.Offers {
		p := commit.Policy{Price: o.Price, Months: 12 * o.Years, Fall: 5000}
		list = append(list, show.CommitPlanOf(p.Outlook(r, firstHour, nil, []int64{5000, 10_000}), p, o, &terms))
	}
	return list
}

// Commitments and ownership are printed as people and programs read them; no line is wider than the terminal.
func TestCommitmentsAndOwnershipArePrinted(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile("../../../docs/own.md")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "<!-- file: "+name+" -->")
		_, rest, _ = strings.Cut(rest, "```yaml\n")
		file, _, _ := strings.Cut(rest, "```")
		return []byte(file)
	}
	tco, err := ownership.ParseTCO("model.yaml", read("model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	roi, err := ownership.ParseROI("change.yaml", read("change.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	replay, flat, zero := replayed(t), commitPlans(t, "flat"), commitPlans(t, "from-zero")
	golden.JSON(t, "commit-simulate.json", replay)
	golden.JSON(t, "commit-plan.json", flat[0])
	golden.JSON(t, "commit-plan-zero.json", zero[1])
	golden.JSON(t, "tco.json", show.TCOOf(tco, ""))
	golden.JSON(t, "roi.json", show.ROIOf(roi))
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "piped": {}} {
		for name, text := range map[string]string{
			"commit-simulate": replay.Text(p), "commit-plan": flat[0].Text(p), "commit-plan-zero": zero[1].Text(p),
			"commit-terms": show.CommitTerms(flat, p), "tco": show.TCOOf(tco, "").Text(p), "roi": show.ROIOf(roi).Text(p),
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

// By hand (docs/commit.md): 100 machines that always run, $4.00 an hour on demand, $2.88 committed for a year.
func TestCommitPlan_ReproducesTheDocsToTheCent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/commit.md")
	if err != nil {
		t.Fatal(err)
	}
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
