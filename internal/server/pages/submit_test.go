package pages

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"scrimp/client"
)

// planned is the plan of a job of an hour.
func planned() client.Plan {
	return client.Plan{Name: "lm", Feasible: true, Known: true, Runs: 200, Speed: 1, Take: "aws/a/m/spot", Why: "cheapest", Nodes: 1,
		CostUSD: &[3]float64{1.25, 1.5, 2.75}, FinishS: &[3]float64{3600, 3900, 7200}, InTime: new(0.93), ReadsUSD: &[3]float64{4, 4, 8}, OnDemandUSD: new(4.5),
		OnDemandOffer: "aws/a/m/on-demand", WorstUSD: new(20.0), RateUSD: new(1.2),
		Reasons: []string{"the job saves nothing"},
		Rejected: []client.PlanRefusal{{Offer: "aws/b/m/spot", Why: "unavailable"},
			{Offer: "aws/c/m/on-demand", Why: "costs_more", RateUSD: new(7.5), WorkS: new(3600.0), WorkUSD: new(7.5), ReadsUSD: new(18.0)},
			{Offer: "aws/d/m/on-demand", Why: "costs_more", RateUSD: new(3.0), WorkS: new(7200.0), WorkUSD: new(6.0)}}}
}

// hidden returns the value of a hidden field of a page.
func hidden(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `type="hidden" name="`+name+`" value="`)
	if !ok {
		t.Fatalf("no hidden field %s", name)
	}
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}

// has fails unless the page contains each text.
func has(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
}

func TestSubmit_ShowsPlanBeforeConfirmation(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["POST /v1/plan"] = planned()
	form := url.Values{"as": {"form"}, "act": {"plan"}, "name": {"lm"}, "command": {"echo \"a: b\"\r\nexec train\r\n"}, "time": {"1h"},
		"budget": {"$20"}, "capacity": {"spot"}, "nodes": {"2..4"}, "checkpoint": {"ck"}, "deadline": {"in 6h"}, "accelerator": {"A100:8"}}
	rec := asks(s, "POST", "/submit", form.Encode())
	if rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	page := rec.Body.String()
	has(t, page, "$1.25 to $2.75", "median $1.50", "in 1h 00m to 2h 00m", "93 %", "aws/a/m/spot", "$20.00", "$4.50", "$1.20 an hour",
		"The job saves nothing.", "aws/b/m/spot", "unavailable", "$3.00/h", "2h 00m", "$6.00", "Submit lm",
		"$4.00 to $8.00 besides, for reading data from another region", "costs more; $18.00 for reading the data")
	last := 0
	for _, offer := range []string{"aws/a/m/spot</th>", "aws/d/m/on-demand</th>", "aws/c/m/on-demand</th>", "aws/b/m/spot</th>"} {
		at := strings.Index(page, offer)
		if at <= last {
			t.Errorf("%s is not after the offers that cost less: at %d after %d", offer, at, last)
		}
		last = at
	}
	want := "name: lm\ncommand: |-\n  echo \"a: b\"\n  exec train\nresources:\n  accelerator: A100:8\n  capacity: [spot]\nnodes: 2..4\n" +
		"work:\n  time: 1h\ncheckpoint:\n  dir: ck\ndeadline: in 6h\nbudget:\n  dollars: \"20\"\n"
	if text := hidden(t, page, "text"); text != want {
		t.Errorf("the job file is\n%s", text)
	}
	for _, asked := range f.asked {
		if strings.HasPrefix(asked, "POST /v1/jobs") {
			t.Error("it submits before the confirmation")
		}
	}
	f.answers["POST /v1/jobs"] = client.Job{ID: "lm-2"}
	confirm := url.Values{"act": {"submit"}, "as": {"file"}}
	for _, name := range []string{"key", "text", "rerun", "from"} {
		confirm.Set(name, hidden(t, page, name))
	}
	if len(confirm.Get("key")) != 24 {
		t.Errorf("the key is %q", confirm.Get("key"))
	}
	rec = asks(s, "POST", "/submit", confirm.Encode())
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/jobs/lm-2" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}

func TestSubmit_NamesWrongFieldsBesideThem(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	rec := asks(s, "POST", "/submit", url.Values{"as": {"form"}, "act": {"plan"}, "command": {"true"}, "budget": {"many"}, "deadline": {"soon"}}.Encode())
	has(t, rec.Body.String(), "Correct what is marked", `aria-describedby="w-budget"`, `id="w-budget"`, `aria-describedby="w-deadline"`, `value="many"`)
	f.answers["POST /v1/plan"] = &client.Problem{Status: 422, Title: "the job is not valid", Field: "budget", Line: 2,
		Problems: []client.JobProblem{{Field: "budget", Line: 2, Cause: "is not an amount", Fix: "write $25.00"}}}
	rec = asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {"command: x\r\nbudget: many\r\n"}}.Encode())
	has(t, rec.Body.String(), "line 2", "<code>budget: many</code>", "is not an amount: write $25.00", "command: x\nbudget: many")
	// a checkpoint that was removed meanwhile marks its own field, and not the job file
	f.answers["POST /v1/plan"] = &client.Problem{Status: 422, Title: "there is no such checkpoint", Field: "from", Detail: "there is no checkpoint 7"}
	rec = asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {"command: x\n"}, "from": {"lm@7"}}.Encode())
	has(t, rec.Body.String(), `name="from" value="lm@7" placeholder="none: from nothing" maxlength="510" autocomplete="off" aria-invalid="true" aria-describedby="wrong"`)
	if n := strings.Count(rec.Body.String(), "aria-invalid"); n != 1 {
		t.Errorf("the page marks %d fields", n)
	}
	for what, text := range map[string]string{"a hidden space": "command: a\u200bb\n", "a megabyte": "command: " + strings.Repeat("x", 1<<20)} {
		if rec := asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {text}}.Encode()); !strings.Contains(rec.Body.String(), `id="wrong"`) {
			t.Errorf("%s is planned", what)
		}
	}
}

