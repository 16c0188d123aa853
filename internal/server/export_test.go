package server

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/focustest"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// spentIn returns the total of scrimp costs.
func (w *world) spentIn() (all money.Amount) {
	var v api.Costs
	w.must("GET", "/v1/costs", nil, &v)
	for _, l := range v.Lines {
		all = all.Add(l.Spent)
	}
	return all
}

// focus fetches a FOCUS file and checks it against the format's rules.
func (w *world) focus(version, query string) focustest.File {
	w.t.Helper()
	rec, _ := w.ask("GET", "/v1/export/focus?version="+version+query, auth.OwnerName, nil)
	if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") {
		w.t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	f, broken, err := focustest.Read(rec.Body, version, "x_Team", "x_Outcome")
	if err != nil || len(broken) > 0 {
		w.t.Fatal(err, strings.Join(broken, "\n"))
	}
	return f
}

func rat(a money.Amount) *big.Rat { return new(big.Rat).SetFrac(a.Big(), big.NewInt(1e12)) }

// The file has the costs up to now, including running machines, by team and outcome, and obeys the rules of the
// format; once all jobs have ended, it equals the ledger exactly.
func TestExportFocus_EqualsTheLedgerUpToNow(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	for i := range 6 {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":"j%d","command":"true","team":"team-%d","project":"p","tags":{"ticket":"%d"}}}`, i, i%2, i), nil)
	}
	asked := w.booting(4)
	for n, id := range asked {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Hour)
		if n%2 == 0 {
			w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 800*time.Hour) // past the end of a month
			w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(800*time.Hour + 2*time.Minute),
				Cause: "terminated"}, 800*time.Hour+3*time.Minute)
		}
	}
	for _, v := range []string{"1.2", "1.3", "1.4"} {
		before := w.spentIn()
		f := w.focus(v, "")
		if after := w.spentIn(); f.Cost.Cmp(rat(before)) < 0 || f.Cost.Cmp(rat(after)) > 0 || f.Rows < 6 {
			t.Errorf("%s: %s in %d rows, costs said %v before and %v after", v, f.Cost.FloatString(12), f.Rows, before, after)
		}
	}
	for i := range 6 {
		w.must("POST", fmt.Sprintf("/v1/jobs/j%d/end", i), client.End{}, nil)
	}
	w.until(func(m *core.Machine) bool { // a machine that is granted late costs something later
		for range m.State().Allocations() {
			return false
		}
		return true
	})
	for {
		var live []string
		w.control.Read(func(m *core.Machine) {
			for _, a := range m.Live() {
				live = append(live, a.Instance())
			}
		})
		if len(live) == 0 {
			break
		}
		for _, id := range live {
			w.event(core.InstanceEnded{Instance: id, Until: w.control.Now().Add(900 * time.Hour), Cause: "terminated"}, 900*time.Hour)
		}
	}
	totals, err := ledger.Totals(w.store.Postings(t.Context(), "default", ""), ledger.ByTeam)
	must.Do(t, err)
	f := w.focus("1.4", "")
	want := map[string]*big.Rat{}
	for k, a := range totals {
		name := k.Owner + "," + string(k.Use)
		if want[name] == nil {
			want[name] = new(big.Rat)
		}
		want[name].Add(want[name], rat(a))
	}
	for name, sum := range want {
		if got := f.By[name]; got == nil && sum.Sign() != 0 || got != nil && got.Cmp(sum) != 0 {
			t.Errorf("%s: %v, the ledger has %s", name, got, sum.FloatString(12))
		}
	}
	// Adjacent spans add up.
	middle := w.control.Now().Add(300 * time.Hour).UTC().Truncate(time.Hour).Format(time.RFC3339)
	first, second := w.focus("1.4", "&until="+middle), w.focus("1.4", "&since="+middle)
	if both := new(big.Rat).Add(first.Cost, second.Cost); both.Cmp(f.Cost) != 0 || first.Rows == 0 || second.Rows == 0 {
		t.Errorf("until then %s, since then %s, in all %s", first.Cost.FloatString(12), second.Cost.FloatString(12), f.Cost.FloatString(12))
	}
}

