package pages

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"scrimp/client"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/reconcile"
)

// evil is a hostile name.
const evil = `=cmd|'x'!A1"><script>alert(1)</script>` + "\x1b\u202e"

// full is a server with data on each page.
func full(t testing.TB, name string) (*fake, *Site) {
	f, s := newFake(t)
	rate, err := money.ParseRate("0.97")
	must.Do(t, err)
	f.answers["/v1/groups"] = []client.Group{{ID: "sweep", State: "open", Members: 3, Currency: "USD", Submitted: now, Detail: name}}
	f.answers["/v1/groups/sweep"] = client.Group{ID: "sweep", State: "open", Members: 3, Currency: "USD", Submitted: now, User: "ann",
		Detail: name, Budget: new(money.Picos(9e12))}
	study := client.Group{ID: "search", State: "open", Kind: "study", Currency: "USD", Submitted: now, User: "ann",
		Study: &client.StudyState{Metric: name, Fidelity: &client.StudyFidelity{Name: name}}}
	f.answers["/v1/groups/search/trials"] = []client.Trial{{ID: "search.0"},
		{ID: "search.1", Best: new(0.5), Params: map[string]string{name: "b", "lr": "0.1"}, Curve: []client.TrialPoint{{Unit: 1, Value: 0.5}}},
		{ID: "search.2", Best: new(0.25), Params: map[string]string{name: "a", "lr": "0.01"}, Curve: []client.TrialPoint{{Unit: 1, Value: 0.75}, {Unit: 2, Value: 0.25}}}}
	study.Study.Best = &client.Trial{ID: "search.2", Best: new(0.25)}
	study.Study.Params = []client.StudyParam{{Name: "lr", Min: 0.001, Max: 1, Log: true}, {Name: name, Values: []string{`"a"`, `"b"`}}}
	study.State, study.Study.Warnings = "over", []string{name}
	f.answers["/v1/groups/search"] = study
	f.answers["/v1/groups/search/receipt"] = client.GroupReceipt{Cost: money.Picos(5e12), Study: &client.StudyReceipt{Trials: 3, Full: 1,
		PerTrial: new(5.0 / 3), PerFull: new(5.0), Pruned: money.Picos(2e12), AllFull: new(9.0), Failed: money.Picos(1e12),
		BestBySpend: []client.StudyMark{{SpentUSD: 1, Best: 0.75}, {SpentUSD: 2, Best: 0.5}, {SpentUSD: 4, Best: 0.25}},
		Rungs:       []client.StudyRung{{Unit: 1, Reached: 2, Continued: 1, Best: 0.5}, {Unit: 2, Reached: 1, Best: 0.25}},
		Importance:  &client.StudyImportance{Unit: 1, Trials: 8, Shares: map[string]float64{"lr": 0.625, name: 0.25}}}}
	flow := client.Group{ID: "flow", State: "over", Kind: "pipeline", Currency: "USD", Submitted: now, User: "ann", Pipeline: &client.PipelineState{
		Saved: money.Picos(4), Stages: []client.StageState{{Name: "gated", State: "skipped", Why: name, Gates: []client.GateVerdict{{Why: name}}, Spared: new(money.Picos(4))},
			{Name: "passed", State: "done", Gates: []client.GateVerdict{{Pass: true, Why: name}}}, {Name: name, State: "reused", Job: "flow.a", Saved: new(money.Picos(4))},
			{Name: "b", State: "done", Needs: []string{name}, Metrics: map[string]string{name: "0.5"}, Cost: money.Picos(5e12), Started: new(now.Add(-time.Hour)), Finished: &now},
			{Name: "c", State: "skipped", Needs: []string{"b"}, Why: name}}}}
	f.answers["/v1/groups/flow"], f.answers["/v1/groups/flow/receipt"] = flow, client.GroupReceipt{Cost: money.Picos(5e12)}
	nightly := client.Group{ID: "nightly", State: "open", Kind: "schedule", Currency: "USD", Submitted: now, User: "ann", Spent: money.Picos(5e12),
		Schedule: &client.ScheduleState{Cron: name, Zone: name, Each: money.Picos(9e12), Due: new(now.Add(time.Hour)), Begun: 1, Skipped: 1, Saved: money.Picos(4e12),
			Runs: []client.ScheduleRun{{Due: now, Group: "nightly.r1", State: "over", Succeeded: true, Stages: 3, Ran: 1, Reused: 2, Cost: money.Picos(5e12)},
				{Due: now, State: "skipped", Why: name, Same: 2}},
			ScheduleConditions: client.ScheduleConditions{OnData: &client.ScheduleData{Path: name, AtLeast: 3},
				NotBefore: &client.SchedulePrice{Most: rate, By: time.Hour}, WhenItPays: &client.SchedulePays{Metric: name, Value: money.Picos(2e12)}},
			WaitsSince: &now, Waits: []client.ScheduleCheck{{Why: name}},
			Weeks: []client.ScheduleWeek{{Begin: now, Runs: 1, Skipped: 3, Cost: money.Picos(5e12), Gain: name, OnDemand: new(money.Picos(7e12))}, {Begin: now, CostOpen: true}}}}
	f.answers["/v1/groups/nightly"], f.answers["/v1/groups/nightly/receipt"] = nightly, client.GroupReceipt{Cost: money.Picos(5e12)}
	f.answers["/v1/groups/sweep/receipt"] = client.GroupReceipt{Cost: money.Picos(3), Members: []client.GroupMember{
		{ID: "sweep.1", State: "running", Cost: money.Picos(1)}, {ID: "sweep.2", State: "failed", Cost: money.Picos(2)}}}
	f.answers["/v1/machines"] = []client.Machine{{Instance: name, Offer: name, Type: name, Zone: name, State: client.MachineRunning,
		Job: "a", User: name, Currency: "USD", Rate: rate, Cost: money.Picos(7), Since: now},
		{Instance: "idle", State: client.MachineIdle, IdleSince: now, IdleUntil: now.Add(time.Hour), Currency: "USD", Rate: rate, Since: now}}
	f.answers["/v1/telemetry"] = []client.JobTelemetry{{Job: "a", Now: map[string]float64{"cpu_utilization_ratio": 0.5}}}
	f.answers["/v1/server"] = client.Server{Market: client.MarketClock{Name: name, Speed: 120, Now: now}, Events: 9000,
		Engines: []client.Engine{{Name: name, Kind: "ssh", State: "away", Error: name, Joined: []client.JoinedMachine{{Name: name, From: name}},
			Away: []client.AwayEngine{{Name: name, Machine: name, Error: name}}}}}
	f.answers["/v1/market"] = client.Market{Clock: client.MarketClock{Now: now}, Away: []client.AwayEngine{{Name: name, Error: name}},
		Offers: []client.Listing{{Offer: client.Offer{ID: name, Capacity: client.Spot, Currency: "USD"}, CoolsFor: name, Cools: now.Add(time.Hour)},
			{Offer: client.Offer{ID: "b", Capacity: client.OnDemand, Currency: "USD", Accelerator: "H100", Accelerators: 8},
				Quote: client.Quote{Priced: true, Available: true, Rate: rate, At: now}}}}
	f.answers["/v1/history"] = client.History{Opened: now.Add(-time.Hour), Trace: client.Trace{Currency: "USD", Lines: []client.TraceLine{
		{Offer: client.Offer{ID: name, Currency: "USD"}, Price: []client.Price{{Rate: rate}, {At: time.Minute, Rate: 2 * rate}}}}}}
	f.answers["/v1/teams"] = []client.Team{{Name: "vision", Projects: []string{name}, Disk: 5, DiskUsed: 3}}
	f.answers["/v1/queue/shares"] = client.QueueShares{Shared: true, HalfLife: 7 * 24 * time.Hour, Currency: "USD", Teams: []client.QueueShare{
		{Team: name, Weight: 2, Set: true, Wanted: 0.5, Had: 0.9, Burn: rate, Running: 2, Guarantee: rate, Borrow: &rate, Stopped: true, Waits: true},
		{Weight: 1, Wanted: 0.5, Had: 0.1}}}
	f.answers["/v1/measured"] = []client.Run{{Job: "a", State: "succeeded", Offer: name, Currency: "USD", Cost: money.Picos(3e12),
		ExpectedCost: new(money.Picos(2e12))}, {Job: "b", State: "failed", Currency: "USD"}}
	f.answers["/v1/users"] = []client.User{{Name: name, Grants: []client.Grant{{Team: name, Role: client.Viewer}}, Made: now}}
	f.answers["/v1/tokens"] = []client.Token{{ID: "abc", User: name, Note: name, Live: true, Made: now, Expires: now.Add(time.Hour)}, {ID: "old"}}
	f.answers["/v1/notices"] = []client.Notice{{Job: name, Event: name, By: "email", To: name, State: client.Retrying, Error: name,
		Tries: 2, At: now, Next: &now}, {Job: name, By: "webhook", To: name, State: client.Waiting}}
	f.answers["/v1/audit"] = client.Audit{Acts: []client.Act{{Who: name, Route: "GET /x", Object: name, Outcome: "refused", Detail: name, At: now}}}
	f.answers["/v1/costs"] = client.Costs{By: "team", Until: now, Lines: []client.CostLine{{Name: name, Currency: "USD",
		Spent: money.Picos(5e12), Uses: map[client.Use]money.Amount{client.Useful: money.Picos(5e12)}, Jobs: 1}, {Currency: "EUR", Spent: money.Picos(1)}}}
	f.answers["/v1/models"] = []client.ModelVersion{{Pipeline: "flow", Version: 1, Run: "flow", State: "replaced", Verdict: "none", Currency: "USD", Submitted: now},
		{Pipeline: "flow", Version: 2, Run: "flow-2", Project: name, State: "deployed", Deployed: true, Verdict: "passed", Currency: "USD", Cost: money.Picos(3e12),
			Submitted: now, Gates: []client.GateVerdict{{Stage: name, Metric: name, Pass: true, Why: name}}}}
	one := money.Picos(1e12)
	f.answers["/v1/proposals"] = client.Proposals{Budget: new(money.Picos(500e12)), Currency: "USD", Cost: money.Picos(2e12), Value: money.Picos(9e12),
		Proposals: []client.Proposal{{ID: "idea", State: "held", Team: name, User: name, Currency: "USD", Rank: new(1), Fits: new(true),
			Cost: &[3]money.Amount{{}, money.Picos(2e12), {}}, Proposing: client.Proposing{Why: name, Value: new(money.Picos(9e12))}},
			{ID: "words", State: "succeeded", Currency: "USD", Proposing: client.Proposing{Why: name, ValueText: name},
				Outcome: &client.ProposalOutcome{Text: name}}}}
	f.answers["/v1/waste"] = client.Waste{Since: now.Add(-48 * time.Hour), Until: now, Findings: []client.WasteFinding{{ID: "w-1", Kind: name, Team: name,
		About: name, Currency: "USD", Cost: one, Monthly: &one, Evidence: name, Action: "stop", Command: name}},
		Totals: []client.WasteTotal{{Currency: "USD", Findings: 1, Cost: one, Monthly: &one, Unknown: 1}}}
	f.answers["/v1/waste/survey"] = client.Survey{Engines: []client.SurveyEngine{{Name: name, Lists: true, Seen: 3}, {Name: name, Lists: true, Error: name}, {Name: "local"}},
		Resources: []client.SurveyResource{{Engine: name, ID: name, Kind: "volume", Type: name, Currency: "USD", Monthly: &one, Lacks: []string{name, "b"}, Evidence: name,
			Action: "delete", Try: name, Command: name}, {ID: "i-1", Kind: "machine", Currency: "USD", Action: "keep"}}}
	f.answers["/v1/storage"] = client.Storage{Kinds: []client.StorageUse{{Kind: name, Bytes: 3 << 20}, {Kind: "work", Bytes: 1 << 20}},
		Teams: []client.TeamStorage{{Team: name, StorageUse: client.StorageUse{Kind: name, Bytes: 5}}}, Needed: []string{name}}
	f.answers["/v1/anomalies/alerts"] = []client.AnomalyAlert{{Name: name, By: name, To: name, Team: name, Kinds: []string{name}, User: name,
		Error: name, Notices: []client.Notice{{Event: name, Error: name, Anomaly: name}}}}
	f.answers["/v1/anomalies/planned"] = []client.PlannedAnomalies{{Name: name, Team: name, Job: name, Why: name, By: name, Since: now, Until: now}}
	f.answers["/v1/anomalies"] = client.Anomalies{Since: now.Add(-48 * time.Hour), Until: now, Thresholds: []client.AnomalyThreshold{{Team: name, Kind: name,
		Threshold: name, Standard: name, Last: client.AnomalyAnswer{Why: name, By: name}}}, Anomalies: []client.Anomaly{
		{Name: name, Answer: &client.AnomalyAnswer{Why: name, By: name}, Kind: name, Team: name, About: name, Since: now, Found: now, AtStake: one, AtFound: one, Currency: "USD", Why: name, Jobs: []string{name, "b"}},
		{Kind: "price jump", Since: now, Found: now, Until: &now, AtStake: one, Currency: "EUR", Why: name, Jobs: []string{}}}}
	diagnosed := client.Diagnosis{Job: "a", Measured: 745, HourlyUSD: new(3.2), Use: map[string]float64{"gpu_utilization_ratio": 0.34, "cpu_iowait_ratio": 0.1, name: 3},
		Phases: client.DiagnosisPhases{SetUp: 45, Work: 680, After: 20}, Note: name, Causes: []client.DiagnosisCause{
			{Class: "data_loading", Group: "data", Evidence: name, SavingUSD: new(1.92), Low: new(1.02), High: new(2.11), Change: name, Effort: "low", Risk: "none",
				Share: &client.SavingShare{Low: 0.32, Value: 0.6, High: 0.66}, AB: new("scrimp ab a --set " + name)}, {Class: "memory_leak", Group: "code", Evidence: name}}}
	f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/diagnosis"] = client.Job{ID: "a", State: "running", Currency: "USD"}, diagnosed
	f.answers["/v1/diagnoses"] = []client.Diagnosis{diagnosed, {Job: "b", Note: name}, {Job: "c"}, {Job: name, Causes: diagnosed.Causes[1:]}}
	f.answers["/v1/chargeback"] = client.Chargeback{Month: "2026-10", Rule: "even", Totals: []client.ChargebackTotal{{Currency: "USD", Own: one}},
		Pools:      []client.SharedCost{{Name: name, Currency: "USD", Amount: one, Divided: one, Method: "even"}},
		Statements: []client.ChargebackOfTeam{{Team: name, Currency: "USD", Own: one, PerRun: &one, Runs: 1, Shares: []client.ChargebackShare{{Name: name, Amount: one, Method: "even"}}}}}
	f.answers["/v1/bills"] = client.Bills{Bills: []client.Bill{{Provider: name, Account: name, Month: "2026-10", Lines: 3, By: name, Closed: true,
		Totals: []client.BillTotal{{Currency: "USD", Amount: "1.25"}}}, {Provider: "AWS", Account: "it's 1/" + name, Month: "2026-09"}}, Closed: []client.BillMonth{{Month: "2026-10", By: name, At: now}},
		Exports: []client.BillExport{{Engine: name, From: name, Tried: now, Error: name, Periods: []client.BillPeriod{
			{Month: "2026-10", Export: name, Parts: 2, Imported: now, Unread: 1}, {Month: "2026-09", Key: name, Problem: name}}},
			{Engine: "b", Fetched: now}}}
	six, _ := decimal.Parse("6.5")
	lone := []reconcile.Alone{{Line: 7, Resource: name, Amount: six, Currency: "USD", Why: name}}
	f.answers["/v1/bills/reconcile"] = trueup.Comparison{Answer: reconcile.Answer{Month: "2026-10", Totals: []reconcile.Total{{Currency: "USD", File: six, Gap: six}},
		Gaps:      []reconcile.Gap{{Instance: name, Job: name, Currency: "USD", Billed: six, Gap: six, By: "id", Parts: map[reconcile.Part]decimal.Decimal{reconcile.Tax: six}}},
		NeverOurs: lone, NotBilled: lone, Others: lone}, Closed: true, Booking: []trueup.Booking{{Currency: "USD", Count: 1, Amount: one}},
		Waits: []trueup.Wait{{Instance: name, Why: name}}}
	return f, s
}

