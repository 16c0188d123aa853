package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/incident"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// idles leaves a machine of team-0 without a task for so long.
func (w *world) idles(long time.Duration) (instance string) {
	w.t.Helper()
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/team-1", api.SetTeam{}, nil)
	w.must("POST", "/v1/jobs", aJob("fit", "team-0"), nil)
	id := w.booting(1)[0]
	var cfg core.Config
	w.control.Read(func(m *core.Machine) { cfg = *m.State().Config() })
	cfg.Idle, cfg.Providers = 10*time.Hour, maps.Clone(cfg.Providers)
	for name, timing := range cfg.Providers {
		timing.Idle = cfg.Idle
		cfg.Providers[name] = timing
	}
	w.event(core.Configured{Config: cfg}, 0) // after the one that control begins with
	instance = w.instance(id)
	w.event(core.MachineRegistered{Instance: instance, Allocation: id, Key: "k"}, time.Second)
	w.event(core.AttemptStarted{Attempt: id, Message: 1}, 4*time.Hour) // a start that long is worth a long wait
	w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 26*time.Hour)
	w.event(core.MachineCleaned{Instance: instance}, 26*time.Hour+time.Second)
	w.event(core.Tick{}, 26*time.Hour+long)
	return instance
}

func (w *world) waste(query, token string) (v client.Waste) {
	w.t.Helper()
	rec, p := w.ask("GET", "/v1/waste"+query, token, nil)
	if rec.Code != 200 {
		w.t.Fatalf("%d %+v", rec.Code, p)
	}
	must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &v))
	return v
}

