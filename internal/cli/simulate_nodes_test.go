package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// For several numbers of machines the JSON has one line each, and the table has the same figures for each machine. On
// demand, a machine costs the same for any number. The optimum rises with the number, because more machines can be had
// in fewer ticks.
func TestSimulateZones_ComparesNumbersOfMachinesOnGeneratedMarket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	args := []string{"simulate", "zones", "--generated", "7", "--nodes", "1,4,16", "--policy", "on-demand,optimum"}
	type policy struct {
		Name string  `json:"name"`
		USD  float64 `json:"mean_usd"`
		Runs int     `json:"runs"`
	}
	each := map[string][]float64{}
	table := strings.Fields(h.out(args...))
	for _, line := range strings.Split(strings.TrimSpace(h.out(append(args, "--json")...)), "\n") {
		var got struct {
			Nodes    int
			Settings []struct {
				Sight    string   `json:"sight"`
				Policies []policy `json:"policies"`
			}
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		sum, runs := map[string]float64{}, 0
		for _, s := range got.Settings {
			if s.Sight != "A" {
				continue
			}
			for _, p := range s.Policies {
				sum[p.Name] += p.USD * float64(p.Runs)
			}
			runs += s.Policies[0].Runs
		}
		for name, usd := range sum {
			usd /= float64(runs * got.Nodes)
			each[name] = append(each[name], usd)
			if text := strings.Join(table, " "); !strings.Contains(text, fmt.Sprintf("%.2f", usd)) {
				t.Errorf("%d machines: the table has no %.2f for %s: %s", got.Nodes, usd, name, text)
			}
		}
	}
	d, o := each["on-demand"], each["optimum"]
	if len(d) != 3 || fmt.Sprintf("%.6f %.6f", d[0], d[0]) != fmt.Sprintf("%.6f %.6f", d[1], d[2]) {
		t.Errorf("on demand, a machine costs %v for 1, 4 and 16", d)
	}
	if len(o) != 3 || o[0] > o[1] || o[1] > o[2] || o[2] > d[2] {
		t.Errorf("at best, a machine costs %v for 1, 4 and 16; on demand %v", o, d)
	}
	for _, bad := range [][2]string{{"4,4", "4 is there twice"}, {"0", "give 1 to 16"}, {"1,17", "give 1 to 16"}} {
		if text, err := h.try("simulate", "zones", "--generated", "7", "--nodes", bad[0]); err == nil ||
			!strings.Contains(text, bad[1]) {
			t.Errorf("--nodes %s: %v: %s", bad[0], err, text)
		}
	}
	if text, err := h.try("simulate", "zones", "--generated", "7", "--nodes", "2", "--alone"); err == nil ||
		!strings.Contains(text, "leave --alone out") {
		t.Errorf("%v: %s", err, text)
	}
}