// everyPage lists the addresses of all pages except that of a job.
var everyPage = []string{"/", "/jobs", "/groups", "/groups/sweep", "/groups/search", "/groups/flow", "/groups/nightly", "/costs", "/costs?by=job&since=7d", "/costs/days", "/costs/days?by=project&days=30&until=2026-11-20", "/submit", "/submit?as=file", "/models", "/models?pipeline=flow", "/chargeback", "/chargeback?rule=even&month=2026-10", "/bills", "/bills?month=2026-10", "/waste", "/waste?team=vision&since=7d", "/waste?engines=on", "/diagnoses", "/diagnoses?team=vision&since=24h", "/jobs/a/diagnosis", "/storage", "/proposals", "/proposals?budget=500&team=vision", "/anomalies", "/machines", "/engines", "/market",
	"/market?offer=H100", "/market/prices", "/teams", "/estimates", "/access"}

func TestPages_AreValidWithNothingAndWithHostileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", evil} {
		_, s := full(t, name)
		for _, path := range everyPage {
			rec := asks(s, "GET", path, "")
			if rec.Code != 200 {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
				continue
			}
			parse(t, rec.Body.String())
			if strings.ContainsAny(rec.Body.String(), "\x1b\u202e") || strings.Contains(rec.Body.String(), "<script>") ||
				strings.Contains(rec.Body.String(), "map[") || strings.Contains(rec.Body.String(), "[{") {
				t.Errorf("%s has what is no text for people", path)
			}
		}
	}
	f, s := newFake(t)
	f.answers["/v1/groups"], f.answers["/v1/market"], f.answers["/v1/history"] = []client.Group{}, client.Market{}, client.History{}
	f.answers["/v1/measured"], f.answers["/v1/users"], f.answers["/v1/tokens"] = []client.Run{}, []client.User{}, []client.Token{}
	f.answers["/v1/notices"] = []client.Notice{}
	f.answers["/v1/audit"], f.answers["/v1/models"] = client.Audit{}, []client.ModelVersion{}
	f.answers["/v1/proposals"] = client.Proposals{}
	f.answers["/v1/waste/survey"] = client.Survey{}
	f.answers["/v1/storage"], f.answers["/v1/waste"], f.answers["/v1/bills"], f.answers["/v1/bills/reconcile"] = client.Storage{}, client.Waste{}, client.Bills{}, trueup.Comparison{}
	f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/diagnosis"], f.answers["/v1/diagnoses"] = client.Job{ID: "a"}, client.Diagnosis{}, []client.Diagnosis{}
	f.answers["/v1/anomalies/alerts"] = []client.AnomalyAlert{}
	f.answers["/v1/anomalies"], f.answers["/v1/anomalies/planned"] = client.Anomalies{}, []client.PlannedAnomalies{}
	for _, path := range everyPage {
		if !strings.HasPrefix(path, "/groups/") {
			pageOf(t, s, path)
		}
	}
}