// A file for spreadsheets names the owner of each cost.
func TestExportCosts_NamesTheOwners(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"a","command":"true","team":"t","project":"p"}}`, nil)
	id := w.booting(1)[0]
	w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(time.Hour), Cause: "interrupted"}, time.Hour)
	rec, _ := w.ask("GET", "/v1/export/costs", auth.OwnerName, nil)
	list, err := csv.NewReader(rec.Body).ReadAll()
	if err != nil || rec.Code != 200 || len(list) < 2 {
		t.Fatal(rec.Code, err, list)
	}
	for _, row := range list[1:] {
		if row[2] != "t" || row[3] != "p" || row[5] != "a" {
			t.Errorf("%q", row)
		}
	}
}

func TestExport_OmitsOtherTeamsAndRefusesBadSpans(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	rec, p := w.ask("GET", "/v1/export/focus", auth.OwnerName, nil)
	if rec.Code != 404 || p.Fix == "" || strings.Contains(p.Title+p.Fix, "span") || strings.Contains(p.Fix, "--since") {
		t.Errorf("of nothing: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("GET", "/v1/export/focus?since=2001-10", auth.OwnerName, nil); rec.Code != 404 || !strings.Contains(p.Fix, "--since") {
		t.Errorf("of a span with nothing: %d %+v", rec.Code, p)
	}
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Viewer})
	w.must("POST", "/v1/jobs", aJob("a", "team-1"), nil)
	w.must("POST", "/v1/jobs", aJob("b", "team-0"), nil)
	w.booting(2)
	for _, path := range []string{"/v1/export/focus", "/v1/export/costs"} {
		rec, _ := w.ask("GET", path, ann, nil)
		if rec.Code != 200 || strings.Contains(rec.Body.String(), "team-1") || !strings.Contains(rec.Body.String(), "team-0") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		for _, bad := range []string{"since=7", "since=2026-13", "until=2026-10-01T00:30:00Z", "since=2026-11&until=2026-10", "since=2026-10&until=2026-10"} {
			if rec, p := w.ask("GET", path+"?"+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field == "" || p.Fix == "" {
				t.Errorf("%s: %d %+v", bad, rec.Code, p)
			}
		}
	}
	if rec, p := w.ask("GET", "/v1/export/focus?version=1.1", auth.OwnerName, nil); rec.Code != 400 || p.Field != "version" || !strings.Contains(p.Fix, "1.4") {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// The parts of each line add up to its change exactly, and the lines to the exports of both periods.
func TestWhy_PartsAddUpToTheExports(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	for i := range 4 {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", i), fmt.Sprint("team-", i%2)), nil)
	}
	begin := w.control.Now().UTC().Truncate(time.Hour)
	for n, id := range w.booting(4) {
		long := time.Duration(n+1) * 20 * time.Hour
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Hour)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, long)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(long), Cause: "terminated"}, long)
	}
	stamp := func(after time.Duration) string { return begin.Add(after).Format(time.RFC3339) }
	first, second := stamp(0)+".."+stamp(24*time.Hour), stamp(24*time.Hour)+".."+stamp(96*time.Hour)
	total := ""
	for _, by := range []string{"team", "job", "project", "sku"} {
		var v client.Why
		w.must("GET", "/v1/why?before="+first+"&after="+second+"&by="+by, nil, &v)
		var before, after money.Amount
		for _, l := range v.Lines {
			var parts money.Amount
			for _, a := range l.Parts {
				parts = parts.Add(a)
			}
			if parts != l.Change || l.Change != l.After.Sub(l.Before) {
				t.Errorf("%+v", l)
			}
			before, after = before.Add(l.Before), after.Add(l.After)
		}
		if v.Totals[0].Before != before || v.Totals[0].After != after || after.IsZero() || len(v.Jobs) != 4 {
			t.Errorf("by %s: %+v", by, v)
		}
		if got := fmt.Sprint(v.Totals); total != "" && got != total { // the same for every grouping
			t.Errorf("by %s the totals are %s, by another name %s", by, got, total)
		}
		total = fmt.Sprint(v.Totals)
		for _, cause := range v.Causes {
			var sum money.Amount
			for _, l := range slices.Concat(v.Lines, v.Between) {
				sum = sum.Add(l.Parts[cause])
			}
			if sum != v.Totals[0].Parts[cause] {
				t.Errorf("by %s: %s is %v, lines and what is between them have %v", by, cause, v.Totals[0].Parts[cause], sum)
			}
		}
		for _, part := range []struct {
			since, until time.Duration
			want         money.Amount
		}{{0, 24 * time.Hour, before}, {24 * time.Hour, 96 * time.Hour, after}} {
			if f := w.focus("1.4", "&since="+stamp(part.since)+"&until="+stamp(part.until)); f.Cost.Cmp(rat(part.want)) != 0 {
				t.Errorf("%v in the file, %v in the comparison", f.Cost.FloatString(12), part.want)
			}
		}
	}
	ann := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/why?before="+first+"&after="+second, ann, nil)
	if rec.Code != 200 || strings.Contains(rec.Body.String(), "team-1") || strings.Contains(rec.Body.String(), "j1") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for bad, field := range map[string]string{"before=2026-10&after=": "after", "before=x&after=2026-11": "before", "before=2026-10&after=2026-10": "after",
		"before=2026-10..2026-09&after=2026-11": "before", "before=2026-10&after=2026-11&by=colour": "by",
		"before=2026-10&after=2999-01": "after", "before=2999-01&after=2026-10": "before"} {
		if rec, p := w.ask("GET", "/v1/why?"+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != field || p.Fix == "" ||
			strings.Contains(p.Detail, "model_version") { // the fix lists them
			t.Errorf("%s: %d %+v", bad, rec.Code, p)
		}
	}
	if rec, p := w.ask("GET", "/v1/why?before=2001-10&after=2001-11", auth.OwnerName, nil); rec.Code != 404 || p.Fix == "" {
		t.Errorf("%d %+v", rec.Code, p)
	}
}
