package show_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/scaffold"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/sim/replay"
	"scrimp/internal/test/golden"
	"scrimp/internal/view/convert"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func amount(s string) money.Amount {
	a, err := money.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

func price(s string) money.Rate {
	r, err := money.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

// jobs returns one of each kind: running and almost done, requesting its first machine, queued with a long name,
// succeeded, and stopped by its budget.
func jobs() []api.Job {
	return []api.Job{
		{
			ID: "bert", Name: "bert", State: "running", Why: "cheapest", Submitted: now.Add(-50 * time.Minute), Deadline: ptr(now.Add(2 * time.Hour)), DeadlineMarket: ptr(now.Add(2 * time.Hour)),
			TimeLeft: ptr(7200.0), Odds: ptr(0.98), Currency: money.USD, Spent: amount("0.965412"), Budget: ptr(amount("3")), Rate: ptr(price("1.2071")), Step: 2822, Total: ptr(int64(4200)),
			Metrics: map[string]float64{"loss": 2.18812, "val": 2.2071}, StepsPerSecond: ptr(14.25), Machine: "i-489931-4", Offer: "aws/us-east-1a/p3.2xlarge/spot", Phase: "running", Reads: ptr(amount("4")),
			Attempts: 4, Interruptions: 3, SavedStep: 2800, Speed: 1, Tags: map[string]string{"team": "vision", "env": "research"},
		},
		{ID: "first", Name: "first", State: "running", Why: "cheapest", Submitted: now.Add(-20 * time.Second), Currency: money.USD, Spent: amount("0.000102"), Offer: "local/a/m/spot", Phase: "requested", Attempts: 1, Speed: 1},
		{
			ID: "resnet-on-all-of-imagenet-2", Name: "resnet-on-all-of-imagenet", State: "queued", Why: "waits_spot", Detail: "No spot machine is for sale; there is time to wait for one until 2026-03-02 04:00:00 UTC.",
			Submitted: now.Add(-26 * time.Hour), Deadline: ptr(now.Add(72 * time.Hour)), TimeLeft: ptr(259200.0), Currency: money.USD, Spent: amount("1241.5"), Budget: ptr(amount("20000")), Step: 1_250_000, Total: ptr(int64(90_000_000)),
			Metrics: map[string]float64{"loss": 0.00012345}, Attempts: 12, Interruptions: 11, Phase: "terminated", Offer: "gcp/europe-west4-a/a2-highgpu-1g/spot", Machine: "i-old", SavedStep: 1_250_000, Speed: 1,
		},
		{ID: "done", Name: "done", State: "succeeded", Why: "completed", Closed: true, Submitted: now.Add(-80 * time.Hour), Finished: ptr(now.Add(-70 * time.Hour)), Deadline: ptr(now.Add(-60 * time.Hour)), TimeLeft: ptr(-36000.0), Odds: ptr(1.0), Currency: money.USD, Spent: amount("12.0001"), Step: 100, Total: ptr(int64(100)), Attempts: 1, Speed: 1},
		{ID: "yen", Name: "yen", State: "stopped", Why: "budget_spent", Closed: true, Submitted: now.Add(-3 * time.Hour), Finished: ptr(now.Add(-time.Hour)), Currency: "JPY", Spent: amount("500.2"), Budget: ptr(amount("500")), Step: 77, Attempts: 2, Interruptions: 1, Speed: 1},
	}
}

// queue returns a running job, two that wait for a simulated start, and one whose start is unknown.
func queue() []api.Job {
	list := jobs()[:3]
	soon, late := list[2], list[2]
	soon.ID, soon.Name = "soon", "soon"
	soon.Estimate = &api.JobEstimate{Cost: [3]float64{10, 10.2, 10.5}, StartS: &[3]float64{0, 0, 600}}
	late.Estimate, late.Speed = &api.JobEstimate{Cost: [3]float64{18000, 18500, 18700}, StartS: &[3]float64{36000, 54000, 108000}}, 10
	list[1] = soon
	list[2] = late
	none := late
	none.ID, none.Name, none.Estimate = "unknown", "unknown", nil
	return append(list, none)
}

func sale() api.Market {
	m := api.Market{Clock: api.MarketClock{Name: "recorded", Speed: 120, Now: now}}
	add := func(zone, machine string, c market.Capacity, gpus int, rate string, there bool, notice time.Duration, h policy.Hazard) {
		o := market.Offer{ID: market.OfferID("aws/" + zone + "/" + machine + "/" + string(c)), Provider: "aws", Zone: zone, Machine: machine, Capacity: c, CPUs: 8, Memory: 61 * size.GiB, Notice: notice, Currency: money.USD, Accelerators: gpus}
		if gpus > 0 {
			o.Accelerator = "V100"
		}
		q := market.Quote{Offer: o.ID, Available: there, At: now, Source: "trace"}
		if rate != "" {
			q.Rate, q.Priced = price(rate), true
		}
		m.Offers = append(m.Offers, api.Listing{Offer: convert.To[api.Offer](o), Quote: convert.To[api.Quote](q), Hazard: convert.To[api.Hazard](h)})
	}
	add("us-east-1a", "p3.2xlarge", market.Spot, 1, "0.9213", true, 2*time.Minute, policy.Hazard{Lost: 3, Served: 40 * time.Hour})
	add("us-east-1b", "p3.2xlarge", market.Spot, 1, "", false, 0, policy.Hazard{})
	add("us-east-1a", "p3.2xlarge", market.OnDemand, 1, "3.06", true, 0, policy.Hazard{})
	add("us-east-1a", "c5.2xlarge", market.OnDemand, 0, "0.34", true, 0, policy.Hazard{})
	for i := range 8 {
		add(fmt.Sprintf("us-west-2%c", 'a'+i), "p3.2xlarge", market.Spot, 1, "0.99", true, 2*time.Minute, policy.Hazard{})
		o := &m.Offers[len(m.Offers)-1]
		o.Cools, o.CoolsFor = now.Add(4*time.Minute), "launch aws/us-west-2a/p3.2xlarge/spot: quota: MaxSpotInstanceCountExceeded: ask for more"
	}
	return m
}

func decisions() []api.Decision {
	return []api.Decision{
		{At: now, MarketAt: now.Add(-13 * time.Hour), Event: 3, Cause: "job_submitted", Version: "uniform-progress-2/1", Choice: api.Choice{
			Take: "aws/us-east-1a/p3.2xlarge/spot", Rate: price("0.9213"), Why: string(plan.Cheapest), Mode: string(policy.Patient), Slack: 3*time.Hour + 5*time.Minute, HasSlack: true,
			Expect:   &api.Expect{Wait: ptr(2.2), Spot: ptr(2.1), OnDemand: ptr(6.3), Up: true, Chance: 0.97, NextPoll: 4 * time.Minute},
			Rejected: []api.Rejection{{Offer: "aws/us-east-1b/p3.2xlarge/spot", Why: string(plan.Unavailable)}, {Offer: "aws/us-east-1a/p3.2xlarge/on-demand", Rate: price("3.06"), Priced: true, Why: string(plan.NotYet)}},
		}},
		{At: now, MarketAt: now, Event: 9, Cause: "launch_refused", Version: "uniform-progress-2/1", Refused: "launch aws/us-west-2a/p3.2xlarge/spot: quota: MaxSpotInstanceCountExceeded: ask for more", Choice: api.Choice{Why: string(plan.WaitsSpot), Mode: string(policy.Patient), Again: now.Add(time.Hour),
			Expect: &api.Expect{Wait: ptr(2.104), OnDemand: ptr(6.3), Chance: 0.031, NextPoll: 4 * time.Minute}}},
		{At: now, MarketAt: now.Add(time.Minute), Event: 12, Cause: "market_seen", Version: "horizon/1", Choice: api.Choice{
			Take: "aws/us-east-1a/p3.2xlarge/spot", Rate: price("0.9213"), Why: string(plan.Cheapest), Mode: string(policy.Steady), Slack: time.Hour, HasSlack: true,
			Expect: &api.Expect{Wait: ptr(2.31), Spot: ptr(2.1), OnDemand: ptr(6.3), Up: true, NextPoll: 4 * time.Minute, Zones: []api.ZoneExpect{
				{Offer: "aws/us-east-1a/p3.2xlarge/spot", USD: ptr(2.1), Up: true, Tried: true, Chance: 0.92},
				{Offer: "aws/us-east-1b/p3.2xlarge/spot", Tried: true, Chance: 0.31}, {Offer: "gcp/us-west1-a/a2/spot", Chance: 0.6}}},
			Budget:   &api.BudgetCheck{Left: money.Picos(4_000_000_000_000), Needs: money.Picos(2_500_000_000_000), On: "aws/us-east-1a/p3.2xlarge/spot"},
			Rejected: []api.Rejection{{Offer: "aws/us-east-1b/p3.2xlarge/spot", Why: string(plan.Unavailable)}, {Offer: "gcp/us-west1-a/a2/spot", Rate: price("1.1"), Priced: true, Why: string(plan.Untried)}, {Offer: "aws/us-east-1a/p3.2xlarge/on-demand", Rate: price("3.06"), Priced: true, Why: string(plan.OverBudget)}},
			Counts:   []api.ReasonCount{{Why: string(plan.OverBudget), Count: 4}, {Why: string(plan.TooSmall), Count: 4102}, {Why: string(plan.Unavailable), Count: 317}, {Why: string(plan.Untried), Count: 1}},
		}},
		{At: now, MarketAt: now.Add(2 * time.Minute), Event: 14, Cause: "woken", Version: "horizon/1", Choice: api.Choice{
			Take: "aws/us-east-1a/p3.2xlarge/on-demand", Rate: price("3.06"), Why: string(plan.SlackGone), Mode: string(policy.Certain), Slack: 5 * time.Minute, HasSlack: true, Margin: 9 * time.Minute, Reads: amount("4"),
			Rejected: []api.Rejection{{Offer: "gcp/us-west1-a/a2/on-demand", Rate: price("2.9"), Priced: true, Why: string(plan.CostsMore), Reads: amount("18")}},
		}},
		{At: now, MarketAt: now.Add(3 * time.Minute), Event: 15, Cause: "woken", Version: "horizon/1", Choice: api.Choice{
			Take: "aws/us-east-1a/p3.2xlarge/on-demand", Rate: price("3.06"), Why: string(plan.SlackGone), Mode: string(policy.Certain), Slack: -66 * time.Minute, HasSlack: true,
		}},
	}
}

func plans() map[string]planning.Plan {
	return map[string]planning.Plan{
		"known": {Plan: api.Plan{
			Name: "bert", Feasible: true, Known: true, Market: "recorded", Speed: 120, Runs: 200, Take: "aws/us-east-1a/p3.2xlarge/spot", Why: "cheapest",
			Rejected: []api.PlanRefusal{{Offer: "aws/us-east-1b/p3.2xlarge/spot", Why: "unavailable"}, {Offer: "aws/us-east-1a/p3.2xlarge/on-demand", Why: "not_yet", ReadsUSD: ptr(18.0)}},
			CostUSD:  &[3]float64{1.38, 1.381, 1.76}, FinishS: &[3]float64{5100, 5200, 6180}, InTime: ptr(0.98), Interrupts: ptr(0.4), ReadsUSD: &[3]float64{4, 4, 8}, OnDemandUSD: ptr(4.28), OnDemandOffer: "local/eu-north/a/m.large/on-demand", WorstUSD: ptr(3.0), Reasons: []string{},
		}},
		"small":      {Plan: api.Plan{Name: "tiny", Feasible: true, Known: true, Market: "calm", Speed: 1, Runs: 200, Take: "local/a/m/spot", Why: "cheapest", Rejected: []api.PlanRefusal{}, CostUSD: &[3]float64{0.00029491, 0.000301, 0.08}, FinishS: &[3]float64{39, 40, 60}, OnDemandUSD: ptr(0.000975), OnDemandOffer: "local/a/m/on-demand", Reasons: []string{}}},
		"unknown":    {Plan: api.Plan{Name: "sh", Feasible: true, Market: "calm", Speed: 1, Take: "local/a/m/spot", Why: "cheapest", Rejected: []api.PlanRefusal{}, Reasons: []string{}}},
		"infeasible": {Plan: api.Plan{Name: "big", Known: true, Market: "calm", Speed: 1, Runs: 200, Why: "no_offer", Rejected: []api.PlanRefusal{{Offer: "local/a/m/spot", Why: "too_small"}}, CostUSD: &[3]float64{9, 9, 9}, FinishS: &[3]float64{36000, 36000, 36000}, InTime: ptr(0.0), WorstUSD: ptr(4.0), Reasons: []string{"no offer of this market fits: scrimp market shows what is for sale", "done within budget in 0 % of the runs: the work needs about 10h 00m"}}},
	}
}

func server() api.Server {
	return api.Server{Version: "0.1.0", Build: "0123456789abcdef", PID: 4242, Dir: "data/scrimp", Started: now.Add(-3 * time.Hour), Market: api.MarketClock{Name: "recorded", Speed: 120, Now: now}, Jobs: 5, Live: 3, Events: 1234, Engines: []api.Engine{
		{Name: "local", Kind: "local", Speed: 120, State: "answers", Heard: now.Add(-time.Second), Agents: "unix:///data/scrimp/server.sock", Machines: 3, Timing: api.EngineTiming{Poll: 0.3, Sweep: 20, Detect: 0.6, Boot: 300}, Away: []api.AwayEngine{{Name: "local", Machine: "gpu2", Error: "ssh gpu2: No route to host"}}},
		{Name: "other", Kind: "local", Speed: 1, State: "away", Error: "list instances: no answer after 4 tries: dial unix: no such file", Heard: now.Add(-time.Hour), Agents: "http://127.0.0.1:7077", Machines: 1, Timing: api.EngineTiming{Poll: 1, Sweep: 60, Detect: 2, Boot: 600, Consistency: 120, GrantWait: 3600}},
		{Name: "new", Kind: "local", Speed: 1, State: "not_asked", Agents: "http://127.0.0.1:7077", Timing: api.EngineTiming{Poll: 1, Sweep: 60, Detect: 2, Boot: 600}},
		{Name: "old", Speed: 1, State: "not_configured", Machines: 2},
	}}
}

func checks() []show.Check {
	return []show.Check{
		{Name: "program", OK: true, Text: "scrimp 0.1.0 0123456789abcdef, linux/amd64, built with the tag local: checkpoints go to folders only; make build adds S3"},
		{Name: "data folder", Text: "mkdir data: permission denied: give another with --data"},
		{Name: "server", OK: true, Text: "none runs; the next command starts one"},
		{Name: "launch, on-demand", OK: true, Text: "a dry run of c7i.xlarge succeeds"},
		{Name: "rights", OK: true, Text: "what was tried is allowed; this is the least policy:\n{\n  \"Version\": \"2012-10-17\"\n}\n"},
		{Name: "way back", OK: true, Text: "machines look for the server at http://10.0.0.1:7077"},
	}
}

func verified() api.Verified {
	return api.Verified{OK: true, Events: 103, Postings: 111, Head: api.Hash{0xc0, 0xff, 0xee}, Jobs: 1, Cost: amount("1.414412345678"), Currency: money.USD}
}

func written() show.Written {
	return show.Written{File: "job.yaml", Guesses: []scaffold.Guess{
		{Field: "setup", Value: "python3 -m pip install -r requirements.txt", Why: "requirements.txt is here"},
		{Field: "command", Value: "exec torchrun --standalone --nproc_per_node=gpu train.py", Why: "train.py because of its name, it imports torch; it uses torch.distributed, so torchrun starts a process for each accelerator"},
		{Field: "progress.pattern", Value: `step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>[^\s,;|)}%\]]+)`, Why: "train.py prints step {step}/{total} loss {loss}"},
	}}
}

func scores() []replay.Score {
	return []replay.Score{
		{Name: "greedy", MeanUSD: 103.8514, OverOptimum: ptr(0.1017), Runs: 960, InterruptionsPerRun: 8.4, LaunchesPerRun: 9.9},
		{Name: "uniform-progress-2", Form: "B", MeanUSD: 102.81, OverOptimum: ptr(0.0906), Runs: 960, Misses: 3, InterruptionsPerRun: 12.25, LaunchesPerRun: 31, MovesPerRun: 2.5},
		{Name: replay.Optimum, MeanUSD: 94.27, OverOptimum: ptr(0.0), Runs: 960},
		{Name: "default", MeanUSD: 99.226, Runs: 960, InterruptionsPerRun: 10.1, LaunchesPerRun: 14.2},
	}
}

// pages returns all printed pages by name.
func pages(p show.Place) map[string]string {
	out := map[string]string{
		"jobs": show.Jobs(jobs(), p), "queue": show.Jobs(queue(), p), "queue-status": show.Job(queue()[2], p), "jobs-none": show.Jobs(nil, p), "market": listing.Sale{Market: sale(), Published: map[market.OfferID]listing.Share{"aws/us-east-1a/p3.2xlarge/spot": {Low: 0.05, High: 0.1}}}.Text(p), "market-none": listing.Sale{Market: api.Market{Clock: sale().Clock}}.Text(p),
		"explain": planning.Explain(decisions(), money.USD, p), "server": show.Server(server(), p), "doctor": show.Doctor(checks(), p),
		"ledger": show.Verified(verified(), p), "ledger-wrong": show.Verified(api.Verified{Problem: "event 7 posts 3 to the job's account, the book holds 4"}, p), "next": show.Next("bert"),
		"init": written().Text(p), "scores": simulation.Scores(scores(), p),
	}
	var lines, status strings.Builder
	for _, j := range jobs() {
		fmt.Fprintln(&lines, show.Progress(j, p))
		fmt.Fprintln(&status, show.Job(j, p))
	}
	out["progress"], out["status"] = lines.String(), status.String()
	for name, v := range plans() {
		out["plan-"+name] = v.Text(p)
	}
	maps.Copy(out, shared(p))
	return out
}

func TestPages_MatchGolden(t *testing.T) {
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
		for name, text := range pages(p) {
			golden.Check(t, name+"."+width+".txt", text)
		}
	}
}

func TestPages_FitTerminal(t *testing.T) {
	for _, width := range []int{60, 72, 80, 100, 120, 200} {
		for name, text := range pages(show.Place{Width: width, Now: now}) {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%s at %d columns has a line of %d: %q", name, width, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s ends a line in spaces: %q", name, line)
				}
			}
		}
	}
}

func TestPages_ForPrograms(t *testing.T) {
	for name, v := range map[string]any{
		"job": jobs()[0], "job-new": jobs()[1], "job-done": jobs()[3], "market": sale(), "decision": decisions()[0], "decision-waits": decisions()[1],
		"plan": plans()["known"], "plan-unknown": plans()["unknown"], "server": server(), "score": scores()[1], "init": written(), "check": checks()[1], "ledger": verified(),
		"exec": show.Exec(api.ExecResult{Output: []byte("hello\n\xff"), Exit: 3}), "problem": api.Problem{Title: "job bert is not known", Status: 404, Fix: "scrimp jobs lists them"},
	} {
		golden.JSON(t, "json/"+name+".json", v)
	}
}