// Each total is the exact sum of all lines, including those that other pages list, and all pages list each line once.
func TestCosts_TotalsAreTheSumOfTheLines(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 7, 200, 201, 1000} {
		f, s := newFake(t)
		var lines []client.CostLine
		want := map[client.Use]money.Amount{}
		spent := money.Amount{}
		for i := range n {
			l := client.CostLine{Name: fmt.Sprint("t", i), Currency: "USD", Jobs: 1, Uses: map[client.Use]money.Amount{}}
			for k, u := range useOrder {
				a := money.Picos(int64(i+1) * int64(k+1) * 333_333_333_333)
				if i%5 == 4 && u == client.Open {
					a = a.Neg()
				}
				l.Uses[u], want[u], l.Spent, spent = a, want[u].Add(a), l.Spent.Add(a), spent.Add(a)
			}
			lines = append(lines, l)
		}
		f.answers["/v1/costs"] = client.Costs{By: "team", Until: now, Lines: lines}
		listed := map[string]int{}
		var columns, totals map[string]money.Amount
		for at := "/costs"; at != ""; {
			root := pageOf(t, s, at)
			columns, totals, at = map[string]money.Amount{}, map[string]money.Amount{}, ""
			walk(root, func(n *html.Node) {
				if to := attr(n, "href"); n.Data == "a" && attr(n, "title") == "the lines that it sums" {
					at = to // the last one leads on, as that to the lines before stands above
				}
				if n.Data != "tbody" && n.Data != "tfoot" {
					return
				}
				to := columns
				if n.Data == "tfoot" {
					to = totals
				}
				walk(n, func(td *html.Node) {
					if td.Data == "th" && td.FirstChild != nil && td.FirstChild.Type == html.TextNode {
						listed[td.FirstChild.Data]++
					}
					if name := attr(td, "data-l"); td.Data == "td" && name != "jobs" {
						for _, a := range amounts(td) {
							to[name] = to[name].Add(a)
						}
					}
				})
			})
			for name, total := range totals {
				if total.Cmp(columns[name]) != 0 {
					t.Errorf("%d lines: %s adds up to %s, and the total is %s", n, name, columns[name], total)
				}
			}
			if seen := len(listed) - 1; seen >= n { // without the word Total
				at = ""
			}
		}
		for _, l := range lines {
			if listed[l.Name] != 1 {
				t.Errorf("%d lines: %s is listed %d times", n, l.Name, listed[l.Name])
			}
		}
		if totals["spent"].Cmp(spent) != 0 {
			t.Errorf("%d lines: the total is %s, want %s", n, totals["spent"], spent)
		}
		for u, a := range want {
			if totals[string(u)].Cmp(a) != 0 {
				t.Errorf("%d lines: %s is %s, want %s", n, u, totals[string(u)], a)
			}
		}
		for _, from := range []string{"-1", "x", fmt.Sprint(n + 1), "99999999999999999999"} {
			if rec := asks(s, "GET", "/costs?from="+from, ""); rec.Code != http.StatusBadRequest {
				t.Errorf("from=%s: %d", from, rec.Code)
			}
		}
	}
}

