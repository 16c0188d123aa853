package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	queueTrace = `job_id,workload,arrival_poisson20_s,work_gavel_s,gpu,vcpu,mem_gb,init_delay_s,fetch_delay_s,build_image_delay_s,kill_delay_s,upload_delay_s,image_id
a,x,10,7200.5,1,8,30,60,5,10,1,2,i
b,y,40,3600,1,8,30,60,5,10,1,2,i
c,x,400,9000,1,10,40,60,5,10,1,2,i
`
	queueCatalog = `name,gpu,vcpu,mem_gb,usd_per_hour,instantiate_s,run_worker_s,register_s,terminate_s
one,1,12,64,3.06,20,60,90,1
four,4,48,256,8.00,30,60,90,1
`
)

// The output has the fields of the benchmark's protocol, and is deterministic except for the durations of rounds.
func TestSimulateQueue_ComparesPolicies(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("t.csv", queueTrace)
	h.write("c.csv", queueCatalog)
	var got struct {
		Policies []struct {
			Name   string             `json:"name"`
			Cost   float64            `json:"cost_usd"`
			Mean   float64            `json:"mean_completion_hours"`
			Misses map[string]float64 `json:"misses"`
			Round  map[string]float64 `json:"round_ms"`
		} `json:"policies"`
	}
	text := h.out("simulate", "queue", "--trace", "t.csv", "--catalog", "c.csv", "--json")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(got.Policies) != 5 || got.Policies[0].Name != "no-packing" || got.Policies[4].Name != "default-sla" ||
		len(got.Policies[0].Misses) != 5 || len(got.Policies[0].Round) != 3 || got.Policies[0].Mean < 1 {
		t.Errorf("%s", text)
	}
	// By hand: a is billed at $3.06/h from 320 s (round at 300, 20 s to instantiate) to its end at 470+75+7201 = 7746,
	// the round at 7800 and 1 s; b to 4145, the round at 4200; c from 620 to 770+75+9000 = 9845, the round at 9900.
	want := 3.06 / 3600 * (7801 - 320 + 4201 - 320 + 9901 - 620)
	if d := got.Policies[0].Cost - want; d > 1e-6 || d < -1e-6 {
		t.Errorf("no-packing costs %v, and by hand %v", got.Policies[0].Cost, want)
	}
	table, _, _ := strings.Cut(h.out("simulate", "queue", "--trace", "t.csv", "--catalog", "c.csv"), "\n\n")
	for _, line := range strings.Split(table, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("a line of the table is longer than 80: %s", line)
		}
	}
	var packed struct {
		Results []struct {
			Tasks int     `json:"tasks"`
			Cost  float64 `json:"cost_usd_per_hour"`
			Bound float64 `json:"lp_bound_usd_per_hour"`
		} `json:"results"`
	}
	text = h.out("simulate", "pack", "--trace", "t.csv", "--catalog", "c.csv", "--first", "8", "--repeat", "--json")
	if err := json.Unmarshal([]byte(text), &packed); err != nil || len(packed.Results) != 1 || packed.Results[0].Tasks != 8 ||
		packed.Results[0].Cost != 16 || packed.Results[0].Bound > 16 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestSimulateQueue_ErrorNamesProblem(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("t.csv", queueTrace)
	h.write("c.csv", queueCatalog)
	h.write("large.csv", strings.Replace(queueTrace, "1,10,40", "1,100,40", 1))
	h.write("p.csv", "workload,colocated_with,normalised_throughput\nx,x,0.9\n")
	for args, says := range map[string]string{
		"queue --trace none.csv --catalog c.csv":                            "read --trace: open none.csv",
		"queue --trace t.csv --catalog t.csv":                               "t.csv: line 1: has no column \"name\"",
		"queue --trace t.csv --catalog c.csv --first 0":                     "--first 0: give 1 or more jobs, or leave it out for all",
		"pack --trace t.csv --catalog c.csv --first 0":                      "--first 0: give 1 or more jobs",
		"queue --trace t.csv":                                               "--catalog: missing",
		"queue --trace large.csv --catalog c.csv":                           "large.csv: line 4: job c needs gpu 1, vcpu 100, mem_gb 40, and no machine type in c.csv",
		"queue --trace t.csv --catalog c.csv --work-column hours":           "t.csv: line 1: has no column \"hours\"",
		"queue --trace t.csv --catalog c.csv --policy best":                 "--policy \"best\" is none of no-packing",
		"queue --trace t.csv --catalog c.csv --first -1":                    "--first -1: give 1 or more",
		"queue --trace t.csv --catalog c.csv --interference u90":            "--interference \"u90\": write u95 or pairs:FILE",
		"queue --trace t.csv --catalog c.csv --interference pairs:none.csv": "read --interference: open none.csv",
		"queue --trace t.csv --catalog c.csv --interference pairs:p.csv":    "p.csv: has no line for x beside y",
		"queue --trace t.csv --catalog c.csv --deadline-factor NaN":         "--deadline-factor NaN: give 1 to 1000",
		"queue --trace t.csv --catalog c.csv --deadline-factor 0.5":         "--deadline-factor 0.5: give 1 to 1000",
		"pack --trace t.csv --catalog c.csv --first 4":                      "--first 4: the trace has 3 jobs: add --repeat",
		"pack --trace t.csv --catalog c.csv --repeat":                       "--repeat goes with --first N",
	} {
		text, err := h.try(append([]string{"simulate"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: got %q, want %q", args, text, says)
		}
	}
}
