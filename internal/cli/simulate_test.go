package cli_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// bench writes the files of a benchmark with several zones and windows of the given number of ticks.
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

// The JSON of a benchmark has its documented names, and the number of groups that lack a zone in the files.
func TestSimulateZones_ReportsOmittedGroups(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	args := h.bench(960, "us-west-2a", "us-west-2b")
	var got struct {
		Policies []map[string]any `json:"policies"`
		LeftOut  int              `json:"left_out"`
	}
	must.Do(t, json.Unmarshal([]byte(h.out(append(args, "--policy", "on-demand,greedy", "--json", "--form", "A,B,A")...)), &got))
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

// Zones that the benchmark does not know are named.
func TestSimulateZones_NamesUnknownZones(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	args := h.bench(960, "us-west-2a", "us-west-2b", "eu-west-1a", "eu-west-1b")
	if text := h.do(append(args, "--policy", "on-demand")...); !strings.Contains(text, "nothing runs on eu-west-1a, eu-west-1b:") {
		t.Errorf("%s", text)
	}
}

// The JSON of a protocol has its documented names, and one setting for each combination.
func TestSimulateZones_PlaysEverySettingOfProtocol(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	args := h.bench(400, "us-central1-a", "europe-west4-b")
	h.write("p.yaml", "tick: 5m\njobs: [{work: 3.001h, deadline: 6h}]\nrestart: [3m, 6m]\nsight: [A, C]\nlook: {fee: 60s}\n"+
		"checkpoint: {gb: [0, 10], usd_per_gb: 0.05, move_time: 0s}\non_demand: {default: 3, us-central1: 2.5}\n"+
		"groups: [[us-central1-a, europe-west4-b]]\n")
	var got struct {
		Settings []struct {
			Zones    []string         `json:"zones"`
			Work     float64          `json:"work_hours"`
			Deadline float64          `json:"deadline_hours"`
			Restart  float64          `json:"restart_hours"`
			GB       *float64         `json:"checkpoint_gb"`
			Sight    string           `json:"sight"`
			Policies []map[string]any `json:"policies"`
		} `json:"settings"`
	}
	must.Do(t, json.Unmarshal([]byte(h.out(append(args, "--protocol", "p.yaml", "--json")...)), &got))
	if len(got.Settings) != 8 {
		t.Fatalf("%d settings instead of 2 restarts × 2 sizes × 2 sights", len(got.Settings))
	}
	s := got.Settings[7]
	if len(s.Zones) != 2 || s.Work != 3.001 || s.Deadline != 6 || s.Restart != 0.1 || s.GB == nil || *s.GB != 10 || s.Sight != "C" {
		t.Errorf("the last setting is %+v", s)
	}
	if len(s.Policies) != 6 || s.Policies[0]["name"] != "on-demand" || fmt.Sprintf("%.4f", s.Policies[0]["mean_usd"]) != "7.9167" ||
		s.Policies[0]["runs"] != 1.0 || s.Policies[0]["misses"] != 0.0 { // 38 ticks at $2.50
		t.Errorf("its policies are %v", s.Policies)
	}
	text := h.do(append(args, "--protocol", "p.yaml", "--policy", "on-demand")...)
	if !strings.Contains(text, "is played as 3h1m0s") || !strings.Contains(text, "ON-DEMAND") {
		t.Errorf("%s", text)
	}
	h.write("p.yaml", "tick: 5\n")
	if text, err := h.try(append(args, "--protocol", "p.yaml")...); err == nil || !strings.Contains(text, "p.yaml:1: `tick`") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := h.try(append(args, "--protocol", "p.yaml", "--form", "A")...); err == nil || !strings.Contains(text, "form") {
		t.Errorf("%v: %s", err, text)
	}
}

// An optimum that took minutes is printed even if it cannot be stored.
func TestSimulateZones_PrintsOptimumThatCannotBeStored(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("file", "")
	h.env = []string{"XDG_CACHE_HOME=" + h.dir + "/file"}
	if text := h.do(append(h.bench(960, "us-west-2a", "us-west-2b"), "--policy", "optimum")...); !strings.Contains(text, "not kept") || !strings.Contains(text, "0 of 6") {
		t.Errorf("%s", text)
	}
}

func TestSimulateZones_ErrorNamesFileLineAndFix(t *testing.T) {
	t.Parallel()
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

// Public traces have one zone per file: all given files make one market.
func TestMarketImport_MergesTracesOfSeveralZones(t *testing.T) {
	t.Parallel()
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

// simulation is the output of `scrimp simulate --json`.
type simulation struct {
	Policies []struct {
		Policy      string   `json:"policy"`
		MeanUSD     float64  `json:"mean_usd"`
		OverOptimum *float64 `json:"over_optimum"`
		OfOnDemand  *float64 `json:"of_on_demand"`
		FinishS     float64  `json:"finish_s"`
		Misses      int      `json:"misses"`
		Unfinished  int      `json:"unfinished"`
		Runs        int      `json:"runs"`
		Timeline    string   `json:"timeline"`
	} `json:"policies"`
	Notes []string `json:"notes"`
}

const playedJob = "name: j\ncommand: x\ncheckpoint: {dir: c}\n"

// simulates plays a job on a market and returns the output and the exit status.
func (h *home) simulates(job, market string, flags ...string) (s simulation, status int) {
	h.t.Helper()
	h.write("job.yaml", playedJob+job)
	h.write("m.yaml", "name: m\noffers:\n"+market)
	cmd := h.command(append([]string{"simulate", "job.yaml", "--market", "m.yaml", "--json"}, flags...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		h.t.Fatalf("%v: %s%s", err, out, exit.Stderr)
	}
	return s, status
}

func (s simulation) says(words string) bool {
	return slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, words) })
}

const (
	machineAt  = "  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, "
	biggerAt   = "  - {zone: a, region: r, machine: big, cpus: 8, memory: 64GiB, speed: 4, "
	broken     = "capacity: spot, price: 1, available: [{from: 0h, to: 1h}, {from: 2h, to: 3h}]}\n"
	onDemand   = "capacity: on-demand, price: 3}\n"
	brokenSpot = machineAt + broken + machineAt + onDemand
)

// The output names what a simulation omits or could not do, and never shows it as a figure.
func TestSimulate_ReportsCaveatsOfFigures(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for name, c := range map[string]struct {
		job, market string
		status      int
		note        string
	}{
		"the deadline comes too soon":      {"work: {time: 2h}\ndeadline: in 1h\n", brokenSpot, 2, "no policy can meet the deadline in 1h 00m"},
		"the market ends before the job":   {"work: {time: 2h}\ndeadline: in 9h\n", brokenSpot, 0, "is known for 3h 00m and does not repeat"},
		"the budget does not pay":          {"work: {time: 5h}\ndeadline: in 5h30m\nbudget: $8\n", brokenSpot, 0, "on-demand: 1 of 1 run not done, and its cost is no cost of the work: the budget does not pay"},
		"nothing is sure":                  {"work: {time: 1h}\ndeadline: in 5h\n", machineAt + broken, 0, "there is no on-demand row"},
		"it could wait for ever":           {"work: {time: 1h}\n", brokenSpot, 0, "no row of the optimum: without a deadline"},
		"spot alone is not enough":         {"work: {time: 3h}\ndeadline: in 9h\n", machineAt + broken, 0, "no row of the optimum: nothing meets the deadline"},
		"a market that is always the same": {"work: {time: 1h}\ndeadline: in 9h\n", machineAt + onDemand, 0, ""},
	} {
		s, status := h.simulates(c.job, c.market)
		if status != c.status || c.note != "" && !s.says(c.note) {
			t.Errorf("%s: status %d and %q", name, status, s.Notes)
		}
		for _, p := range s.Policies {
			if p.Unfinished > 0 && (p.OverOptimum != nil || p.OfOnDemand != nil || p.FinishS != 0) {
				t.Errorf("%s: %s was not done and is compared: %+v", name, p.Policy, p)
			}
		}
	}
	if s, _ := h.simulates("work: {time: 1h}\ndeadline: in 9h\n", machineAt+onDemand); s.Notes == nil || len(s.Notes) > 0 {
		t.Errorf("a market that is always the same: %q", s.Notes)
	}
	h.write("eur.yaml", "name: e\ncurrency: EUR\noffers:\n"+machineAt+onDemand)
	if text, err := h.try("simulate", "job.yaml", "--market", "eur.yaml"); err == nil || !strings.Contains(text, "market e is in EUR") {
		t.Errorf("another currency: %v, %s", err, text)
	}
	if text, err := h.try("simulate", "job.yaml", "job.yaml", "--market", "m.yaml"); err == nil || !strings.Contains(text, "one argument too many") {
		t.Errorf("two jobs: %v, %s", err, text)
	}
	if s, _ := h.simulates("work: {time: 1h}\ndeadline: in 9h\n", brokenSpot, "--seeds", "3"); !s.says("are the same") {
		t.Errorf("three runs of one: %q", s.Notes)
	}
	h.write("huge.yaml", playedJob+"work: {time: 1h}\nresources: {cpus: 64}\n")
	if text, err := h.try("simulate", "huge.yaml", "--market", "m.yaml"); err == nil || !strings.Contains(text, "nothing on market m fits the job; it sells m with 2 processors") {
		t.Errorf("nothing fits: %v, %s", err, text)
	}
	h.write("boxed.yaml", playedJob+"work: {time: 1h}\nimage: a/b\n")
	if text, err := h.try("simulate", "boxed.yaml", "--market", "m.yaml"); err == nil || !strings.Contains(text, "--image none simulates the job without") {
		t.Errorf("nothing takes the image: %v, %s", err, text)
	}
	if text, err := h.try("simulate", "boxed.yaml", "--market", "m.yaml", "--image", "none"); err != nil {
		t.Errorf("without the image: %v, %s", err, text)
	}
}

// The optimum uses only machines that can run the job, at the job's speed on them.
func TestSimulate_OptimumUsesFittingMachines(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const job = "work: {time: 4h}\ndeadline: in 6h\nresources: {cpus: 8}\n"
	s, _ := h.simulates(job, brokenSpot+biggerAt+"capacity: spot, price: 4}\n"+biggerAt+"capacity: on-demand, price: 12}\n", "--policy", "optimum,default")
	if len(s.Policies) != 2 || s.Policies[0].MeanUSD < 4 || s.Policies[0].MeanUSD > 4.5 || *s.Policies[1].OverOptimum < 0 || *s.Policies[1].OverOptimum > 0.05 {
		t.Errorf("an hour of the big machine at 4: %+v, %q", s.Policies, s.Notes)
	}
}

// The row on-demand uses on-demand, whatever the job's ladder starts with. The output says that reserved hours count.
func TestSimulate_OnDemandIgnoresLadder(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const ladder = "work: {time: 1h}\ndeadline: in 5h\nladder:\n  - {capacity: spot, for: 1h}\n  - {capacity: on-demand}\n"
	s, _ := h.simulates(ladder, brokenSpot, "--policy", "on-demand,greedy")
	if len(s.Policies) != 2 || strings.Trim(s.Policies[0].Timeline, "#") != "" || !strings.Contains(s.Policies[1].Timeline, "=") {
		t.Errorf("%+v", s.Policies)
	}
	s, _ = h.simulates("work: {time: 1h}\ndeadline: in 5h\n", brokenSpot+"  - {zone: r, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: reserved, reserved: {count: 1, from: 0h, until: 5h, paid: $5.00}}\n", "--policy", "default")
	if !s.says("hours on reserved machines") {
		t.Errorf("%+v, %q", s.Policies, s.Notes)
	}
}

// The job file gives the time and cost of a move to another region.
func TestSimulate_PlaysMoveOfJobFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const two = "  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: spot, price: 1, notice: 2m, available: [{from: 0h, to: 1h}]}\n" +
		"  - {zone: b, region: s, machine: m, cpus: 2, memory: 4GiB, capacity: spot, price: 1.1, notice: 2m}\n" + machineAt + onDemand
	cost := map[string]float64{}
	for _, move := range []string{"", ", move_time: 10m, move_cost: $2.00"} {
		h.write("job.yaml", "name: j\ncommand: x\ncheckpoint: {dir: c"+move+"}\nwork: {time: 3h}\ndeadline: in 9h\n")
		h.write("m.yaml", "name: m\noffers:\n"+two)
		var s struct {
			Policies []struct {
				MeanUSD float64 `json:"mean_usd"`
				Moves   float64 `json:"moves"`
			} `json:"policies"`
		}
		must.Do(t, json.Unmarshal([]byte(h.out("simulate", "job.yaml", "--market", "m.yaml", "--policy", "greedy", "--json")), &s))
		if s.Policies[0].Moves != 1 {
			t.Errorf("%q: %+v", move, s)
		}
		cost[move] = s.Policies[0].MeanUSD
	}
	if d := cost[", move_time: 10m, move_cost: $2.00"] - cost[""]; d < 2.1 || d > 2.3 {
		t.Errorf("a move of two dollars and ten minutes costs %v", d)
	}
	h.write("job.yaml", "name: j\ncommand: x\ncheckpoint: {move_time: 10m}\n")
	if text, err := h.try("simulate", "job.yaml", "--market", "m.yaml"); err == nil || !strings.Contains(text, "checkpoint.move_time") {
		t.Errorf("a move without a folder: %v, %s", err, text)
	}
}