func TestCostsCSV_IsExactAndNoFormula(t *testing.T) {
	t.Parallel()
	_, s := full(t, evil)
	rec := asks(s, "GET", "/costs.csv?by=project", "")
	rows, err := csv.NewReader(rec.Body).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v: %q", err, rows)
	}
	if rows[1][0][0] != '\'' || strings.ContainsAny(rows[1][0], "\x1b\u202e") || rows[1][3] != "5" && !strings.HasPrefix(rows[1][3], "5.") {
		t.Errorf("%q", rows[1])
	}
	if rows[1][9] != "" { // the estimate is unknown, which is not zero
		t.Errorf("%q", rows[1])
	}
}

func TestChargebackCSV_IsExactAndNoFormula(t *testing.T) {
	t.Parallel()
	_, s := full(t, evil)
	rows, err := csv.NewReader(asks(s, "GET", "/chargeback.csv", "").Body).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v: %q", err, rows)
	}
	if rows[1][1][0] != '\'' || strings.ContainsAny(rows[1][1], "\x1b\u202e") || rows[1][4] != "1" || rows[1][16] != "" || rows[2][5] != "-1" {
		t.Errorf("%q", rows)
	}
}

// The total of the machines is their sum over all pages, each of which lists a bounded number of them.
func TestMachines_TotalIsTheirSum(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 200, 201, 450} {
		f, s := full(t, "plain")
		list := make([]client.Machine, n)
		for i := range list {
			list[i] = client.Machine{Instance: fmt.Sprintf("i&%03d", i), Currency: "USD", State: client.MachineRunning, Cost: money.Picos(int64(7 + i)), Since: now}
		}
		f.answers["/v1/machines"] = list
		var sum money.Amount
		rows, pages := 0, 0
		for path := "/machines"; path != ""; pages++ {
			cells := func(page *html.Node, tag string) (sum money.Amount, n int) {
				walk(page, func(part *html.Node) {
					if part.Data == tag {
						walk(part, func(td *html.Node) {
							if attr(td, "data-l") == "cost" {
								n++
								for _, a := range amounts(td) {
									sum = sum.Add(a)
								}
							}
						})
					}
				})
				return sum, n
			}
			page := pageOf(t, s, path)
			part, listed := cells(page, "tbody")
			rows, sum = rows+listed, sum.Add(part)
			if total, _ := cells(page, "tfoot"); listed > 200 || total.Cmp(money.Picos(int64(n*7+n*(n-1)/2))) != 0 {
				t.Errorf("%s has %d of %d machines, and the total %s", path, listed, n, total)
			}
			path = ""
			walk(page, func(a *html.Node) {
				if attr(a, "rel") == "next" {
					path = attr(a, "href")
				}
			})
		}
		if sum.Cmp(money.Picos(int64(n*7+n*(n-1)/2))) != 0 || rows != n || pages != (n+199)/200 {
			t.Errorf("%d machines on %d pages cost %s, and there are %d", rows, pages, sum, n)
		}
		f.answers["/v1/machines"] = list[:1] // the others have ended
		if text := textOf(pageOf(t, s, "/machines?after=i%26100")); !strings.Contains(text, "First page") {
			t.Errorf("a page whose machines have ended says %.300s", text)
		}
	}
}

