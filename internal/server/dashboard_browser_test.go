package server

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/browser"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// dashPages lists the pages of a server with the jobs of withJobs.
var dashPages = []string{"/", "/jobs", "/submit", "/submit?as=file", "/groups", "/costs", "/costs?by=job", "/costs/days", "/chargeback", "/review", "/models", "/waste", "/diagnoses", "/recommend", "/storage", "/cache", "/proposals", "/proposals?budget=5", "/anomalies", "/machines", "/engines", "/market", "/market/prices", "/teams",
	"/estimates", "/access"}

// withJobs adds n jobs in several states, one of them with a long name, and an array. Two of them hold a machine.
func (w *world) withJobs(n int) (more []string) {
	w.t.Helper()
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"team:vision","window":"month","dollars":"5000","approve":"100"}}`, nil)
	long := strings.Repeat("very-long-name-", 13)
	for i := range n {
		name := fmt.Sprintf("train-%02d", i)
		if i == 0 {
			name = long[:39] + "x"
		}
		budget := "$20"
		if i%7 == 3 {
			budget = "$200" // it waits for approval
		}
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","team":"vision","budget":%q,"deadline":"in 6h",`+
			`"tags":{"model":"lm","owner":%q}}}`, name, budget, strings.Repeat("x", 60)), nil)
		more = append(more, "/jobs/"+name)
		if i%5 == 4 {
			w.must("POST", "/v1/jobs/"+name+"/end", api.End{}, nil)
		}
	}
	w.must("POST", "/v1/groups", `{"spec":{"name":"sweep","command":"true","team":"vision","budget":"$9"},"array":"1-6%2"}`, nil)
	asked := w.booting(2)
	w.event(core.AttemptStarted{Attempt: asked[0], Message: 1}, 0)
	return append(more[:min(n, 5)], "/groups/sweep")
}

// inBrowser serves the world on a loopback port, read by an admin in a browser.
func (w *world) inBrowser(t *testing.T) (b *browser.Browser, address string) {
	t.Helper()
	at := httptest.NewServer(w.h)
	t.Cleanup(at.Close)
	b = browser.Start(t)
	t.Cleanup(at.CloseClientConnections) // before the server ends: its streams do not
	w.signsIn(b, at.URL)
	return b, at.URL
}

// signsIn signs in with a new token.
func (w *world) signsIn(b *browser.Browser, at string) {
	token := w.user("ann", identity.Grant{Team: "*", Role: identity.Admin})
	b.Go(at + "/")
	b.Until(`location.pathname === "/sign-in"`)
	b.Eval(fmt.Sprintf(`document.getElementById("token").value = %q; document.querySelector("main form").submit()`, token), nil)
	b.Until(`document.querySelector("nav a")`)
}

// revokesSessions revokes every session of the dashboard.
func (w *world) revokesSessions() {
	var list []api.Token
	w.must("GET", "/v1/tokens", nil, &list)
	for _, one := range list {
		if one.Note == "dashboard" {
			w.must("DELETE", "/v1/tokens/"+one.ID, nil, nil)
		}
	}
}

// Every page at three widths in both themes: no error, nothing wider than the window, no findings of axe.
func TestPages_InABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	for _, jobs := range []int{0, 30} {
		w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
		addresses := dashPages
		if jobs > 0 {
			addresses = append(w.withJobs(jobs), dashPages...)
		}
		b, at := w.inBrowser(t)
		for _, path := range addresses {
			looks(t, b, fmt.Sprintf("%s %d", path, jobs), axe, func() { b.Go(at + path) })
		}
	}
}

// The diagnosis of a job that waits for a disk, of a job without measurements, and the list of them.
func TestDiagnosis_InABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	w, attempt := rentedWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.starves(attempt)
	w.must("POST", "/v1/jobs", aJob("unmeasured", ""), nil)
	b, at := w.inBrowser(t)
	for _, path := range []string{"/jobs/a/diagnosis", "/jobs/unmeasured/diagnosis", "/diagnoses", "/jobs/a", "/"} {
		looks(t, b, "diagnosis "+path, axe, func() { b.Go(at + path) })
	}
}

// The page of a search: before its first value, and with curves and a warning.
func TestSearch_InABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.must("POST", "/v1/groups", strings.Replace(inStudy("search", "", ""), `"asha-promo"`, `"random"`, 1), nil)
	w.began("search", 2)
	b, at := w.inBrowser(t)
	looks(t, b, "search empty", axe, func() { b.Go(at + "/groups/search") })
	for n, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		for e := range 3 {
			w.says(id, int64(2+e), float64(e+1), 3-float64(n)+0.25*float64(e))
		}
	}
	w.until(func(m *core.Machine) bool { return len(m.State().Group("search").Study.Reports) == 6 })
	looks(t, b, "search full", axe, func() { b.Go(at + "/groups/search") })
	var shown string
	b.Eval(`document.querySelector("main").innerText`, &shown)
	for _, want := range []string{"Best against spend", "Curves", "Parameters", "Rungs", "should it be maximize?"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page lacks %q:\n%s", want, shown)
		}
	}
}

