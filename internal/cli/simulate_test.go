package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// bench writes files of a benchmark with several zones, each window of that many ticks.
func (h *home) bench(ticks int, zones ...string) (args []string) {
	h.t.Helper()
	up, cost := "window,zone,start_tick,ticks,available\n", "window,zone,start_tick,ticks,usd_per_hour\n"
	for i, z := range zones {
		for at, up1 := 0, i; at < ticks; at, up1 = at+40, up1+1 {
			n := min(40, ticks-at)
			up += fmt.Sprintf("0,%s,%d,%d,%d\n", z, at, n, up1%2)
		}
		cost += fmt.Sprintf("0,%s,0,%d,1.25\n", z, ticks)
	}
	h.write("up.csv", up)
	h.write("cost.csv", cost)
	return []string{"simulate", "zones", "--availability", "up.csv", "--prices", "cost.csv"}
}

// The JSON of a benchmark has the names that others read it by, and says how many
// groups of zones the files could not fill.
func TestABenchmarkSaysWhatItLeftOut(t *testing.T) {
	h := newHome(t)
	args := h.bench(960, "us-west-2a", "us-west-2b")
	var got struct {
		Policies []map[string]any `json:"policies"`
		LeftOut  int              `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(h.out(append(args, "--policy", "on-demand,greedy", "--json", "--form", "A,B,A")...)), &got); err != nil {
		t.Fatal(err)
	}
	if got.LeftOut != 9 || len(got.Policies) != 4 {
		t.Errorf("%d pairs left out, %d rows: want 9 and 4", got.LeftOut, len(got.Policies))
	}
	for _, p := range got.Policies {
		for _, name := range []string{"name", "form", "mean_usd", "misses", "runs", "moves_per_run"} {
			if p[name] == nil {
				t.Errorf("a row has no %s: %v", name, p)
			}
		}
	}
	if text := h.do(append(args, "--policy", "on-demand")...); !strings.Contains(text, "9 pairs of group and window left out") {
		t.Errorf("the text does not say it: %s", text)
	}
}

// An optimum that took minutes is printed though it cannot be kept.
func TestABenchmarkEndsWellWhereNothingCanBeKept(t *testing.T) {
	h := newHome(t)
	h.write("file", "")
	t.Setenv("XDG_CACHE_HOME", h.dir+"/file")
	if text := h.do(append(h.bench(960, "us-west-2a", "us-west-2b"), "--policy", "optimum")...); !strings.Contains(text, "not kept") || !strings.Contains(text, "0 of 6") {
		t.Errorf("%s", text)
	}
}

func TestABenchmarkNamesFileLineAndMend(t *testing.T) {
	h := newHome(t)
	h.write("a.csv", "zone,start_tick,ticks,available\nz,0,600,1\n")
	h.write("w.csv", "zone,window,start_tick,ticks\nz,0,0,420\nz,1,0,400\n")
	text, err := h.try("simulate", "deadline", "--availability", "a.csv", "--windows", "w.csv")
	if err == nil || !strings.Contains(text, "w.csv: line 3: field ticks") || !strings.Contains(text, "at least 420") {
		t.Errorf("%v: %s", err, text)
	}
	text, err = h.try(h.bench(900, "us-west-2a", "us-west-2b")...)
	if err == nil || !strings.Contains(text, "up.csv: line 24: ticks") || !strings.Contains(text, "needs 960") {
		t.Errorf("%v: %s", err, text)
	}
}

// Public traces come a zone a file: all that are named make one market.
func TestTracesOfSeveralZonesBecomeOneMarket(t *testing.T) {
	h := newHome(t)
	args := []string{"market", "import", "--spot-price", "0.97", "--on-demand-price", "3.06", "-o", "m.yaml"}
	for _, zone := range []string{"us-east-1a", "us-east-1b", "us-west-2a"} {
		h.write(zone+".json", `{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1, 0, 1, 0]}`)
		args = append(args, zone+".json")
	}
	if text := h.do(args...); !strings.Contains(text, "6 offers") {
		t.Errorf("three zones, spot and on-demand: %s", text)
	}
	if text, err := h.try("market", "import"); err == nil || !strings.Contains(text, "FILE… is missing") {
		t.Errorf("no file: %v, %s", err, text)
	}
}
