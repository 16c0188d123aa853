package show_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

var causes = []string{"volume", "price", "mix", "efficiency", "failures", "waiting", "unmatched"}

func line(name, before, after string, parts ...string) api.WhyLine {
	l := api.WhyLine{Name: name, Currency: money.USD, Before: amount(before), After: amount(after), Parts: map[string]money.Amount{}}
	l.Change = l.After.Sub(l.Before)
	for i := 0; i < len(parts); i += 2 {
		l.Parts[parts[i]] = amount(parts[i+1])
	}
	return l
}

func TestWhy_WaterfallFitsEightyColumns(t *testing.T) {
	v := api.Why{By: "team", Causes: causes,
		Totals: []api.WhyLine{line("", "1200", "1814.5", "volume", "400", "price", "-100.5", "mix", "250", "efficiency", "-35", "failures", "99.99", "waiting", "0.01")},
		Lines: []api.WhyLine{line("vision", "1000", "1700", "volume", "500", "price", "-100.5", "mix", "250", "efficiency", "-35", "failures", "85.5"),
			line("", "200", "114.5", "volume", "-100", "failures", "14.49", "waiting", "0.01")},
		Jobs: []api.WhyJob{{Job: "lm-17", Currency: money.USD, After: amount("800"), Change: amount("800")}, {Job: "lm-3", Currency: money.USD, Before: amount("300.25"), Change: amount("-300.25")}}}
	for name, text := range map[string]string{"why.80": spending.Why(v, "2026-10", "2026-11", show.Place{Width: 80, Now: now}),
		"why.piped": spending.Why(v, "2026-10-01..2026-10-15", "2026-11", show.Place{})} {
		golden.Check(t, name+".txt", text)
		for l := range strings.Lines(text) {
			if name == "why.80" && len([]rune(strings.TrimSuffix(l, "\n"))) > 80 {
				t.Errorf("too wide: %s", l)
			}
		}
	}
}

// A part too small to see beside the cost has no bar and no column, and the difference between the totals and the lines
// is a row of its own.
func TestWhy_OmitsInvisibleParts(t *testing.T) {
	v := api.Why{By: "project", Causes: causes, Totals: []api.WhyLine{line("", "10", "12", "volume", "1.5", "waiting", "0.499999999999", "price", "0.000000000001")},
		Lines:   []api.WhyLine{line("a", "10", "12", "volume", "2.5", "waiting", "-0.500000000001", "price", "0.000000000001")},
		Between: []api.WhyLine{line("", "0", "0", "volume", "-1", "waiting", "1")}}
	text := spending.Why(v, "2026-10", "2026-11", show.Place{Width: 80, Now: now})
	if strings.Contains(text, "0000") || strings.Contains(text, "PRICE") || !strings.Contains(text, "(between)") || !strings.Contains(text, "-$1.00") {
		t.Error(text)
	}
	v.Between = []api.WhyLine{line("", "0", "0", "volume", "-0.000000000001", "waiting", "0.000000000001")}
	if text := spending.Why(v, "2026-10", "2026-11", show.Place{Width: 80, Now: now}); strings.Contains(text, "between") {
		t.Error(text)
	}
}

// The bars of two periods have different names, a long title wraps, and jobs are listed once.
func TestWhy_NamesItsBarsAndWraps(t *testing.T) {
	v := api.Why{By: "job", Causes: causes, Totals: []api.WhyLine{line("", "10", "12", "volume", "2")},
		Lines: []api.WhyLine{line("lm-1", "10", "12", "volume", "2")},
		Jobs:  []api.WhyJob{{Job: "lm-1", Currency: money.USD, Before: amount("10"), After: amount("12"), Change: amount("2")}}}
	text := spending.Why(v, "2026-11-26T10:00:00Z..2026-11-26T11:00:00Z", "2026-11-26T11:00:00Z..2026-11-26T12:00:00Z", show.Place{Width: 80, Now: now})
	if strings.Count(text, "  before ") != 1 || strings.Count(text, "  after ") != 1 || strings.Count(text, "JOB") != 1 {
		t.Error(text)
	}
	for l := range strings.Lines(text) {
		if len(l) > 81 {
			t.Errorf("too wide: %s", l)
		}
	}
}