func TestSubmit_ConvertsFilesOfOtherSystems(t *testing.T) {
	t.Parallel()
	for system, text := range map[string]string{
		"SkyPilot": "name: lm\nresources: {accelerators: A100:1, use_spot: true}\nnum_nodes: 1\nfile_mounts: {/x: s3://b/x}\nrun: python3 train.py\n",
		"dstack":   "type: task\nname: lm\ncommands: [python3 train.py]\n",
		"Slurm":    "#!/bin/bash\n#SBATCH --job-name=lm\n#SBATCH --partition=gpu\npython3 train.py\n",
	} {
		f, s := newFake(t)
		f.answers["POST /v1/plan"] = planned()
		rec := asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {text}}.Encode())
		has(t, rec.Body.String(), "The "+system+" file is now a job file.", "python3 train.py", "$1.25 to $2.75")
		if !strings.Contains(hidden(t, rec.Body.String(), "text"), "command:") {
			t.Errorf("%s: the job file has no command", system)
		}
	}
}

func TestSubmit_RunsAJobAgain(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs/lm"] = client.Job{ID: "lm", State: "succeeded"}
	f.answers["/v1/jobs/lm/spec"] = `{"name":"lm","command":"exec train","secrets":["HF_TOKEN"],"workdir":".","budget":{"dollars":"20"}}`
	f.answers["/v1/jobs/lm/checkpoints"] = []client.Checkpoint{{Name: "000002-7", Step: 7, Newest: true}, {Name: "bad", Damaged: "x"}}
	rec := asks(s, "GET", "/submit?rerun=lm", "")
	page := rec.Body.String()
	has(t, page, "Run lm again", `value="lm@000002-7"`, "command: exec train", `name="rerun" value="lm"`, "scrimp rerun lm")
	if strings.Contains(page, "lm@bad") {
		t.Error("it offers a damaged checkpoint")
	}
	f.answers["POST /v1/plan"] = planned()
	rec = asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "rerun": {"lm"}, "from": {"lm"},
		"text": {"command: exec train\nsecrets: [HF_TOKEN]\n"}}.Encode())
	has(t, rec.Body.String(), "scrimp rerun lm --from lm", "begins from checkpoint lm", `name="secret-HF_TOKEN"`)
	f.answers["POST /v1/jobs"] = &client.Problem{Status: 422, Title: "a long run on spot whose checkpoints are not proven", Field: "accept_unproven"}
	key := hidden(t, rec.Body.String(), "key")
	rec = asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"submit"}, "rerun": {"lm"}, "from": {"lm"}, "key": {key},
		"text": {"command: exec train\n"}}.Encode())
	has(t, rec.Body.String(), "checkpoints are not proven", `name="unproven"`)
	if hidden(t, rec.Body.String(), "key") != key {
		t.Error("a refused submission changes its key")
	}
}

func TestSubmit_RefusesToRunAMemberAgainThatBelongsToItsGroup(t *testing.T) {
	t.Parallel()
	for kind, wants := range map[string][2]string{
		"study":    {"its parameters belong to the study", "scrimp tune trials g"},
		"pipeline": {"its inputs belong to the pipeline", "scrimp pipeline run"},
	} {
		f, s := newFake(t)
		f.answers["/v1/jobs/g.0"] = client.Job{ID: "g.0", State: "succeeded", Group: "g", Index: new(0)}
		f.answers["/v1/jobs/g.0/spec"] = `{"name":"g","command":"exec train"}`
		f.answers["/v1/groups/g"] = client.Group{ID: "g", Kind: kind, Members: 1}
		rec := asks(s, "GET", "/submit?rerun=g.0", "")
		if rec.Code != http.StatusConflict {
			t.Errorf("%s: status %d", kind, rec.Code)
		}
		has(t, rec.Body.String(), wants[0], wants[1])
		if strings.Contains(rec.Body.String(), "bug of scrimp") {
			t.Errorf("%s: the page blames scrimp", kind)
		}
	}
}

