package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// The input and output of a plan follow the benchmark's protocol: purchases of a region at the first hours of months.
func TestCommitSimulate_GivesPurchasesByMonth(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("demand.csv", h.out("commit", "demand", "growth", "--months", "15"))
	var got struct {
		Purchases []struct {
			Region string `json:"region"`
			Start  int    `json:"month_start_hour"`
			Units  int    `json:"units"`
		} `json:"purchases"`
		Mean struct {
			All struct {
				Cost *float64 `json:"cost_percent"`
			} `json:"from_first_purchase"`
		} `json:"mean"`
		Curve []any `json:"curve"`
	}
	text := h.out("commit", "simulate", "--demand", "demand.csv", "--discount", "0.28", "--json", "--curve")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(got.Purchases) == 0 || got.Purchases[0].Region != "growth" || got.Purchases[0].Start != 8760 || got.Purchases[0].Units < 50 ||
		got.Mean.All.Cost == nil || *got.Mean.All.Cost > 95 || len(got.Curve) != 8 {
		t.Errorf("%s", text)
	}
	if again := h.out("commit", "simulate", "--demand", "demand.csv", "--discount", "28%", "--json", "--curve"); again != text {
		t.Errorf("the same again: %s", again)
	}
}

func TestCommit_ErrorNamesProblem(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("demand.csv", h.out("commit", "demand", "flat", "--months", "2"))
	h.write("short.csv", "hour,a\n0,1\n")
	h.write("gap.csv", "hour,a\n0,1\n2,1\n")
	h.write("zero.csv", "hour,a\n0,0\n")
	h.write("terms.yaml", "on_demand: {price: 4, source: list}\nterms:\n  - {name: a, kind: reserved, hourly: 5, source: list}\n")
	h.write("good.yaml", "on_demand: {price: 4, source: list}\nterms:\n  - {name: a, kind: reserved, hourly: 2, source: list}\n")
	for args, says := range map[string]string{
		"simulate --demand demand.csv --discount 100%":                     "--discount: 100% is not from 0.01% to 99.99%",
		"simulate --demand demand.csv --discount 0":                        "--discount: 0 is not from",
		"simulate --demand demand.csv --discount 28":                       "--discount: 28 is not from",
		"simulate --demand demand.csv --discount NaN":                      "--discount: \"NaN\" is not a share",
		"simulate --demand demand.csv --discount 28%":                      "has 2 whole months, and the first purchase comes after 12 (--history)",
		"simulate --demand demand.csv --discount 28% --history 0":          "--history 0: give 1 to 120",
		"simulate --demand demand.csv --discount 28% --insure 100%":        "--insure: 100% is not from 0% to 99%",
		"simulate --demand demand.csv --discount 28% --fall 101%":          "--fall: 101% is not from 0% to 100%",
		"simulate --demand demand.csv --discount 28% --years 2":            "--years 2: terms are sold for 1 and 3 years",
		"simulate --demand demand.csv --discount 28% --start May":          "--start \"May\" is not a day",
		"simulate --demand gap.csv --discount 28%":                         "gap.csv: line 3: hour: 2 stands where hour 1 is expected",
		"plan --demand zero.csv --discount 28%":                            "zero.csv: the demand is zero in every hour",
		"plan --demand short.csv --discount 28%":                           "short.csv: has 1 hour: a plan needs 28 days",
		"plan --demand nowhere.csv --discount 28%":                         "read --demand: open nowhere.csv",
		"plan --demand demand.csv":                                         "say what a commitment costs: --discount SHARE, or --terms FILE",
		"plan --demand demand.csv --discount 28% --terms good.yaml":        "--discount and --terms do not go together",
		"plan --demand demand.csv --years 3 --terms good.yaml":             "--years and --terms do not go together",
		"plan --demand demand.csv --discount 28% --term a":                 "give --terms too",
		"demand flat --months 1e300":                                       `--months "1e300" is not a whole number: scrimp commit demand --help`,
		"demand flat --base 99999999999999999999":                          "is too large or too small",
		"demand flat --seed -1":                                            "is not a whole number from 0 on",
		"plan --demand demand.csv --terms terms.yaml":                      "terms.yaml:3: `terms[0]` costs 125% of on-demand",
		"plan --demand demand.csv --terms good.yaml --term b":              "--term \"b\" is none of a",
		"plan --demand demand.csv --discount 28% --held flat=3":            "--held \"flat=3\": write REGION=UNITS:DAY",
		"plan --demand demand.csv --discount 28% --held b=3:2030-01-01":    "demand.csv has no region \"b\" with demand",
		"plan --demand demand.csv --discount 28% --held flat=3:2020-01-01": "it ends before the demand file does",
		"demand waves":           "shape \"waves\" is none of growth (",
		"demand flat --months 0": "--months 0: give 1 to 120",
	} {
		text, err := h.try(append([]string{"commit"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(text, says) {
			t.Errorf("scrimp commit %s: %v: %s, want %q", args, err, text, says)
		}
	}
	if text := h.do("commit", "plan", "--demand", "demand.csv", "--terms", "good.yaml", "--held", "flat=30:2021-06-01", "--insure", "0"); !strings.Contains(text, "Buy 70 units now") {
		t.Errorf("of 100 machines 30 are held: %s", text)
	}
}

// A plan with only a discount shows it once. The first purchase of flat demand covers all of it.
func TestCommitPlan_ShowsDiscountOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("demand.csv", h.out("commit", "demand", "flat", "--months", "2", "--base", "10000"))
	text := h.do("commit", "plan", "--demand", "demand.csv", "--discount", "0.001", "--insure", "0")
	if !strings.Contains(text, "flat: 1 year at 0.1 % below on-demand\n") || !strings.Contains(text, "Buy 10000 units now.") {
		t.Errorf("%s", text)
	}
}

// A column of zeros in a demand file is left out, and scrimp says so.
func TestCommit_LeavesRegionsWithoutDemandOut(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("demand.csv", "hour,a,b\n"+strings.Join([]string{"0,2,0", "1,2,0", "2,0,0"}, "\n")+"\n")
	text := h.do("commit", "blocks", "--demand", "demand.csv", "--price", "2", "--on-demand", "4")
	if !strings.Contains(text, "left out, because the demand is zero in every hour: b") || !strings.Contains(text, "$16.00") {
		t.Errorf("%s", text)
	}
}

func TestOwnership_PrintsAndReportsErrors(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("tco.yaml", "name: n\nmonths: 12\nvalues: {rate: {value: 2, low: 1, high: 3}}\noptions:\n  cloud: [{phase: training, what: a, monthly: [rate, 5]}]\n")
	h.write("roi.yaml", "name: n\nbefore: [{what: a, monthly: 3.5}]\nafter: []\ninvestment: [{what: b, once: 7}]\n")
	if text := h.do("tco", "tco.yaml"); !strings.Contains(text, "$120.00") || !strings.Contains(text, "$60.00 to $180.00") {
		t.Errorf("%s", text)
	}
	if text := h.do("roi", "roi.yaml"); !strings.Contains(text, "2.0 months") || !strings.Contains(text, "$35.00 in 12 months") || !strings.Contains(text, "unknown: the file does not say") {
		t.Errorf("%s", text)
	}
	if text := h.out("roi", "roi.yaml", "--json"); !strings.Contains(text, `"quality_lost_per_month":null`) || !strings.Contains(text, `"gain":"35"`) {
		t.Errorf("%s", text)
	}
	h.write("mine.html", "<p>mine")
	if text := h.do("roi", "roi.yaml", "--html", "case.html"); !strings.Contains(text, "The business case is in case.html") {
		t.Errorf("%s", text)
	}
	h.do("roi", "roi.yaml", "--html", "case.html") // replaces an earlier one
	for args, says := range map[string]string{"tco tco.yaml --option moon": "--option \"moon\" is none of cloud", "roi tco.yaml": "tco.yaml:5: `options` is not known here",
		"roi roi.yaml --html mine.html":      "the existing file is not a business case: --force replaces it",
		"roi roi.yaml --html nowhere/a.html": "there is no folder nowhere", "tco nowhere.yaml": "read nowhere.yaml", "tco": "FILE is missing"} {
		if text, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(text, says) {
			t.Errorf("scrimp %s: %v: %s, want %q", args, err, text, says)
		}
	}
}

// The costs of the blocks and of the rest add up to the whole, and each follows from its machines, days and price.
func TestCommitBlocks_AddsUp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("plan.csv", h.out("commit", "demand", "batch", "--months", "3"))
	var got struct {
		Blocks []struct {
			Start, End     time.Time
			Days, Machines int
			Cost           string `json:"cost_usd"`
		}
		Advance  string `json:"blocks_usd"`
		Rest     string `json:"rest_usd"`
		Cost     string `json:"cost_usd"`
		OnDemand string `json:"on_demand_usd"`
		Saved    string `json:"saved_usd"`
	}
	h.write("dated.csv", "hour,a\n2027-03-01T00:00:00Z,1\n2027-03-01T01:00:00Z,1\n")
	must.Do(t, json.Unmarshal([]byte(h.out("commit", "blocks", "--demand", "plan.csv", "--price", "20", "--on-demand", "40", "--json")), &got))
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		must.Do(t, err)
		return v
	}
	advance := 0.0
	for _, b := range got.Blocks {
		advance += number(b.Cost)
		if number(b.Cost) != float64(b.Days*24*b.Machines*20) || b.End.Sub(b.Start) != time.Duration(b.Days)*24*time.Hour ||
			b.Start.Format("15:04") != "11:30" {
			t.Errorf("%+v", b)
		}
	}
	units := 0.0
	for _, line := range strings.Split(h.out("commit", "demand", "batch", "--months", "3"), "\n")[1:] {
		if _, n, ok := strings.Cut(line, ","); ok {
			units += number(n)
		}
	}
	if len(got.Blocks) < 3 || number(got.Advance) != advance || number(got.Cost) != advance+number(got.Rest) ||
		number(got.OnDemand) != 40*units || number(got.Saved) != number(got.OnDemand)-number(got.Cost) || number(got.Saved) <= 0 {
		t.Errorf("%v units, %v in advance: %+v", units, advance, got)
	}
	for args, says := range map[string]string{
		"--price 50 --on-demand 40":                                     "--price 50 is not below --on-demand 40",
		"--price -1 --on-demand 40":                                     "--price: ",
		"--price 1 --on-demand 1e9":                                     "--on-demand: ",
		"--price 1 --on-demand 2 --machines 300":                        "--machines 300: give 1 to 256",
		"--price 1 --on-demand 2 --longest 0":                           "--longest 0: give 1 to 182 days",
		"--price 1 --on-demand 2 --demand no.csv":                       "read --demand",
		"--price 1 --on-demand 2 --demand dated.csv --start 2027-01-01": "--start has no effect: dated.csv has the time",
	} {
		out, err := h.try(append([]string{"commit", "blocks", "--demand", "plan.csv"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(out, says) {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
}