// The pages with forecasts of what runs and waits, and the page of a job with ten metrics. Open metrics stay open on an
// update.
func TestPages_ShowForecastsAndCurvesInABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	w := newWorldOf(t, deaf{}, func(o *Options) { o.Rate = 1e6 })
	w.limit(budget.Limit{Scope: budget.All, Window: budget.Month, Running: new(1)})
	w.runsAt60Of100()
	w.must("POST", "/v1/jobs", costing("next", "", `,"budget":"$20","work":{"steps":100,"time":"1h"}`), nil)
	w.must("POST", "/v1/jobs", costing("unknown-work", "", ""), nil)
	w.forecasts(func() bool {
		e := w.odds.Estimate("next")
		return e != nil && e.StartS != nil && w.odds.Outlook("lm") != nil
	})
	b, at := w.inBrowser(t)
	for _, path := range []string{"/", "/jobs?live=1", "/jobs/next", "/jobs/lm"} {
		looks(t, b, "forecast "+path, axe, func() { b.Go(at + path) })
	}
	dear := market.Offer{ID: "p/y/m/on-demand", Provider: "p", Zone: "y", Machine: "m", Capacity: market.OnDemand,
		Currency: money.USD, CPUs: 8, Memory: 1 << 40, Speed: 2}
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.event(core.MarketSeen{Offers: []market.Offer{dear},
		Quotes: []market.Quote{{Offer: dear.ID, Rate: 3e12, Priced: true, Available: true, At: w.control.Now()}}}, 0)
	looks(t, b, "forecast /submit plan", axe, func() {
		b.Go(at + "/submit?as=file")
		b.Eval(fmt.Sprintf(`document.getElementById("text").value = %q; document.querySelector("button[value=plan]").click()`, hour), nil)
		b.Until(`document.getElementById("planned")`)
	})
	b.Go(at + "/jobs/lm")
	b.Eval(`document.querySelector("details.curves").open = true`, nil)
	var end time.Time
	w.control.Read(func(m *core.Machine) { end = m.Now() })
	news := core.Progressed{Attempt: "lm.1", Message: 8, Step: 70, Total: 100, Metrics: map[string]float64{"m0": 5, "new": 1}}
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: end.Add(10 * time.Minute), Schema: core.Schema, Tenant: "default", Body: news}))
	b.Until(`document.body.innerText.includes("70") && document.querySelector("details.curves").open`)
}

// The pages about money with costs on them: a machine that idles, a recommendation that was taken, several teams.
func TestPages_ShowCostsAndSavingsInABrowser(t *testing.T) {
	lane.Component(t, "browser")
	axe, err := os.ReadFile(os.Getenv("SCRIMP_AXE"))
	if err != nil {
		t.Fatalf("SCRIMP_AXE names no file of axe-core: test/tools.sh installs it: %v", err)
	}
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.idles(8 * time.Hour)
	w.must("POST", "/v1/recommend/take", client.TakeRecommendation{Name: "idle stop", Team: "team-0"}, nil)
	w.event(core.Tick{}, 100*time.Hour)
	b, at := w.inBrowser(t)
	for _, path := range []string{"/", "/recommend", "/recommend?team=team-0", "/waste", "/costs", "/costs?by=job", "/costs/days?by=project",
		"/chargeback", "/review", "/anomalies?since=30d", "/machines", "/teams"} {
		looks(t, b, "costs "+path, axe, func() { b.Go(at + path) })
	}
	looks(t, b, "costs take", axe, func() {
		b.Go(at + "/recommend")
		b.Eval(`document.querySelector("details.act").open = true`, nil)
	})
}

