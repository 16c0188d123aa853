package server

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/test/browser"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// hour is the job file of an hour of work.
const hour = "name: lm\ncommand: exec train\nteam: vision\nwork: {steps: 100, time: 1h}\nbudget: $20\ndeadline: in 6h\n"

// confirmed returns the fields of a page's form that submits a job.
func confirmed(t *testing.T, page string) url.Values {
	t.Helper()
	form := url.Values{"act": {"submit"}, "as": {"file"}}
	for _, name := range []string{"key", "text", "rerun", "from"} {
		_, rest, ok := strings.Cut(page, `type="hidden" name="`+name+`" value="`)
		if !ok {
			t.Fatalf("no hidden field %s in %s", name, page)
		}
		value, _, _ := strings.Cut(rest, `"`)
		form.Set(name, html.UnescapeString(value))
	}
	return form
}

// A submitter sees the plan of the API and confirms it; the second click of the button leads to the same job. A viewer
// sees the plan, and the API refuses the submission.
func TestDashboard_SubmitsOnceAfterThePlan(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter}))
	vic := w.signedIn(w.user("vic", identity.Grant{Team: "vision", Role: identity.Viewer}))
	var forms []url.Values
	for _, b := range []*reader{ann, vic} {
		rec := b.ask("POST", "/submit", url.Values{"act": {"plan"}, "as": {"file"}, "text": {hour}})
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "Plan of lm") || !strings.Contains(rec.Body.String(), "median $") {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if b == ann {
			forms = append(forms, confirmed(t, rec.Body.String()))
		}
	}
	plan := ann.ask("POST", "/submit", url.Values{"act": {"json"}, "as": {"file"}, "text": {hour}})
	var twin, direct client.Plan
	must.Do(t, json.Unmarshal(plan.Body.Bytes(), &twin))
	if rec, _ := w.post("/v1/plan", "application/yaml", "", hour); json.Unmarshal(rec.Body.Bytes(), &direct) != nil ||
		twin.Name != "lm" || twin.Name != direct.Name || twin.Take != direct.Take || plan.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the plan as JSON is %s, and the API's %s", plan.Body, rec.Body)
	}
	if rec := ann.ask("POST", "/submit", url.Values{"act": {"json"}, "as": {"file"}, "text": {"budget: 5"}}); !strings.Contains(rec.Body.String(), "command") ||
		rec.Header().Get("Content-Type") == "application/json" {
		t.Errorf("a wrong file: %s", rec.Body)
	}
	ann.shows("/submit", 200, "The same in the API: <code>POST /v1/plan")
	for range 2 {
		if rec := ann.ask("POST", "/submit", forms[0]); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/jobs/lm" {
			t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
		}
	}
	var list []api.Job
	if w.must("GET", "/v1/jobs", nil, &list); len(list) != 1 || list[0].User != "ann" || list[0].Budget == nil {
		t.Fatalf("%+v", list)
	}
	ann.shows("/jobs/lm", 200, `href="/submit?rerun=lm"`, "scrimp rerun lm")
	if rec := vic.ask("POST", "/submit", forms[0]); !strings.Contains(rec.Body.String(), "needs the role") {
		t.Errorf("a viewer submits: %d %s", rec.Code, rec.Body)
	}
	rec := ann.ask("POST", "/submit", url.Values{"act": {"plan"}, "as": {"file"}, "rerun": {"lm"}, "text": {ann.textOf("/submit?rerun=lm")}})
	again := confirmed(t, rec.Body.String())
	if again.Get("rerun") != "lm" {
		t.Errorf("it forgets whose work folder the job gets: %v", again)
	}
	if rec := ann.ask("POST", "/submit", again); rec.Header().Get("Location") != "/jobs/lm-2" {
		t.Errorf("again: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

// textOf returns the job file on a page.
func (b *reader) textOf(path string) string {
	text := b.shows(path, 200)
	_, text, _ = strings.Cut(text, "<textarea")
	_, text, _ = strings.Cut(text, ">\n")
	text, _, _ = strings.Cut(text, "</textarea>")
	return html.UnescapeString(text)
}

// The Submit page in a browser: a plan, errors beside the fields, a converted file, and one job for two clicks.
func TestSubmit_InABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("POST", "/v1/jobs", aJob("base", ""), nil)
	w.event(core.AttemptStarted{Attempt: w.booting(1)[0], Message: 1}, 0)
	b, at := w.inBrowser(t)
	for name, fill := range map[string]map[string]string{
		"planned": {"name": "lm", "command": "exec python3 train.py --steps $STEPS", "time": "1h", "budget": "$20", "deadline": "in 6h",
			"checkpoint": "ckpt"},
		"wrong": {"command": "true", "budget": "many", "deadline": "soon"},
	} {
		looks(t, b, "/submit "+name, axe, func() {
			b.Go(at + "/submit")
			fills(b, fill)
			presses(b, "plan")
			b.Until(`document.readyState === "complete" && document.querySelector("#planned, #wrong")`)
		})
	}
	for name, text := range map[string]string{"file": hour, "broken": "command: exec train\nbudget: many\ndeadline: soon\n",
		"endless":    strings.Replace(hour, "in 6h", "in 10m", 1),
		"of another": "#!/bin/bash\n#SBATCH --job-name=lm\n#SBATCH --partition=gpu\n#SBATCH --time=02:00:00\npython3 train.py\n"} {
		looks(t, b, "/submit "+name, axe, func() {
			b.Go(at + "/submit?as=file")
			fills(b, map[string]string{"text": text})
			presses(b, "plan")
			b.Until(`document.readyState === "complete" && document.querySelector("#planned, #wrong")`)
		})
	}
	looks(t, b, "/submit rerun", axe, func() { b.Go(at + "/submit?rerun=base") })
	looks(t, b, "/jobs/base actions", axe, func() {
		b.Go(at + "/jobs/base")
		b.Eval(`for (const d of document.querySelectorAll(".act")) d.open = true`, nil)
	})
	b.Go(at + "/submit?as=file")
	fills(b, map[string]string{"text": strings.Replace(hour, "name: lm", "name: once", 1)})
	presses(b, "plan")
	b.Until(`document.querySelector("button[value=submit]")`)
	b.Eval(`const sure = document.querySelector("button[value=submit]"); sure.click(); sure.click()`, nil)
	b.Until(`location.pathname === "/jobs/once" && document.readyState === "complete"`)
	b.Eval(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "g", bubbles: true}));`+
		`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "s", bubbles: true}))`, nil)
	b.Until(`location.pathname === "/submit"`)
	var list []api.Job
	if w.must("GET", "/v1/jobs?name=once*", nil, &list); len(list) != 1 {
		t.Errorf("two clicks make %d jobs", len(list))
	}
}

// fills writes into the fields of the form that describes a job.
func fills(b *browser.Browser, values map[string]string) {
	for name, value := range values {
		b.Eval(fmt.Sprintf(`document.querySelector(".describe [name=%s]").value = %q`, name, value), nil)
	}
}

// presses presses the button of the Submit page with the value.
func presses(b *browser.Browser, value string) {
	b.Eval(fmt.Sprintf(`document.querySelector("button[value=%s]").click()`, value), nil)
}
