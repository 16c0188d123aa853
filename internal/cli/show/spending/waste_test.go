package spending_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/advice"
	"scrimp/internal/work/waste"
)

func amountOf(text string) *money.Amount {
	a, err := money.Parse(text)
	if err != nil {
		panic(err)
	}
	return &a
}

func someWaste() api.Waste {
	at := time.Date(2026, 10, 15, 8, 0, 0, 0, time.UTC)
	v := api.Waste{Since: at.AddDate(0, 0, -15), Until: at, Measured: 3, Recurring: 3, Findings: []api.WasteFinding{
		{ID: "w-0123456789", Kind: "unused machine", Team: "research-vision", About: "i-0123456789abcdef0", Currency: "USD", Cost: *amountOf("100.5"),
			Monthly: amountOf("201"), Saving: amountOf("201"), Evidence: "it has had\x1b[31m no task", Action: "stop", Command: "scrimp waste apply w-0123456789 --yes"},
		{ID: "w-1123456789", Kind: "untagged", About: "no team, by ann", Currency: "USD", Cost: *amountOf("20.25"), Monthly: amountOf("40.5"),
			Evidence: "5.0 h belong to nobody", Action: "keep", Command: "write team: in the job file"},
	}}
	v.Totals = []api.WasteTotal{{Currency: "USD", Findings: 2, Cost: *amountOf("120.75"), Monthly: amountOf("241.5"), Saving: amountOf("201"), Unknown: 1}}
	return v
}

func TestWaste_FitsTheTerminalAndAddsUp(t *testing.T) {
	text := spending.Waste(someWaste(), show.Place{Width: 80, Now: time.Now()})
	for line := range strings.Lines(text) {
		if draw.Width(strings.TrimSuffix(line, "\n")) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	text = spending.Waste(someWaste(), show.Place{})
	for _, says := range []string{"w-0123456789", "$100.50", "$120.75", "Stop: scrimp waste apply", "WASTED", "1 finding in USD has no known saving", "Tag it: write team:"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in:\n%s", says, text)
		}
	}
	// The column of costs adds up to its total.
	sum, total := new(big.Rat), new(big.Rat)
	for line := range strings.Lines(text) {
		for _, word := range strings.Fields(line) {
			n, ok := new(big.Rat).SetString(strings.TrimPrefix(word, "$"))
			if !ok || !strings.HasPrefix(word, "$") {
				continue
			}
			if strings.Contains(line, "total") {
				total.Add(total, n)
			} else {
				sum.Add(sum, n)
			}
			break // the first is the cost
		}
	}
	if sum.Cmp(total) != 0 || sum.FloatString(2) != "120.75" {
		t.Errorf("rows have %s, the total %s:\n%s", sum.FloatString(2), total.FloatString(2), text)
	}
}

func TestWaste_SaysWhatItCannotKnow(t *testing.T) {
	v := someWaste()
	v.Findings, v.Totals = nil, nil
	for says, change := range map[string]func(*api.Waste){
		"No waste found.":                func(*api.Waste) {},
		"has no costs that you may see":  func(v *api.Waste) { v.Empty = true },
		"No recurring job has telemetry": func(v *api.Waste) { v.Measured = 0 },
		"No job recurs":                  func(v *api.Waste) { v.Measured, v.Recurring = 0, 0 },
		"The ledger begins there.":       func(v *api.Waste) { v.Short = true },
		"most figures of a month are un": func(v *api.Waste) { v.Since = v.Until.Add(-time.Hour) },
	} {
		v := v
		change(&v)
		if text := spending.Waste(v, show.Place{}); !strings.Contains(text, says) {
			t.Errorf("no %q in %q", says, text)
		}
	}
}

func TestWasteHistory_ShowsPromiseBesideSaving(t *testing.T) {
	list := []api.WasteDecision{{ID: "w-0123456789", At: time.Date(2026, 10, 15, 8, 0, 0, 0, time.UTC), Team: "vision", Kind: "unused machine",
		About: "i-1", Currency: "USD", Promised: amountOf("201"), Days: 15, Due: amountOf("100.5"), Saved: amountOf("98.25")},
		{ID: "w-1123456789", Currency: "USD", Over: true, Days: 30}}
	text := spending.WasteHistory(list, show.Place{})
	for _, says := range []string{"$201.00", "$100.50", "$98.25", "so far", "month over", "15.0"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in:\n%s", says, text)
		}
	}
	if text := spending.WasteHistory(nil, show.Place{}); !strings.Contains(text, "No finding was applied") {
		t.Error(text)
	}
}

// The recommendations of clouds fit the terminal, and no text from a file steers it.
func TestClouds_FitsTheTerminal(t *testing.T) {
	list := []advice.Recommendation{
		{Source: "Azure Advisor", Resource: "vm-\x1b[31mone", Advice: "Right-size or shutdown underutilized virtual machines", Action: waste.Shrink,
			Saving: amountOf("120"), Currency: "USD", Billed: amountOf("10.5"), Check: "az vm show --name vm1", Command: "az vm deallocate --name vm1"},
		{Source: "AWS Cost Optimization Hub", Advice: "PurchaseSavingsPlans", Action: waste.Keep, Saving: amountOf("98.63"), Currency: "USD",
			Command: "scrimp commit plan --demand demand.csv"},
		{Source: "AWS Cost Optimization Hub", Resource: "i-1", Advice: "Stop", Action: waste.Keep, Currency: "USD", Command: "scrimp machines",
			Scrimp: "scrimp's machine, of job train: change resources in its job file"},
	}
	text := spending.Clouds(list, show.Place{Width: 80, Now: time.Now()})
	for line := range strings.Lines(text) {
		if draw.Width(strings.TrimSuffix(line, "\n")) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	text = spending.Clouds(list, show.Place{})
	for _, says := range []string{"BILLED", "$10.50", "az vm show --name vm1 first, then az vm deallocate", "the account", "of job train",
		"Together they save $120.00 a month"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in:\n%s", says, text)
		}
	}
	if text := spending.Clouds(list[1:], show.Place{}); strings.Contains(text, "BILLED") || strings.Contains(text, "Together") {
		t.Errorf("without a bill:\n%s", text)
	}
}