// If machines of several speeds fit, the optimum considers all of them.
func TestSimulate_OptimumConsidersSpeed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s, _ := h.simulates("work: {time: 4h}\ndeadline: in 9h\n", brokenSpot+biggerAt+"capacity: spot, price: 2}\n", "--policy", "optimum,default")
	if len(s.Policies) != 2 || s.Policies[0].MeanUSD < 2 || s.Policies[0].MeanUSD > 2.2 || s.Policies[1].OverOptimum == nil {
		t.Errorf("an hour of the quick machine at 2: %+v, %q", s.Policies, s.Notes)
	}
}

// The runs of a market that does not repeat lie within its recorded time.
func TestSimulate_RunsLieWithinRecordedMarket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	long := machineAt + "capacity: spot, price: 1, available: [{from: 0h, to: 30h}, {from: 40h, to: 100h}]}\n" + machineAt + onDemand
	if s, _ := h.simulates("work: {time: 5h}\ndeadline: in 10h\n", long, "--seeds", "9"); s.says("does not repeat") || s.Policies[0].Runs != 9 {
		t.Errorf("%q", s.Notes)
	}
}

// The drawing is well-formed, and shows the deadline and the held machines.
func TestSimulate_DrawsSVG(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s, _ := h.simulates("work: {time: 2h}\ndeadline: in 4h\n", brokenSpot, "--svg", "o.svg")
	if line := s.Policies[1].Timeline; !strings.Contains(line, "=x.") {
		t.Errorf("greedy held %q: spot that is taken, then nothing", line)
	}
	svg, err := os.ReadFile(filepath.Join(h.dir, "o.svg"))
	must.Do(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range []string{"greedy, $", "on-demand or reserved", "interrupted", "deadline after 4h 00m", `class="until"`} {
		if !strings.Contains(string(svg), words) {
			t.Errorf("the drawing lacks %q", words)
		}
	}
}

// checkQueueHistory replays the one job of the log under the packing policies. It costs the price of an hour times the
// hours of a machine, which ends at the round after the job.
func checkQueueHistory(t *testing.T, h *home, paid float64) {
	t.Helper()
	var packed struct {
		Jobs     int `json:"jobs"`
		Policies []struct {
			Name string  `json:"name"`
			Cost float64 `json:"cost_usd"`
			Mean float64 `json:"mean_completion_hours"`
		} `json:"policies"`
		History struct {
			Paid  float64  `json:"paid_usd"`
			Types []string `json:"types"`
		} `json:"history"`
	}
	must.Do(t, json.Unmarshal([]byte(h.out("simulate", "queue", "--history", "--types", "m", "--json")), &packed))
	if packed.Jobs != 1 || len(packed.Policies) != 5 || packed.History.Paid != paid || len(packed.History.Types) != 1 {
		t.Errorf("%+v", packed)
	}
	for _, p := range packed.Policies {
		rounds := math.Ceil(p.Mean*12 - 1e-9) // the job came with the first round, 300 s apart
		if want := 3 * rounds / 12; math.Abs(p.Cost-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", p.Name, p.Cost, want)
		}
	}
	for rate, never := range map[string]int{"3": 0, "$2.99": 1} { // a machine costs $3 an hour, and the job starts at once
		var teams struct {
			Teams []struct {
				Jobs  int     `json:"jobs"`
				Never int     `json:"never_started"`
				Cost  float64 `json:"cost_usd"`
				Mean  float64 `json:"mean_completion_hours"`
			} `json:"teams"`
		}
		must.Do(t, json.Unmarshal([]byte(h.out("simulate", "queue", "--history", "--types", "m", "--rate", rate, "--json")), &teams))
		if len(teams.Teams) != 1 || teams.Teams[0].Jobs != 1-never || teams.Teams[0].Never != never ||
			math.Abs(teams.Teams[0].Cost-3*teams.Teams[0].Mean) > 3.0/3600 {
			t.Errorf("at %s an hour: %+v", rate, teams)
		}
	}
	for flag, says := range map[string]string{"--types=x": "write one of m", "--since=0s": "not a span",
		"--first=1": "leave out --first", "--trace=x": "leave out --trace", "--weight=a=2": "add --rate", "--rate=0": "above zero",
		"--rate=": "--rate is empty", "--rate=1 --weight=a=0": "from 0.001 to 1000", "--rate=1 --weight=a=2 --weight=A=3": "name it once",
		"--rate=1 --weight=nobody=2": "no job of that team", "--rate=1 --policy=eva": "leave out --policy"} {
		args := append([]string{"simulate", "queue", "--history"}, strings.Fields(flag)...)
		if text, err := h.try(args...); err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: %v, %s", flag, err, text)
		}
	}
}