// An idle machine is found with the dollars of its idle time, shown to its team alone, and terminated by an operator
// alone. History has the decision.
func TestWaste_FindsAnIdleMachineAndEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	instance := w.idles(2 * time.Hour)
	v := w.waste("", auth.OwnerName)
	if len(v.Findings) != 1 || v.Findings[0].Kind != "unused machine" || v.Findings[0].About != instance || v.Findings[0].Team != "team-0" ||
		v.Findings[0].Action != "stop" || !v.Short || v.Empty || v.Recurring != 0 {
		t.Fatalf("%+v", v)
	}
	f := v.Findings[0]
	var costs client.Costs
	w.must("GET", "/v1/costs", nil, &costs)
	if idle := costs.Lines[0].Uses[client.Idle]; f.Cost != idle || idle.Float() < 2 || idle.Float() > 2.01 {
		t.Errorf("costs %v, and the team's idle time %v", f.Cost, idle)
	}
	// It is kept for 4 hours, as long as its start took, at $1 an hour, and 2 have passed.
	if f.Saving == nil || f.Saving.Float() < 1.99 || f.Saving.Float() > 2.01 || f.Monthly != nil || f.Waste == nil || *f.Waste != f.Cost || *v.Totals[0].Saving != *f.Saving || v.Totals[0].Cost != f.Cost {
		t.Errorf("%+v %+v", f, v.Totals)
	}
	ann, bob := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Submitter}), w.user("bob", identity.Grant{Team: "team-1", Role: identity.Operator})
	if len(w.waste("?team=team-0", ann).Findings) != 1 || len(w.waste("", bob).Findings) != 0 || len(w.waste("?team=team-1", bob).Findings) != 0 {
		t.Error("a finding is shown to the wrong team")
	}
	path := "/v1/waste/" + f.ID + "/apply"
	for _, c := range []struct {
		path, token string
		body        client.ApplyWaste
		code        int
		field       string
	}{{path, ann, client.ApplyWaste{}, 403, ""}, {path, bob, client.ApplyWaste{}, 404, "id"},
		{"/v1/waste/w-gone/apply", auth.OwnerName, client.ApplyWaste{}, 404, "id"}, {path, auth.OwnerName, client.ApplyWaste{Since: "1"}, 400, "since"}} {
		if rec, p := w.ask("POST", c.path, c.token, c.body); rec.Code != c.code || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s: %d %+v", c.path, rec.Code, p)
		}
	}
	vic, ops := w.user("vic", identity.Grant{Team: "team-0", Role: identity.Viewer}), "the role operator of the team team-0"
	for name, token := range map[string]string{"viewer": vic, "submitter": ann} { // the first answer names the role that suffices
		if rec, p := w.ask("POST", path, token, client.ApplyWaste{}); rec.Code != 403 || !strings.Contains(p.Title, ops) ||
			!strings.Contains(p.Title, "has "+name) {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
	}
	released := func() (is bool) {
		w.control.Read(func(m *core.Machine) { is = m.State().Instance(instance).Release() == "asked" })
		return is
	}
	if released() {
		t.Fatal("a refused request released the machine")
	}
	cat := w.user("cat", identity.Grant{Team: "team-0", Role: identity.Operator})
	if rec, p := w.ask("POST", path, cat, client.ApplyWaste{}); rec.Code != 200 || !released() {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	rec, again := w.ask("POST", path, cat, client.ApplyWaste{})
	if rec.Code != 409 || again.Field != "id" || again.Fix == "" {
		t.Errorf("a second time: %d %+v", rec.Code, again)
	}
	if rec, p := w.ask("POST", path, bob, client.ApplyWaste{}); rec.Code != 404 || strings.Contains(p.Title, "cat") {
		t.Errorf("another team: %d %+v", rec.Code, p)
	}
	if v := w.waste("", auth.OwnerName); len(v.Findings) == 1 && v.Findings[0].Kind == "unused machine" {
		t.Errorf("a machine that is released is still a finding: %+v", v.Findings)
	}
	w.event(core.InstanceEnded{Instance: instance, Until: w.control.Now().Add(28 * time.Hour), Cause: "terminated"}, 28*time.Hour+time.Minute)
	w.event(core.Tick{}, 58*24*time.Hour)
	var list []client.WasteDecision
	w.must("GET", "/v1/waste/history", nil, &list)
	if len(list) != 1 || list[0].Who != "cat" || list[0].About != instance || *list[0].Promised != *f.Saving || !list[0].Over || list[0].Days != 30 ||
		*list[0].Due != *f.Saving || list[0].Saved.Add(list[0].Cost) != *f.Saving || list[0].Cost.Sign() <= 0 {
		t.Errorf("%+v", list)
	}
	if want := f.ID + " is already applied, at " + list[0].At.UTC().Format("2006-01-02 15:04") + " UTC by cat"; again.Title != want {
		t.Errorf("%q, want %q", again.Title, want)
	}
	rec, _ = w.ask("GET", "/v1/waste/history", bob, nil)
	if strings.TrimSpace(rec.Body.String()) != "[]" {
		t.Errorf("another team sees %s", rec.Body)
	}
}

// The page, its total and the command's answer have the same rows; bad input names the field.
func TestWaste_PageAgreesAndBadInputIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	if v := w.waste("", auth.OwnerName); !v.Empty || len(v.Findings) != 0 {
		t.Errorf("an empty ledger: %+v", v)
	}
	w.idles(90 * time.Minute)
	v := w.waste("?since=90d", auth.OwnerName)
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	text := b.shows("/waste?since=90d", 200)
	if len(v.Findings) != 1 || !strings.Contains(text, v.Findings[0].About) || !strings.Contains(text, v.Findings[0].ID) {
		t.Errorf("%+v: %s", v, text)
	}
	if n := strings.Count(text, `value="`+v.Findings[0].Cost.String()+`"`); n != 4 { // the row and the total, all of it wasted
		t.Errorf("the cost %v is on the page %d times: %s", v.Findings[0].Cost, n, text)
	}
	for query, field := range map[string]string{"since=x": "since", "since=0h": "since", "since=400d": "since", "team=ghost": "team"} {
		if rec, p := w.ask("GET", "/v1/waste?"+query, auth.OwnerName, nil); rec.Code < 400 || p.Field != field || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}

// A recurring job whose telemetry shows little use over three runs is oversized; fewer runs are no evidence.
func TestWaste_JudgesSizeByTelemetryAlone(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for n := range 3 {
		w.must("POST", "/v1/jobs", aJob("fit", ""), nil)
		id := w.booting(1)[0]
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Duration(3*n)*time.Hour)
		if v := w.waste("", auth.OwnerName); v.Measured != []int{0, 0, 2}[n] || len(v.Findings) != 0 {
			t.Errorf("with %d runs over: %+v", n, v)
		}
		w.measures(id, 0.2)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, time.Duration(3*n+2)*time.Hour)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(time.Duration(3*n+2) * time.Hour), Cause: "terminated"},
			time.Duration(3*n+2)*time.Hour)
	}
	v := w.waste("", auth.OwnerName)
	if v.Measured != 3 || v.Recurring != 3 || len(v.Findings) != 1 {
		t.Fatalf("%+v", v)
	}
	f := v.Findings[0]
	if f.Kind != "oversized job" || f.Action != "shrink" || f.Saving != nil || v.Totals[0].Unknown != 1 || len(f.Jobs) != 3 ||
		!strings.Contains(f.Evidence, "its GPUs were used 15 %") || !strings.Contains(f.Evidence, "3 measured runs") { // 20 % and 10 %
		t.Errorf("%+v", f)
	}
	if rec, p := w.ask("POST", "/v1/waste/"+f.ID+"/apply", auth.OwnerName, client.ApplyWaste{}); rec.Code != 409 || !strings.Contains(p.Fix, f.Command) {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// measures reports a minute of telemetry whose GPUs were used so much, and half as much.
func (w *world) measures(attempt string, gpu float64) {
	w.t.Helper()
	var list []api.Measurement
	for i := range int64(6) {
		list = append(list, measuredAt(tenSeconds(time.Minute)+10*i, gpu, 0.1, 0))
	}
	w.reports(attempt, 0, list...)
}

// A schedule whose last three runs failed is found with their cost, and apply ends it.
func TestWaste_EndsAScheduleThatFails(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"60"`), nil)
	for n := range 3 {
		ahead := w.due("retrain", 0)
		job, attempt := fmt.Sprintf("retrain.r%d.prepare", n+1), ""
		w.until(func(m *core.Machine) bool {
			if j, ok := m.Job(job); ok && j.Live() != nil {
				attempt = j.Live().ID()
				return j.Live().Instance() != ""
			}
			return false
		})
		if v := w.waste("", auth.OwnerName); len(v.Findings) != 0 {
			t.Fatalf("after %d failed runs: %+v", n, v.Findings)
		}
		w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, ahead+time.Minute)
		w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: "failed", Exit: 1}, ahead+10*time.Minute)
		w.event(core.InstanceEnded{Instance: w.instance(attempt), Until: w.control.Now().Add(ahead + 10*time.Minute), Cause: "terminated"},
			ahead+10*time.Minute)
		w.groupOver(fmt.Sprintf("retrain.r%d", n+1))
	}
	v := w.waste("", auth.OwnerName)
	if len(v.Findings) != 1 || v.Findings[0].Kind != "failing schedule" || v.Findings[0].About != "retrain" {
		t.Fatalf("%+v", v)
	}
	f, costs := v.Findings[0], client.Costs{}
	w.must("GET", "/v1/costs", nil, &costs)
	if f.Cost != costs.Lines[0].Spent || *f.Waste != f.Cost || *f.Saving != *f.Monthly || f.Saving.Cmp(f.Cost) <= 0 {
		t.Errorf("%+v, and all of the ledger is %+v", f, costs.Lines)
	}
	w.must("POST", "/v1/waste/"+f.ID+"/apply", client.ApplyWaste{Since: "7d"}, nil)
	if g := w.groupOver("retrain"); g.State != "over" {
		t.Errorf("%+v", g)
	}
	if v := w.waste("", auth.OwnerName); len(v.Findings) != 0 {
		t.Errorf("a schedule that is over is a finding: %+v", v.Findings)
	}
	var list []client.WasteDecision
	w.must("GET", "/v1/waste/history", nil, &list)
	if len(list) != 1 || *list[0].Promised != *f.Saving || list[0].Saved.Sign() < 0 || list[0].Over {
		t.Errorf("%+v", list)
	}
}

// Without registered teams, waste selects the team that a job names, as anomalies does, and what has no team.
func TestWaste_SelectsATeamThatNobodyRegistered(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for n, team := range []string{"fit", "fit", "fit", "", "", ""} {
		w.must("POST", "/v1/jobs", aJob("fit", team), nil)
		id, at := w.booting(1)[0], time.Duration(3*n)*time.Hour
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, at)
		w.measures(id, 0.2)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, at+2*time.Hour)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(at + 2*time.Hour), Cause: "terminated"}, at+2*time.Hour)
	}
	all := w.waste("", auth.OwnerName)
	if len(all.Findings) != 2 {
		t.Fatalf("%+v", all.Findings)
	}
	for query, team := range map[string]string{"?team=fit": "fit", "?team=(none)": ""} {
		v := w.waste(query, auth.OwnerName)
		if len(v.Findings) != 1 || v.Findings[0].Team != team || len(v.Totals) != 1 || v.Totals[0].Cost != v.Findings[0].Cost {
			t.Errorf("%s: %+v", query, v)
		}
	}
	w.must("PUT", "/v1/teams/fit", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "fit", Role: identity.Viewer})
	if len(w.waste("?team=fit", ann).Findings) != 1 {
		t.Error("a viewer of the team does not see its finding")
	}
	for query, token := range map[string]string{"?team=(none)": ann, "?team=ghost": auth.OwnerName} {
		if rec, p := w.ask("GET", "/v1/waste"+query, token, nil); rec.Code != 404 || p.Field != "team" || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}

// block sells a reservation of two machines for ten days at $480, which nobody uses.
type block struct {
	shut
	from time.Time
}

func (b block) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	paid, err := money.Parse("480")
	o := market.Offer{ID: "res", Provider: "firm", Region: "r", Zone: "r-a", Capacity: market.Reserved, CPUs: 4,
		Memory: 1 << 30, Currency: money.USD, Speed: 1, Reserved: market.Reservation{Count: 2, Paid: paid, From: b.from,
			Until: b.from.Add(240 * time.Hour)}}
	q := market.Quote{Offer: o.ID, Rate: firmRate, Priced: true, Available: true, At: time.Now().UTC()}
	return []market.Offer{o}, []market.Quote{q}, err
}

// Unused hours count in the time that they were paid for, whenever they were booked: an hour costs $2.
func TestWaste_CountsUnusedHoursInTheTimeTheyWerePaidFor(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, block{from: time.Now().UTC().Add(-30 * time.Minute)}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	for _, at := range []time.Duration{time.Hour, 80 * time.Minute, 97 * time.Minute, 5 * time.Hour, 301 * time.Minute, 50 * time.Hour} {
		w.event(core.Tick{}, at)
		v := w.waste("?since=1h", auth.OwnerName)
		if len(v.Findings) != 1 || v.Findings[0].Kind != "unused reservation" {
			t.Fatalf("after %v: %+v", at, v)
		}
		f := v.Findings[0]
		if cost := f.Cost.Float(); cost < 1.9999 || cost > 2.0001 || !strings.HasPrefix(f.Evidence, "99 %") && !strings.HasPrefix(f.Evidence, "100 %") {
			t.Errorf("after %v: %v, %s", at, f.Cost, f.Evidence)
		}
	}
}

// A finding by a rule of anomalies obeys the threshold that people's answers have moved in its team. The rule counts
// whole slots of five minutes, so a machine is found up to ten minutes after its threshold.
func TestWaste_ObeysThresholdsThatAnswersHaveMoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		idle  time.Duration
		team  string
		moved bool // two dismissals have moved the threshold
		found int
	}{{"45 minutes are over", 60 * time.Minute, "team-0", false, 1}, {"70 minutes after two dismissals", 60 * time.Minute, "team-0", true, 0},
		{"70 minutes are over", 85 * time.Minute, "team-0", true, 1}, {"the dismissals are of another team", 60 * time.Minute, "team-1", true, 1},
		{"45 minutes are not over", 42 * time.Minute, "team-0", false, 0}} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, &firm{}, nil)
			w.savings.Answers = func(context.Context) (list []incident.Answer, err error) {
				for _, name := range []string{"a-1", "a-2"} {
					list = append(list, incident.Answer{Name: name, Kind: incident.IdleMachine, Team: c.team, At: opened})
				}
				if !c.moved {
					list = nil
				}
				return list, nil
			}
			w.idles(c.idle)
			n := 0
			for _, f := range w.waste("", auth.OwnerName).Findings {
				if f.Kind == "unused machine" {
					n++
				}
			}
			if n != c.found {
				t.Errorf("%d unused machines, want %d", n, c.found)
			}
		})
	}
}