// looks checks a page at three widths in both themes.
func looks(t *testing.T, b *browser.Browser, page string, axe []byte, open func()) {
	t.Helper()
	for _, width := range []int{390, 768, 1440} {
		for _, dark := range []bool{false, true} {
			name := fmt.Sprintf("%s %d %t", page, width, dark)
			b.Size(width, 900, dark)
			open()
			var wide int
			if b.Eval("document.documentElement.scrollWidth - innerWidth", &wide); wide > 0 {
				t.Errorf("%s: %d pixels stand out", name, wide)
			}
			for _, e := range b.Errors() {
				t.Errorf("%s: the console says %s", name, e)
			}
			b.Save(strings.NewReplacer("/", "_", "?", "_", "=", "-").Replace(name))
			var found []string
			if dark != (width == 390) { // each theme and layout once: it takes the longest
				continue
			}
			b.Eval(string(axe)+";0", nil)
			b.Eval(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(r => r.violations.map(`+
				`v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | ")))`, &found)
			for _, f := range found {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
}

// A printed page has no navigation and no controls, light colours in a dark theme, and nothing beyond the sheet.
func TestPages_Print(t *testing.T) {
	lane.Component(t, "browser")
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	pages := append(w.withJobs(8), dashPages...)
	b, at := w.inBrowser(t)
	for _, path := range pages {
		b.Size(687, 971, true) // A4 with margins of 14 mm
		b.Go(at + path)
		b.Ask("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{
			{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
		var found []string
		b.Eval(`(() => {
			const list = [], seen = e => e.checkVisibility() && e.getBoundingClientRect().width > 1;
			for (const e of document.querySelectorAll("nav, button, form.search, .button, main :not(.field) > input, main :not(.field) > select"))
				if (seen(e)) list.push("shows " + e.outerHTML.slice(0, 120));
			for (const e of document.querySelectorAll("main td, main th, main svg, main pre, main p"))
				if (seen(e) && e.getBoundingClientRect().right > innerWidth + 1) list.push("cuts " + e.outerHTML.slice(0, 120));
			if (getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)") list.push("is dark");
			return list.slice(0, 5);
		})()`, &found)
		for _, f := range found {
			t.Errorf("%s: the printed page %s", path, f)
		}
		b.Save(strings.NewReplacer("/", "_", "?", "_", "=", "-").Replace("print " + path))
	}
}

// A page follows changes within 2 s, keeps its reader's marks, stops while paused, and says when the server is away.
func TestPages_UpdateThemselves(t *testing.T) {
	lane.Component(t, "browser")
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.withJobs(3)
	b, at := w.inBrowser(t)
	b.Go(at + "/jobs")
	b.Eval(`document.querySelector("input[value=train-01]").click(); window.before = document.querySelector("input[value=train-01]")`, nil)
	w.must("POST", "/v1/jobs", aJob("newcomer", ""), nil)
	b.Until(`document.querySelector("input[value=newcomer]")`)
	b.Until(`window.before === document.querySelector("input[value=train-01]") && window.before.checked && ` +
		`!document.querySelector("input[value=newcomer]").checked && document.getElementById("marked").textContent === "1 job:"`)
	key := func(k string) {
		b.Eval(fmt.Sprintf(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, k), nil)
	}
	key("/")
	b.Until(`document.activeElement.id === "search"`)
	b.Eval(`document.activeElement.blur()`, nil)
	key("?")
	b.Until(`document.getElementById("keys").open`)
	b.Eval(`document.getElementById("keys").close()`, nil)
	key("p")
	b.Until(`document.getElementById("pause-text").textContent === "Paused"`)
	key("p")
	b.Until(`document.getElementById("pause-text").textContent === "Live"`)
	key("g")
	key("o")
	b.Until(`location.pathname === "/" && document.readyState === "complete"`)
	key("g")
	key("j")
	b.Until(`location.pathname === "/jobs" && document.readyState === "complete"`)
	// text from other users stays text
	w.must("POST", "/v1/jobs", `{"spec":{"name":"evil","command":"true","tags":{"a":"<img src=x onerror=document.title='owned'>"}}}`, nil)
	b.Go(at + "/jobs/evil")
	b.Until(`document.title.startsWith("evil") && !document.querySelector("main img")`)
	// the buttons of an open page follow the state of its job
	b.Until(`document.querySelector(".actions").innerText.includes("Cancel…")`)
	w.must("POST", "/v1/jobs/evil/end", api.End{}, nil)
	b.Until(`!document.querySelector(".actions").innerText.includes("Cancel…")`)
	if list := b.Errors(); len(list) > 0 {
		t.Errorf("the console says %s", list)
	}
	// an open page ends with its session
	w.revokesSessions()
	b.Until(`location.pathname === "/sign-in"`)
	// also if it was paused at that moment
	w.signsIn(b, at)
	b.Eval(`document.getElementById("pause").click()`, nil)
	w.revokesSessions()
	b.Eval(`document.getElementById("pause").click()`, nil)
	b.Until(`location.pathname === "/sign-in" && document.body.innerText.includes("Your session has ended")`)
	// a form that is sent without a session stays, with what the reader filled in
	w.signsIn(b, at)
	b.Go(at + "/submit?as=file")
	w.revokesSessions()
	b.Eval(`document.getElementById("text").value = "name: kept"; document.querySelector("button[value=plan]").click()`, nil)
	b.Until(`document.getElementById("away").innerText.includes("nothing was sent") && document.getElementById("text").value === "name: kept"`)
}

// A page says that the server does not answer, and follows it again once it does.
func TestPages_SayThatTheServerIsAway(t *testing.T) {
	lane.Component(t, "browser")
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	b, at := w.inBrowser(t)
	b.Go(at + "/jobs")
	b.Ask("Network.emulateNetworkConditions", map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1,
		"uploadThroughput": -1}, nil)
	b.Eval(`document.getElementById("pause").click(); document.getElementById("pause").click()`, nil)
	b.Until(`!document.getElementById("away").hidden && document.getElementById("away").textContent.includes("does not answer")`)
	b.Ask("Network.emulateNetworkConditions", map[string]any{"offline": false, "latency": 0, "downloadThroughput": -1,
		"uploadThroughput": -1}, nil)
	w.must("POST", "/v1/jobs", aJob("later", ""), nil)
	b.Until(`document.getElementById("away").hidden && document.body.textContent.includes("later")`)
}