// The page of a search lists the best trial first, and those without a value last.
func TestGroup_ListsTheBestTrialFirst(t *testing.T) {
	t.Parallel()
	_, s := full(t, "loss")
	text := asks(s, "GET", "/groups/search", "").Body.String()
	_, text, _ = strings.Cut(text, `id="trials"`)
	at := func(id string) int { return strings.Index(text, ">"+id+"<") }
	if at("search.2") < 0 || at("search.2") > at("search.1") || at("search.1") > at("search.0") {
		t.Errorf("the trials stand at %d, %d and %d", at("search.2"), at("search.1"), at("search.0"))
	}
}

// The page of a search has its drawings, what its trials cost, and what leaving trials early saved: in full less the
// cost.
func TestGroup_ShowsHowASearchWent(t *testing.T) {
	t.Parallel()
	_, s := full(t, "loss")
	text := asks(s, "GET", "/groups/search", "").Body.String()
	parse(t, text)
	for _, want := range []string{"Best value against the spend", "loss by loss", "Parameters of the trials and their best values",
		`<th scope="row">lr</th><td class="n">62 %`, `<p class="notice">loss</p>`, "$1.67</p>", "$5.00 for each of 1 trained in full",
		"$4.00 saved against all in full", `<th scope="row">1</th><td class="n">2</td><td class="n">1</td><td class="n">0.5</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// Places of values on an axis: by the logarithm where the parameter has one, in the middle where all are equal, and
// nowhere for a value that is none of the parameter's.
func TestPlacesOf_FollowTheParameter(t *testing.T) {
	t.Parallel()
	trials := func(values ...string) (list []client.Trial) {
		for _, v := range values {
			list = append(list, client.Trial{Params: map[string]string{"p": v}})
		}
		return list
	}
	for _, c := range []struct {
		q      client.StudyParam
		values []string
		want   string
	}{
		{client.StudyParam{Name: "p", Min: 1, Max: 9}, []string{"2", "4", "6"}, "[0 0.5 1] 2 6"},
		{client.StudyParam{Name: "p", Log: true}, []string{"0.01", "0.1", "1"}, "[0 0.5 1] 0.01 1"},
		{client.StudyParam{Name: "p"}, []string{"3", "3", "x"}, "[0.5 0.5 NaN] 3 3"},
		{client.StudyParam{Name: "p", Values: []string{`"a"`, "16"}}, []string{"16", "a", "b"}, "[0.75 0.25 NaN] a 16"},
	} {
		column, low, high := placesOf(c.q, trials(c.values...))
		if got := fmt.Sprintf("%.4g %s %s", column, low, high); got != c.want {
			t.Errorf("%+v of %v: %s, want %s", c.q, c.values, got, c.want)
		}
	}
}

// The rows of the page of waste add up to its totals exactly.
func TestWaste_TotalsAreTheSumOfTheRows(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	v := client.Waste{Since: now.Add(-48 * time.Hour), Until: now}
	total := money.Amount{}
	for i := range 5 {
		cost := money.Picos(int64(i+1) * 1_234_567_890_123)
		total = total.Add(cost)
		v.Findings = append(v.Findings, client.WasteFinding{ID: fmt.Sprint("w-", i), Kind: "untagged", Currency: "USD", Cost: cost, Action: "keep"})
	}
	v.Totals = []client.WasteTotal{{Currency: "USD", Findings: 5, Cost: total, Unknown: 5}}
	f.answers["/v1/waste"] = v
	text := asks(s, "GET", "/waste", "").Body.String()
	rows, foot, _ := strings.Cut(text, "<tfoot>")
	sum := money.Amount{}
	for _, m := range regexp.MustCompile(`data-l="cost"><data[^>]* value="([^"]+)"`).FindAllStringSubmatch(rows, -1) {
		a, err := money.Parse(m[1])
		must.Do(t, err)
		sum = sum.Add(a)
	}
	if sum != total || !strings.Contains(foot, `value="`+total.String()+`"`) || !strings.Contains(foot, "5 savings unknown") {
		t.Errorf("rows have %v, want %v: %s", sum, total, text)
	}
}

