package server

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// A month's statements equal the export of the month by team. Shares and what is left, with the fees, add up to it.
// Figures of runs equal those of the jobs, and the page and its CSV agree.
func TestChargeback_AddsUpToTheExport(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for i := range 4 {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", i), []string{"team-0", "team-1", ""}[i%3]), nil)
	}
	for n, id := range w.booting(4) {
		long := time.Duration(n+1) * 20 * time.Minute
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		if strings.HasPrefix(id, "j1.") {
			w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(long), Cause: "interrupted"}, long)
			continue
		}
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, long)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(long), Cause: "terminated"}, long)
	}
	w.booting(1) // the interrupted job has its next machine, and nothing else changes any more
	fee, _ := money.Parse("100.000000000001")
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "tracking", Amount: fee, Currency: money.USD}, nil)
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "later", Amount: fee, Currency: money.USD, Since: "2999-01"}, nil)
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "gone", Amount: fee, Currency: money.USD, Until: "2001-01"}, nil)
	month := w.control.Now().UTC().Format("2006-01")
	f := w.focus("1.4", "&since="+month)
	byTeam := map[string]*big.Rat{"": new(big.Rat)}
	for name, cost := range f.By { // team,outcome
		team := name[:strings.LastIndexByte(name, ',')]
		if byTeam[team] == nil {
			byTeam[team] = new(big.Rat)
		}
		byTeam[team].Add(byTeam[team], cost)
	}
	w.must("PUT", "/v1/teams/team-9", api.SetTeam{}, nil)
	for _, rule := range []string{"proportional", "even", "fixed&share=team-0=1&share=team-9=2"} {
		var v client.Chargeback
		w.must("GET", "/v1/chargeback?month="+month+"&rule="+rule, nil, &v)
		own, total, left, shared := money.Amount{}, money.Amount{}, money.Amount{}, money.Amount{}
		runs := 0
		for _, s := range v.Statements {
			if want := byTeam[s.Team]; want != nil && rat(s.Own).Cmp(want) != 0 || want == nil && (!s.Own.IsZero() || s.Team != "team-9") {
				t.Errorf("%s: %v, the file has %v", s.Team, s.Own, want)
			}
			parts := money.Amount{}
			for _, p := range s.Shares {
				parts = parts.Add(p.Amount)
				if p.Method == "" {
					t.Errorf("%s: a share of %s without its method", s.Team, p.Name)
				}
			}
			if parts != s.Shared || s.Total != s.Own.Add(s.Shared) || s.Own != s.Accrued.Add(s.Billed).Add(s.Estimated) {
				t.Errorf("%+v", s)
			}
			if s.Team == "team-1" && s.LostToInterrupts.Sign() <= 0 || s.Team == "team-0" && (!s.LostToInterrupts.IsZero() || s.PerSuccess == nil) {
				t.Errorf("%s lost %v, a success cost %v", s.Team, s.LostToInterrupts, s.PerSuccess)
			}
			if s.Runs > 0 && s.PerRun.Times(s.Runs).Cmp(s.Own) > 0 || s.PerEpoch != nil || s.PerMillion != nil {
				t.Errorf("%+v", s)
			}
			own, total, shared, runs = own.Add(s.Own), total.Add(s.Total), shared.Add(s.Shared), runs+s.Runs
		}
		pools := money.Amount{}
		for _, p := range v.Pools {
			if p.Amount != p.Divided.Add(p.Left) || p.Method == "" {
				t.Errorf("%+v", p)
			}
			pools, left = pools.Add(p.Amount), left.Add(p.Left)
		}
		want := new(big.Rat).Add(f.Cost, rat(fee))
		if rat(total.Add(left)).Cmp(want) != 0 || rat(own.Add(pools)).Cmp(want) != 0 || v.Totals[0].Total != total.Add(left) ||
			v.Totals[0].Own != own || v.Totals[0].Shared != shared || len(v.Pools) != 2 || runs != 3 || v.Over || !v.Whole {
			t.Errorf("%s: %s expected, %+v", rule, want.FloatString(12), v)
		}
		columns := make([]money.Amount, 7)
		for _, row := range v.Table()[1:] {
			for i := 4; i < 7; i++ {
				a, err := money.Parse(row[i])
				if err != nil {
					t.Fatal(err, row)
				}
				columns[i] = columns[i].Add(a)
			}
		}
		if rat(columns[4]).Cmp(want) != 0 || !columns[5].IsZero() || rat(columns[6]).Cmp(want) != 0 {
			t.Errorf("the columns of the table have %v", columns[4:])
		}
	}
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	if text := b.shows("/chargeback?rule=even", 200); !strings.Contains(text, "team-1") || !strings.Contains(text, "tracking") {
		t.Error(text)
	}
	list, err := csv.NewReader(strings.NewReader(b.shows("/chargeback.csv", 200))).ReadAll()
	if err != nil || len(list) != 5 || list[1][1] != "team-0" {
		t.Error(err, list)
	}
}

