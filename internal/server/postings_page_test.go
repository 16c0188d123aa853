package server

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/bill"
)

// linkedSum finds a sum of a page with the address of its postings.
var linkedSum = regexp.MustCompile(`<a class="sum" href="([^"]*export/costs[^"]*)"[^>]*><data class="money[^"]*" value="([^"]*)"`)

// totalRows finds the rows of totals, and bareSum a cell of one whose amount is not zero and has no link.
var (
	totalRows = regexp.MustCompile(`(?s)<tfoot>.*?</tfoot>`)
	bareSum   = regexp.MustCompile(`data-l="([^"]*)"><data class="money"`)
)

// noPostings lists the columns whose totals compare, forecast or divide costs.
const noPostings = " price estimated actual saved shared total a-month saves-a-month wasted "

// Each linked sum of a page is, to the last digit, the sum of the rows of the file that it links to: of costs by the time
// that was paid for and by the time of booking, of budgets, machines, attempts, tags and uses.
func TestPages_SumsEqualThePostingsThatTheyLinkTo(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.idles(8 * time.Hour)
	w.must("POST", "/v1/groups", inArray("sweep", "team-1", "0-1", ""), nil)
	w.began("sweep", 2)
	for _, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, 35*time.Hour)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 38*time.Hour)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(38 * time.Hour), Cause: "terminated"}, 38*time.Hour)
	}
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"team:team-1","window":"total","dollars":"5000"}}`, nil)
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","dollars":"5000"}}`, nil)
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"tag:model=lm","window":"total","dollars":"5000"}}`, nil)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"tagged","command":"true","team":"team-1","budget":"$20","tags":{"model":"lm"}}}`, nil)
	tagged := w.booting(1)[0]
	w.event(core.AttemptStarted{Attempt: tagged, Message: 1}, 60*time.Hour)
	w.event(core.AttemptEnded{Attempt: tagged, Message: 2, Reason: "completed"}, 62*time.Hour)
	w.event(core.InstanceEnded{Instance: w.instance(tagged), Until: w.control.Now().Add(62 * time.Hour), Cause: "terminated"}, 62*time.Hour)
	now := w.control.Now()
	until := now.Add(24 * time.Hour).UTC().Format(time.DateOnly)
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	for page, least := range map[string]int{"/": 4, "/jobs": 3, "/jobs?by=team": 2, "/jobs?by=project": 2,
		"/jobs?by=tag&tag=model": 3, "/jobs?by=user&team=team-1": 2, "/jobs?by=state": 1, "/jobs/fit": 4, "/jobs/sweep.0": 4, "/groups/sweep": 4, "/teams": 3,
		"/review": 5, "/machines": 1, "/groups": 1, "/proposals": 0, "/costs?by=team": 9, "/costs?by=project": 6, "/costs?by=kind": 6, "/costs?by=tag&tag=model": 6,
		"/costs?by=user": 6, "/costs?by=job": 9, "/costs?by=provider": 6, "/costs?by=region": 6, "/costs?by=sku": 6, "/costs?by=category": 6,
		"/costs?since=30d": 6, "/costs?since=24h": 2, "/costs?since=24h&by=job": 2, "/costs?since=30d&by=tag&tag=model": 4,
		"/costs/days?until=" + until: 5, "/costs/days?by=sku&until=" + until: 5, "/chargeback": 3, "/estimates": 0, "/models": 0} {
		ann.sumsAreLinked(page, least)
	}
	ann.shows("/data/export/costs?"+url.Values{"team": {"nosuch"}}.Encode(), 404, "no costs in that span match")
}

// sumsAreLinked checks the sums of a page.
func (b *reader) sumsAreLinked(page string, least int) {
	t := b.w.t
	t.Helper()
	shown := b.shows(page, 200)
	for _, foot := range totalRows.FindAllString(shown, -1) {
		for _, bare := range bareSum.FindAllStringSubmatch(foot, -1) {
			if !strings.Contains(noPostings, " "+bare[1]+" ") {
				t.Errorf("%s: the total of %q has no link", page, bare[1])
			}
		}
	}
	found := linkedSum.FindAllStringSubmatch(shown, -1)
	if len(found) < least {
		t.Errorf("%s: %d sums have a link, want %d", page, len(found), least)
	}
	for _, link := range found {
		address := html.UnescapeString(link[1])
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.shows(address, 200), "\ufeff"))).ReadAll()
		must.Do(t, err)
		sum, cost := money.Amount{}, len(rows[0])-2
		for _, row := range rows[1:] {
			a, err := money.Parse(row[cost])
			if err != nil || rows[0][cost] != "cost" {
				t.Fatalf("%s: %v %v", address, rows[0], err)
			}
			sum = sum.Add(a)
		}
		if sum.String() != link[2] {
			t.Errorf("%s shows %s, and the rows of %s add up to %s", page, link[2], address, sum)
		}
	}
}