func TestSubmit_ViewerPlansOnly(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/me"] = client.Me{User: "vic", Best: client.Viewer, Grants: []client.Grant{{Team: "a", Role: client.Viewer}}}
	f.answers["POST /v1/plan"] = planned()
	rec := asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {"command: x\n"}}.Encode())
	has(t, rec.Body.String(), "$1.25 to $2.75", "may plan jobs and not submit them")
	if strings.Contains(rec.Body.String(), `value="submit"`) {
		t.Error("a viewer gets the button")
	}
}

// The form, a pasted file and the form's own hint agree about times: each needs a zone, whatever the server's is.
func TestSubmit_DeadlineNeedsAZone(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	s.Now = func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.FixedZone("here", 3600)) }
	f.answers["POST /v1/plan"] = planned()
	page := asks(s, "GET", "/submit", "").Body.String()
	_, hint, _ := strings.Cut(page, `placeholder="in 6h, or `)
	hint, _, _ = strings.Cut(hint, `"`)
	for text, want := range map[string]string{hint: hint[:16] + ":00Z", "2026-12-01T18:00+01:00": "2026-12-01T17:00:00Z",
		"2026-12-01 18:00": "names no time zone", "2026-12-01T18:00": "names no time zone", "soon": "a time with its zone"} {
		form := url.Values{"as": {"form"}, "act": {"plan"}, "command": {"true"}, "deadline": {text}}
		has(t, html.UnescapeString(asks(s, "POST", "/submit", form.Encode()).Body.String()), want)
	}
}

// An empty value of a secret is not sent, so that the server refuses the job instead of running it without.
func TestSubmit_SendsNoEmptySecret(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["POST /v1/jobs"] = client.Job{ID: "lm"}
	for value, sent := range map[string]bool{"": false, "hunter2": true} {
		asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"submit"}, "key": {"k"}, "secret-HF_TOKEN": {value},
			"text": {"command: x\nsecrets: [HF_TOKEN]\n"}}.Encode())
		if strings.Contains(f.body, `"HF_TOKEN":`) != sent {
			t.Errorf("%q: %s", value, f.body)
		}
	}
}

// The plan of a job whose work is unknown states its deadline and its own limits.
func TestSubmit_ShowsLimitsOfUnknownWork(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	plan := client.Plan{Name: "lm", Feasible: true, Speed: 1, Why: "window_closed", DeadlineS: new(21600.0), WallClockS: new(131400.0),
		Window: "22:00-06:00", BeginS: new(7200.0)}
	f.answers["POST /v1/plan"] = plan
	form := url.Values{"as": {"file"}, "act": {"plan"}, "text": {"command: x\n"}}
	page := asks(s, "POST", "/submit", form.Encode()).Body.String()
	has(t, page, "the deadline is in 6h 00m", "36h 30m", "it begins in 2h 00m, when its window 22:00-06:00 opens")
	for _, wrong := range []string{"no deadline", "no limit"} {
		if strings.Contains(page, wrong) {
			t.Errorf("the page says %q", wrong)
		}
	}
	plan.Session = "shell"
	f.answers["POST /v1/plan"] = plan
	has(t, asks(s, "POST", "/submit", form.Encode()).Body.String(), "for as long as the session is open")
}

// A plan is refused whose work folder or checkpoint does not exist, beside the name of the field.
func TestSubmit_PlanNeedsItsSources(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["POST /v1/plan"] = planned()
	f.answers["/v1/jobs/lm"] = client.Job{ID: "lm"}
	f.answers["/v1/jobs/lm/checkpoints"] = []client.Checkpoint{{Name: "000002-7"}, {Name: "bad", Damaged: "x"}}
	for _, c := range []struct{ rerun, from, field string }{{"nosuch", "", "rerun"}, {"lm", "nosuch", "from"}, {"", "lm@bad", "from"},
		{"", "lm@000009-1", "from"}, {"lm", "lm", ""}, {"", "lm@000002-7", ""}, {"", "lm@latest", ""}} {
		page := asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {"command: x\n"},
			"rerun": {c.rerun}, "from": {c.from}}.Encode()).Body.String()
		if refused := strings.Contains(page, "<code>"+c.field+"</code>"); c.field != "" && !refused ||
			strings.Contains(page, "$1.25 to $2.75") != (c.field == "") {
			t.Errorf("%+v: %v", c, refused)
		}
	}
}

// The page answers an empty file and an empty change with what the reader of a page can do.
func TestPages_EmptyFormsNameNoCommands(t *testing.T) {
	t.Parallel()
	_, s := newFake(t)
	page := asks(s, "POST", "/submit", url.Values{"as": {"file"}, "act": {"plan"}, "text": {" "}}.Encode()).Body.String()
	has(t, page, "The job file is empty", "command: exec")
	page = asks(s, "POST", "/do", url.Values{"act": {"change"}, "job": {"lm"}}.Encode()).Body.String()
	has(t, page, "the form changes nothing", "fill in a new deadline")
}