// A viewer sees their own team's full statement; setting a fee requires the right; errors name the field.
func TestChargeback_HidesOtherTeamsAndRefusesBadInput(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	if rec, p := w.ask("GET", "/v1/chargeback", auth.OwnerName, nil); rec.Code != 404 || p.Fix == "" {
		t.Errorf("a month with nothing: %d %+v", rec.Code, p)
	}
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	for i := range 2 {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", i), fmt.Sprint("team-", i)), nil)
	}
	for _, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
	}
	fee, _ := money.Parse("10")
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "tracking", Amount: fee, Currency: money.USD}, nil)
	ann := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/chargeback?rule=even", ann, nil)
	if text := rec.Body.String(); rec.Code != 200 || strings.Contains(text, "team-1") || !strings.Contains(text, `"whole":false`) ||
		!strings.Contains(text, `"shared":"5"`) || !strings.Contains(text, `"pools":[]`) {
		t.Errorf("%d %s", rec.Code, text)
	}
	if rec, _ := w.ask("PUT", "/v1/chargeback/fees", ann, client.Fee{Name: "x", Amount: fee, Currency: money.USD}); rec.Code != 403 {
		t.Errorf("a viewer sets a fee: %d", rec.Code)
	}
	for bad, field := range map[string]string{"month=2026": "month", "month=2999-01": "month", "month=2026-13": "month", "rule=spin": "rule",
		"rule=fixed": "rule", "rule=even&share=a=1": "share", "rule=fixed&share=ghost=1": "share", "rule=fixed&share=a=x": "share"} {
		if rec, p := w.ask("GET", "/v1/chargeback?"+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != field || p.Fix == "" {
			t.Errorf("%s: %d %+v", bad, rec.Code, p)
		}
	}
	if rec, p := w.ask("PUT", "/v1/chargeback/fees", auth.OwnerName, client.Fee{Name: "team-0", Amount: fee, Currency: money.USD}); rec.Code != 422 || p.Field != "name" {
		t.Errorf("a fee has the name of a team: %d %+v", rec.Code, p)
	}
	for field, bad := range map[string]client.Fee{"name": {Name: "(idle machines)", Amount: fee, Currency: money.USD}, "currency": {Name: "a", Amount: fee, Currency: "EURO"},
		"amount": {Name: "a", Amount: fee.Neg(), Currency: money.USD}, "since": {Name: "a", Amount: fee, Currency: money.USD, Since: "soon"},
		"until": {Name: "a", Amount: fee, Currency: money.USD, Since: "2026-10", Until: "2026-09"}} {
		if rec, p := w.ask("PUT", "/v1/chargeback/fees", auth.OwnerName, bad); rec.Code != 422 || p.Field != field || p.Fix == "" {
			t.Errorf("%+v: %d %+v", bad, rec.Code, p)
		}
	}
	if rec, p := w.ask("GET", "/v1/chargeback?rule=fixed&share=team-0=1", ann, nil); rec.Code != 403 || p.Field != "rule" {
		t.Errorf("a viewer of one team divides by a rule of their own: %d %+v", rec.Code, p)
	}
	// A new price from some month on leaves earlier months unchanged.
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "tracking", Amount: fee.Add(fee), Currency: money.USD, Since: "2999-03"}, nil)
	var fees []client.Fee
	w.must("GET", "/v1/chargeback/fees", nil, &fees)
	if len(fees) != 2 || fees[0].Until != "2999-02" || fees[0].Amount != fee || fees[1].Amount != fee.Add(fee) {
		t.Errorf("%+v", fees)
	}
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "tracking"}, nil)
	if rec, p := w.ask("PUT", "/v1/chargeback/fees", auth.OwnerName, client.Fee{Name: "tracking"}); rec.Code != 404 {
		t.Errorf("removed twice: %d %+v", rec.Code, p)
	}
}