// The page of waste asks the engines only if the reader wants it. Its sum has every resource with a price, also those
// beyond the rows shown, counts those without a price, and a reader who does not see all teams gets the reason.
func TestWaste_EnginesAreAskedOnRequest(t *testing.T) {
	t.Parallel()
	f, s := full(t, "plain")
	v, total := client.Survey{Engines: []client.SurveyEngine{{Name: "aws", Lists: true, Seen: 260}}}, money.Amount{}
	for i := range shownResources + 50 {
		r := client.SurveyResource{Engine: "aws", ID: fmt.Sprintf("vol-%03d", i), Kind: "volume", Currency: "USD", Action: "delete", Try: "aws x --dry-run", Command: "aws x"}
		if i%5 > 0 {
			r.Monthly = new(money.Picos(int64(i) * 1_000_000_000_001))
			total = total.Add(*r.Monthly)
		}
		v.Resources = append(v.Resources, r)
	}
	f.answers["/v1/waste/survey"] = v
	if text := asks(s, "GET", "/waste", "").Body.String(); strings.Contains(text, "Seen by the engines") {
		t.Error("the engines are asked unbidden")
	}
	text := asks(s, "GET", "/waste?engines=on", "").Body.String()
	for _, want := range []string{`value="` + total.String() + `"`, "50 resources without a known price", "50 more resources", "aws x --dry-run", "vol-199",
		"scrimp waste --engines"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s: %s", want, text)
		}
	}
	if strings.Contains(text, "vol-200") {
		t.Error("the rows have no limit")
	}
	f.answers["/v1/waste/survey"] = &client.Problem{Status: 403, Title: "no"}
	if text := asks(s, "GET", "/waste?engines=on", "").Body.String(); !strings.Contains(text, "you need the role viewer of all teams") {
		t.Error(text)
	}
}

// The total of the page of storage is the sum of its kinds.
func TestStorage_TotalIsTheSumOfTheKinds(t *testing.T) {
	t.Parallel()
	_, s := full(t, "plain")
	text := asks(s, "GET", "/storage", "").Body.String()
	for _, want := range []string{"3MiB", "1MiB", ">4MiB<", "5B"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s: %s", want, text)
		}
	}
}

// The months are those of the market's clock, which may run ahead: the newest is the one that the server takes if none
// is asked for.
func TestChargeback_OffersMonthsOfTheMarketsClock(t *testing.T) {
	t.Parallel()
	f, s := full(t, "a")
	f.answers["/v1/server"] = client.Server{Market: client.MarketClock{Name: "fast", Speed: 3600, Now: now.AddDate(0, 2, 0)}}
	page := asks(s, "GET", "/chargeback", "").Body.String()
	if !strings.Contains(page, "2027-01, up to now") || !strings.Contains(page, `value="2026-11"`) || strings.Contains(page, "2026-11, up to now") {
		t.Errorf("two months after 2026-11 the page offers:\n%s", page)
	}
}
