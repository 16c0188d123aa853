package server

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

const searched = `"study":{"metric":"loss","params":[{"name":"lr","min":0.001,"max":0.1,"log":true},` +
	`{"name":"opt","values":["\"adam\"","\"sgd\""]}],"gpu_hours":40,"plateau":{"patience":9,"min_gain_per_usd":0.001},"fidelity":{"name":"epoch","min":1,"max":4},"searcher":"asha-promo","at_once":2,"trials":3}`

// inStudy returns a submission of a study.
func inStudy(name, team, rest string) string {
	rest = `,"budget":{"dollars":"9"},"metric":{"name":"loss"},"checkpoint":{"dir":"ckpt"}` + rest
	return strings.Replace(costing(name, team, rest), "{", "{"+searched+",", 1)
}

// says makes a trial's program report a value.
func (w *world) says(attempt string, message int64, epoch, value float64) {
	w.event(core.Progressed{Attempt: attempt, Message: message, Step: int64(10 * epoch), Epoch: epoch,
		Values: policy.Values{{At: w.control.Now(), Step: int64(10 * epoch), Epoch: epoch, Value: value}}}, time.Minute)
}

func TestStudy_RunsOnAServer(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	var g api.Group
	w.must("POST", "/v1/groups", inStudy("search", "", `,"env":{"A":"b"}`), &g)
	if g.ID != "search" || g.Kind != "study" || g.AtOnce != 2 || g.Study == nil || g.Study.Best != nil {
		t.Fatalf("it is shown as %+v", g)
	}
	w.began("search", 2)
	attempts := w.booting(2)
	as := w.take(attempts[0])
	var trials []api.Trial
	w.must("GET", "/v1/groups/search/trials", nil, &trials)
	p := trials[0].Params
	want := map[string]string{"SCRIMP_PARAM_LR": p["lr"], "SCRIMP_PARAM_OPT": p["opt"], "A": "b",
		"SCRIMP_PARAMS": `{"lr":` + p["lr"] + `,"opt":"` + p["opt"] + `"}`}
	maps.DeleteFunc(as.Env, func(k, _ string) bool { _, is := want[k]; return !is })
	if as.Job != "search.0" || as.Command != "true --lr="+p["lr"]+" --opt="+p["opt"] || !maps.Equal(as.Env, want) || as.Metric != "loss" {
		t.Errorf("the agent of %s gets %q and %v; its parameters are %v", as.Job, as.Command, as.Env, p)
	}
	for n, id := range attempts {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		w.says(id, 2, 1, 3-float64(n))
		w.says(id, 3, 2, 2-float64(n))
	}
	w.must("GET", "/v1/groups/search/trials?curves=1", nil, &trials)
	for n, trial := range trials {
		c := trial.Curve
		if len(c) != 2 || c[0].Unit != 1 || c[0].Value != 3-float64(n) || c[1].Value != 2-float64(n) || c[1].At == nil ||
			!c[1].At.After(g.Submitted) || c[1].CostUSD < c[0].CostUSD {
			t.Errorf("trial %d has the curve %+v", n, c)
		}
	}
	if rec, p := w.ask("GET", "/v1/groups/search/trials?curves=yes", auth.OwnerName, ""); rec.Code != http.StatusUnprocessableEntity || p.Field != "curves" {
		t.Errorf("curves=yes: %d %+v", rec.Code, p)
	}
	w.must("GET", "/v1/groups/search", nil, &g)
	if v := g.Study; v.GPULimit == nil || *v.GPULimit != 40 || v.Plateau == nil || v.Plateau.Patience != 9 || v.StoppedGain != nil ||
		len(v.Params) != 2 {
		t.Errorf("its limits are shown as %+v", v)
	}
	if b := g.Study.Best; b == nil || b.ID != "search.1" || *b.Best != 1 || b.BestAt != 2 {
		t.Errorf("the best is %+v", b)
	}
	w.until(func(m *core.Machine) bool { // the searcher leaves the first rung
		j, _ := m.Job("search.0")
		return j.Ending() == core.Paused
	})
	w.must("POST", "/v1/groups/search/end", api.End{}, &g)
	w.until(func(m *core.Machine) bool { return m.State().Group("search").Phase == state.GroupOver })
	var r api.GroupReceipt
	w.must("GET", "/v1/groups/search/receipt", nil, &r)
	if r.Study == nil || r.Study.Trials != len(r.Members) || r.Study.Best.ID != "search.1" {
		t.Errorf("its receipt says %+v", r.Study)
	}
}

func TestStudy_RefusesLimitsThatLeaveRoomForNoTrial(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.until(func(m *core.Machine) bool { return m.LeastOfTrial(&core.Terms{Grace: time.Hour}).Sign() > 0 })
	for _, c := range []struct{ from, to, field, says string }{
		{`"dollars":"9"`, `"dollars":"0.000001"`, "budget", "two starts of the cheapest machine"},
		{`"trials":3`, `"trials":3,"wall_clock_ns":1000000`, "study.wall_clock", "to start, and the search has 1ms"},
		{`"gpu_hours":40`, `"gpu_hours":0.001`, "study.gpu_hours", "the saves of 2 trials at once take"},
	} {
		body := strings.Replace(inStudy("search", "", ""), c.from, c.to, 1)
		if rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, body); rec.Code < 400 || p.Field != c.field || !strings.Contains(p.Title, c.says) {
			t.Errorf("%s: %d, field %q: %s", c.to, rec.Code, p.Field, p.Title)
		}
	}
}

func TestStudy_RefusesInvalidSearches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct{ from, to, field string }{
		{`"searcher":"asha-promo"`, `"searcher":"magic"`, "study.searcher"},
		{`"at_once":2`, `"at_once":0`, "study.at_once"},
		{`"metric":"loss"`, `"metric":"acc"`, "metric.name"},
		{`"metric":"loss"`, `"metric":"loss","maximize":true`, "metric.goal"},
		{`"min":0.001`, `"min":1`, "study.params[0]"},
		{`,"checkpoint":{"dir":"ckpt"}`, ``, "checkpoint.dir"},
		{`,"budget":{"dollars":"9"}`, ``, "budget"},
		{`"study"`, `"array":"0-9","study"`, "array"},
		{`"max":4`, `"max":0`, "study.fidelity"},
		{`"trials":3`, `"trials":-1`, "study.trials"},
		{`"name":"lr"`, `"name":"l r"`, "study.params[0]"},
		{`"gpu_hours":40`, `"gpu_hours":0.001`, "study.gpu_hours"},
		{`"min_gain_per_usd":0.001`, `"min_gain_per_usd":0`, "study.plateau"},
		{`"min_gain_per_usd":0.001`, `"min_gain_per_usd":0.001,"point_value_usd":5`, "study.plateau"},
		{`"trials":3`, `"trials":3,"past":[{"params":{"lr":"9"},"points":[{"unit":1,"value":2}]}]`, "study.past"},
		{`"trials":3`, `"trials":3,"past":[{"params":{"lr":"9","opt":"sgd"},"points":[{"unit":1,"value":2}]}]`, "study.past"},
	} {
		body := strings.Replace(inStudy("search", "", ""), c.from, c.to, 1)
		if rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, body); rec.Code < 400 || p.Field != c.field {
			t.Errorf("%s: %d, field %q: %s", c.to, rec.Code, p.Field, p.Detail)
		}
	}
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, inStudy("search", "", "")); rec.Code != http.StatusUnprocessableEntity || p.Field != "study" {
		t.Errorf("a study as a job: %d %+v", rec.Code, p)
	}
}