// A recorded market keeps its speed, because notices are in wall time. The jobs of the store are played on it again,
// beside their actual costs.
func TestSimulateHistory_KeepsSpeedOfRecordedMarket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("m.yaml", "name: m\nspeed: 60\noffers:\n"+machineAt+"notice: 4s, capacity: spot, price: 1, available: [{from: 0h, to: 900h}]}\n"+machineAt+onDemand)
	h.write("job.yaml", "name: j\ncommand: \"for i in 1 2 3 4 5 6 7 8 9 10; do echo step $i/10; sleep 0.2; done\"\nprogress: 'step (?P<step>\\d+)/(?P<total>\\d+)'\n")
	h.do("run", "-y", "job.yaml", "--market", "m.yaml")
	if text := h.do("market", "record"); !strings.Contains(text, "\nspeed: 60\n") || !strings.Contains(text, "notice: 4s") {
		t.Errorf("recorded as %s", text)
	}
	var past struct {
		Paid     float64 `json:"paid_usd"`
		Policies []struct {
			Policy     string  `json:"policy"`
			TotalUSD   float64 `json:"total_usd"`
			Unfinished int     `json:"unfinished"`
		} `json:"policies"`
		Notes []string `json:"notes"`
	}
	// A playback may take longer than the original, so the market must be recorded for long enough.
	h.until("all played jobs end", func() bool {
		past.Policies, past.Notes = nil, nil
		must.Do(t, json.Unmarshal([]byte(h.out("simulate", "--history", "--json")), &past))
		return len(past.Policies) > 0 && past.Policies[len(past.Policies)-1].Unfinished == 0 && len(past.Notes) < 2
	})
	if past.Paid <= 0 || len(past.Policies) != 5 || len(past.Notes) != 1 || !strings.Contains(past.Notes[0], "without a deadline") {
		t.Errorf("%+v", past)
	}
	if text := h.do("simulate", "--history"); !strings.Contains(text, "Least, with no more late than under any other: ") {
		t.Errorf("which would have cost least is not said: %s", text)
	}
	for _, c := range [][2]string{{"--since=0s", "not a span"}, {"--since=x", "not a span"}, {"--svg=x", "leave out"}, {"--save=1s", "leave out"}} {
		if text, err := h.try("simulate", "--history", c[0]); err == nil || !strings.Contains(text, c[1]) {
			t.Errorf("%s: %v, %s", c[0], err, text)
		}
	}
	checkQueueHistory(t, h, past.Paid)
	h.do("run", "-y", "--", "echo", "step 1/1") // another kind of job: its work is not measured
	if text := h.do("simulate", "--history"); !strings.Contains(text, "left out: 1 job whose work was not measured") {
		t.Errorf("what is left out is not said: %s", text)
	}
	for _, p := range past.Policies {
		if p.TotalUSD <= 0 || p.Unfinished > 0 {
			t.Errorf("%+v", p)
		}
	}
}
