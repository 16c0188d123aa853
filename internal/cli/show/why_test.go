package show_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestWhy_IsAWaterfallOfEightyColumns(t *testing.T) {
	line := func(name, before, after string, parts ...string) api.WhyLine {
		l := api.WhyLine{Name: name, Currency: money.USD, Before: amount(before), After: amount(after), Parts: map[string]money.Amount{}}
		l.Change = l.After.Sub(l.Before)
		for i := 0; i < len(parts); i += 2 {
			l.Parts[parts[i]] = amount(parts[i+1])
		}
		return l
	}
	v := api.Why{By: "team", Causes: []string{"volume", "price", "mix", "efficiency", "failures", "waiting", "unmatched"},
		Totals: []api.WhyLine{line("", "1200", "1814.5", "volume", "400", "price", "-100.5", "mix", "250", "efficiency", "-35", "failures", "99.99", "waiting", "0.01")},
		Lines: []api.WhyLine{line("vision", "1000", "1700", "volume", "500", "price", "-100.5", "mix", "250", "efficiency", "-35", "failures", "85.5"),
			line("", "200", "114.5", "volume", "-100", "failures", "14.49", "waiting", "0.01")},
		Jobs: []api.WhyJob{{Job: "lm-17", Currency: money.USD, After: amount("800"), Change: amount("800")}, {Job: "lm-3", Currency: money.USD, Before: amount("300.25"), Change: amount("-300.25")}}}
	for name, text := range map[string]string{"why.80": show.Why(v, "2026-10", "2026-11", show.Place{Width: 80, Now: now}),
		"why.piped": show.Why(v, "2026-10-01..2026-10-15", "2026-11", show.Place{})} {
		golden.Check(t, name+".txt", text)
		for l := range strings.Lines(text) {
			if name == "why.80" && len([]rune(strings.TrimSuffix(l, "\n"))) > 80 {
				t.Errorf("too wide: %s", l)
			}
		}
	}
}
