package server

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// starves reports five minutes in which a GPU waits for a disk.
func (w *world) starves(attempt string) {
	w.t.Helper()
	begin := tenSeconds(5 * time.Minute)
	var list []api.Measurement
	for i := range int64(29) {
		m := measuredAt(begin+10*i, 0.2, 0.1, 0.6)
		m.Values["gpu_utilization_ratio"] = []*float64{new(0.2), new(0.2)}
		list = append(list, m)
	}
	w.reports(attempt, 0, list...)
}

// The API, the page of a job, the page of a team and the overview name the same cause with the same saving.
func TestDiagnosis_PagesAgreeWithTheAPI(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	w.starves(attempt)
	var d client.Diagnosis
	w.must("GET", "/v1/jobs/a/diagnosis", nil, &d)
	if d.Job != "a" || d.Measured != 290 || len(d.Causes) == 0 || d.Causes[0].Class != "slow_disk" {
		t.Fatalf("%+v", d)
	}
	c := d.Causes[0]
	if math.Abs(c.Share.Value-(1-0.2/0.85)) > 1e-9 || math.Abs(d.Use["gpu_utilization_ratio"]-0.2) > 1e-9 {
		t.Errorf("a GPU used 20 %% instead of 85 %%: %+v", c.Share)
	}
	if d.HourlyUSD != nil && math.Abs(*c.SavingUSD-c.Share.Value**d.HourlyUSD) > 1e-9 {
		t.Errorf("the saving is %v of %v", *c.SavingUSD, *d.HourlyUSD)
	}
	percent := fmt.Sprintf("%.0f %%", c.Share.Value*100)
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	b.shows("/jobs/a", 200, `href="/jobs/a/diagnosis"`)
	text := b.shows("/jobs/a/diagnosis", 200, "slow disk", percent, c.Effort, ">20 %<", "scrimp diagnose a", `/data/jobs/a/diagnosis`)
	if !strings.Contains(text, "<svg") || strings.Contains(text, "style=") {
		t.Error("the page has no drawing, or a style of its own")
	}
	b.shows("/diagnoses", 200, "slow disk", percent, `href="/jobs/a/diagnosis"`)
	b.shows("/waste", 200, `href="/diagnoses"`)
	b.shows("/", 200, "slow disk wastes "+percent, "scrimp diagnose a")

	var list []client.Diagnosis
	w.must("GET", "/v1/diagnoses?running=1&limit=5", nil, &list)
	if len(list) != 1 || list[0].Causes[0].Evidence != c.Evidence {
		t.Errorf("%+v", list)
	}
	for query, field := range map[string]string{"since=x": "since", "since=-1h": "since", "limit=0": "limit", "limit=201": "limit", "running=yes": "running"} {
		if rec, p := w.ask("GET", "/v1/diagnoses?"+query, auth.OwnerName, nil); rec.Code != 400 || p.Field != field || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
	w.must("PUT", "/v1/teams/other", api.SetTeam{}, nil)
	other := w.user("eve", identity.Grant{Team: "other", Role: identity.Viewer})
	if rec, _ := w.ask("GET", "/v1/jobs/a/diagnosis", other, nil); rec.Code != 404 {
		t.Errorf("another team's viewer gets %d", rec.Code)
	}
	if rec, _ := w.ask("GET", "/v1/diagnoses", other, nil); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != "[]" {
		t.Errorf("another team's viewer gets %d %s", rec.Code, rec.Body)
	}
	for _, x := range []struct {
		team, token string
		want        int
	}{{"nope", auth.OwnerName, 404}, {"nope", other, 404}, {"other", other, 200}, {"vision", other, 404}} {
		if rec, p := w.ask("GET", "/v1/diagnoses?team="+x.team, x.token, nil); rec.Code != x.want || x.want == 404 && p.Field != "team" {
			t.Errorf("team %s: %d %+v, want %d", x.team, rec.Code, p, x.want)
		}
	}
	b.shows("/diagnoses?team=nope", 404, "there is no team")
}

// A profile adds its causes and operators, and the server refuses what no reader of a profile writes.
func TestDiagnosis_UsesProfiles(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	w.starves(attempt)
	good := client.Profile{Tool: "py-spy", Shares: map[string]float64{"checkpointing": 0.4, "compute": 0.6},
		Operators: []client.ProfileOperator{{Name: "save (torch/serialization.py)", Share: 0.4, Seconds: 4, Count: 2, Part: "checkpointing"}}}
	var d client.Diagnosis
	w.must("POST", "/v1/jobs/a/diagnosis", client.DiagnoseWith{Profiles: []client.Profile{good}}, &d)
	classes := ""
	for _, c := range d.Causes {
		classes += c.Class + " "
	}
	if !strings.Contains(classes, "checkpointing") || !strings.Contains(classes, "slow_disk") || len(d.Operators) != 1 {
		t.Errorf("%s %+v", classes, d)
	}
	var plain client.Diagnosis
	if w.must("GET", "/v1/jobs/a/diagnosis", nil, &plain); len(plain.Operators) != 0 {
		t.Error("the server keeps a profile")
	}
	for name, change := range map[string]func(*client.Profile){
		"no tool": func(p *client.Profile) { p.Tool = "" }, "share": func(p *client.Profile) { p.Shares = map[string]float64{"compute": 2} },
		"long": func(p *client.Profile) {
			p.Operators = []client.ProfileOperator{{Name: strings.Repeat("x", 300)}}
		},
		"many": func(p *client.Profile) { p.Operators = make([]client.ProfileOperator, 100) },
		"busy": func(p *client.Profile) { p.GPUBusy = new(-0.5) }, "seconds": func(p *client.Profile) { p.Seconds = -1 },
	} {
		bad := good
		change(&bad)
		rec, p := w.ask("POST", "/v1/jobs/a/diagnosis", auth.OwnerName, client.DiagnoseWith{Profiles: []client.Profile{good, bad}})
		if rec.Code != 422 || p.Field != "profiles" || !strings.Contains(p.Title, "profile 2") || p.Fix == "" {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
	}
	rec, p := w.ask("POST", "/v1/jobs/a/diagnosis", auth.OwnerName, client.DiagnoseWith{Profiles: make([]client.Profile, 33)})
	if rec.Code != 422 || p.Field != "profiles" {
		t.Errorf("33 profiles: %d %+v", rec.Code, p)
	}
}