// The same of a bill, of the parts of it in the review, and of statements with shared cost.
func TestPages_SumsOfBillsAndStatementsEqualTheirPostings(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	first := rowsOf(w.line(0, bill.Compute, "12.3456789012345"), w.line(0, bill.Tax, "1.1"), w.line(1, bill.Compute, "0.5"),
		w.line(1, bill.Credit, "-0.75"))
	if code, _, p := w.imports(auth.OwnerName, first...); code != 200 {
		t.Fatalf("%d %+v", code, p)
	}
	w.must("POST", "/v1/jobs", `{"spec":{"name":"alone","command":"true","budget":"$20"}}`, nil)
	w.event(core.AttemptStarted{Attempt: w.booting(1)[0], Message: 1}, time.Minute) // of no team, and it runs
	w.books()
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	for page, least := range map[string]int{"/bills?month=" + w.month: 4, "/review?month=" + w.month: 9, "/chargeback?month=" + w.month: 10,
		"/machines": 2, "/groups": 0} {
		ann.sumsAreLinked(page, least)
	}
	ann.shows("/data/export/costs?except=nonsense", 400, "write NAME=VALUE")
	ann.shows("/data/export/costs?rented=yes", 400, "write 1")
}

// A viewer of one of two teams that share a machine sees the job of that team alone, whichever came first, and the part
// of that team with its postings; the parts add up to the cost. Who sees both teams sees both jobs and the whole.
func TestMachines_ThatTeamsShareShowWhatTheReaderMaySee(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/team-1", api.SetTeam{}, nil)
	var cfg core.Config
	w.control.Read(func(m *core.Machine) { cfg = *m.State().Config() })
	cfg.Seats, cfg.Providers = 4, maps.Clone(cfg.Providers)
	for name, timing := range cfg.Providers {
		timing.Seats = 4
		cfg.Providers[name] = timing
	}
	w.event(core.Configured{Config: cfg}, 0)
	submit := func(name, team string) {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","team":%q,"resources":{"cpus":1}}}`, name, team), nil)
	}
	submit("first", "team-0")
	first := w.booting(1)[0]
	w.event(core.MachineRegistered{Instance: w.instance(first), Allocation: first, Key: "k"}, time.Second)
	w.event(core.AgentClaimed{Attempt: first, By: "a"}, 2*time.Second)
	w.event(core.AttemptStarted{Attempt: first, Message: 1}, time.Minute)
	submit("second", "team-1")
	second := w.booting(2)
	if one, two := w.instance(second[0]), w.instance(second[1]); one != two {
		t.Fatalf("the jobs are on %s and %s", one, two)
	}
	w.event(core.AttemptStarted{Attempt: "second.1", Message: 1}, time.Hour)
	own, whole := money.Amount{}, money.Amount{}
	for team, want := range map[string][2]string{"team-0": {"first", "second"}, "team-1": {"second", "first"}} {
		vic := w.signedIn(w.user("vic-"+team, identity.Grant{Team: team, Role: identity.Viewer}))
		text := vic.shows("/machines", 200, `/jobs/`+want[0]+`"`, "your teams’ part of", "the rest belongs to others")
		if strings.Contains(text, `/jobs/`+want[1]+`"`) {
			t.Errorf("a viewer of %s sees the job %s of another team", team, want[1])
		}
		vic.sumsAreLinked("/machines", 1)
		var list []api.Machine
		must.Do(t, json.Unmarshal([]byte(vic.shows("/data/machines", 200)), &list))
		if len(list) != 1 || list[0].Own == nil || list[0].Own.Sign() <= 0 {
			t.Fatalf("a viewer of %s gets %+v", team, list)
		}
		own, whole = own.Add(*list[0].Own), list[0].Cost
		if strings.Contains(vic.shows("/data/machines", 200), `"`+want[1]+`"`) {
			t.Errorf("the API names the job %s to a viewer of %s", want[1], team)
		}
	}
	if own != whole {
		t.Errorf("the parts of the teams add up to %s, and the machine cost %s", own, whole)
	}
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Viewer}))
	ann.shows("/machines", 200, `/jobs/first"`, `/jobs/second"`)
	ann.sumsAreLinked("/machines", 2)
}
