package cli_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of docs/half-price.md is what the simulations that it names cost, and each change saves 40 % or more. The
// on-demand rows are also price times hours, by hand.
func TestHalfPrice_IsWhatTheSimulationCosts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "half-price.md"))
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	for _, m := range regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n(?:<!--[^\n]*-->\n)?```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		h.write(m[1], m[2])
	}
	h.do("market", "generate", "--from", "seen.yaml", "--seed", "1", "--length", "720h", "-o", "drawn.yaml")
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| (\\$[0-9.]+) \\| ([0-9]+ %) \\| ([0-9.]+ h) \\| ([0-9]+ of [0-9]+) \\|$").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) != 5 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	base := 0.0
	for i, row := range rows {
		options := row[1] + " --market drawn.yaml --seeds 20 --policy default"
		if !strings.Contains(string(page), "\nscrimp simulate "+options+"\n") {
			t.Errorf("the page does not print scrimp simulate %s", options)
		}
		var got struct {
			Policies []struct {
				USD    float64 `json:"mean_usd"`
				Misses int     `json:"misses"`
				Runs   int     `json:"runs"`
				Finish float64 `json:"finish_s"`
			} `json:"policies"`
		}
		if err := json.Unmarshal([]byte(h.out(append([]string{"simulate", "--json"}, strings.Fields(options)...)...)), &got); err != nil || len(got.Policies) != 1 {
			t.Fatalf("%s: %v, %+v", options, err, got)
		}
		p := got.Policies[0]
		if i == 0 {
			base = p.USD
		}
		want := []string{fmt.Sprintf("$%.2f", p.USD), fmt.Sprintf("%.0f %%", 100*(1-p.USD/base)), fmt.Sprintf("%.1f h", p.Finish/3600),
			fmt.Sprintf("%d of %d", p.Misses, p.Runs)}
		for j, text := range want {
			if row[2+j] != text {
				t.Errorf("%s: the page says %s, and the simulation %s", row[1], row[2+j], text)
			}
		}
		if i > 0 && p.USD > 0.6*base {
			t.Errorf("%s saves less than 40 %%", row[1])
		}
		if byHand := map[int]float64{0: 3.06 * (8 + 0.05), 1: 0.526 * (8/0.4 + 0.05)}[i]; byHand > 0 && math.Abs(p.USD-byHand) > 0.005*byHand {
			t.Errorf("%s costs $%.4f, and by hand $%.4f", row[1], p.USD, byHand)
		}
	}
}
