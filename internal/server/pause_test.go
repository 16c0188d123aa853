package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// may sends a request with that body, and returns the job and the response.
func (w *world) may(method, path, token, body string) (j api.Job, code int, p api.Problem) {
	w.t.Helper()
	rec, p := w.ask(method, path, token, body)
	if rec.Code == 200 {
		must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &j))
	}
	return j, rec.Code, p
}

func TestJob_PauseResumeAndUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/jobs", json.RawMessage(costing("train", "", `,"budget":{"dollars":"5"}`)), nil)
	const train = "/v1/jobs/train"
	for _, c := range []struct {
		method, path, body string
		code               int
		state, says        string
	}{
		{"POST", train + "/resume", `{}`, 409, "", "scrimp update"},
		{"POST", train + "/pause", `{}`, 200, "paused", ""},
		{"POST", train + "/pause", `{}`, 200, "paused", ""}, // repeating it changes nothing
		{"PATCH", train, `{}`, 422, "", "priority"},
		{"PATCH", train, `{"priority":"critical","deadline":"in 6h","wall_clock":"2h","gpu_hours":"4"}`, 200, "paused", ""},
		{"PATCH", train, `{"priority":"urgent"}`, 422, "", "priority"},
		{"PATCH", train, `{"deadline":"2001-01-01T00:00:00Z"}`, 422, "", "passed already"},
		{"PATCH", train, `{"deadline":"in 0h"}`, 422, "", "deadline"},
		{"PATCH", train, `{"budget":"-3"}`, 422, "", "budget"},
		{"PATCH", train, `{"gpu_hours":"NaN"}`, 422, "", "gpu_hours"},
		{"PATCH", train, `{"wall_clock":"2"}`, 422, "", "wall_clock"},
		{"POST", train + "/resume", `{"env":["SCRIMP_X=1"]}`, 422, "", "env"},
		{"POST", train + "/resume", `{"budget":"$7.50","env":["LR=1"]}`, 200, "queued", ""},
		{"POST", train + "/end", `{}`, 200, "cancelled", ""},
		{"POST", train + "/pause", `{}`, 409, "", "cancelled"},
		{"PATCH", train, `{"priority":"low"}`, 409, "", "scrimp resume"},
		{"POST", train + "/resume", `{"deadline":"none","budget":"none"}`, 200, "queued", ""},
		{"POST", "/v1/jobs/nobody/pause", `{}`, 404, "", ""},
		{"POST", "/v1/jobs/nobody/resume", `{}`, 404, "", ""},
		{"PATCH", "/v1/jobs/nobody", `{"priority":"low"}`, 404, "", ""},
	} {
		j, code, p := w.may(c.method, c.path, "owner", c.body)
		if code != c.code || j.State != c.state || !strings.Contains(p.Title+p.Detail+p.Fix+p.Field, c.says) {
			t.Errorf("%s %s %s: %d, %q, %+v", c.method, c.path, c.body, code, j.State, p)
		}
	}
	var file struct{ Env map[string]string }
	w.must("GET", train+"/spec", nil, &file)
	if file.Env["LR"] != "1" {
		t.Errorf("the job file has env %v", file.Env)
	}
	w.control.Read(func(m *core.Machine) {
		j, _ := m.Job("train")
		if terms := j.Terms(); terms.Priority != 2 || terms.HasBudget || !terms.Deadline.IsZero() || terms.GPUHours != 4 {
			t.Errorf("its terms are %+v", terms)
		}
	})
}

// While a job saves because it is being ended, new terms come too late: they are refused, and the job keeps its own. One
// that is being paused takes them.
func TestUpdate_RefusesAJobThatIsBeingEnded(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for _, name := range []string{"ends", "rests"} {
		w.must("POST", "/v1/jobs", costing(name, "", `,"budget":"5","checkpoint":{"dir":"c"}`), nil)
	}
	for n, attempt := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, time.Minute*time.Duration(n+1))
	}
	w.must("POST", "/v1/jobs/ends/end", api.End{Save: true}, nil)
	w.must("POST", "/v1/jobs/rests/pause", api.Pause{}, nil)
	if _, code, p := w.may("PATCH", "/v1/jobs/ends", "owner", `{"budget":"50"}`); code != 409 || !strings.Contains(p.Fix, "scrimp resume") {
		t.Errorf("one that is being ended: %d %+v", code, p)
	}
	if j, code, p := w.may("PATCH", "/v1/jobs/rests", "owner", `{"budget":"50"}`); code != 200 || j.Budget == nil || *j.Budget != money.Picos(50e12) {
		t.Errorf("one that is being paused: %d %+v %+v", code, j.Budget, p)
	}
	if j := w.seen("ends"); *j.Budget != money.Picos(5e12) {
		t.Errorf("its budget is %v", j.Budget)
	}
}

// A job cannot be resumed with, or updated to, terms that a limit has no room for or that require approval. A paused
// job keeps its hold.
func TestUpdate_ChecksTheLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	who := w.crew(map[string]identity.Grant{"sub": {Team: "a", Role: identity.Submitter},
		"eye": {Team: "a", Role: identity.Viewer}, "boss": {Team: "a", Role: identity.Admin}})
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(100), Approve: dollars(70)})
	submit := func(name string, most string) {
		t.Helper()
		if _, code, p := w.may("POST", "/v1/jobs", who["sub"], costing(name, "a", `,"budget":{"dollars":"`+most+`"}`)); code != 200 {
			t.Fatalf("%s: %d %+v", name, code, p)
		}
	}
	submit("one", "50")
	submit("two", "40")
	for _, c := range []struct {
		method, job, what, who, body string
		code                         int
		state                        string
	}{
		{"POST", "one", "/pause", "eye", `{}`, 403, ""},
		{"POST", "one", "/pause", "sub", `{}`, 200, "paused"},
		{"PATCH", "two", "", "sub", `{"budget":"51"}`, 402, ""}, // the paused job still holds its 50
		{"PATCH", "two", "", "sub", `{"budget":"50"}`, 200, "queued"},
		{"PATCH", "two", "", "sub", `{"budget":"none"}`, 403, ""},
		{"PATCH", "two", "", "sub", `{"budget":"10"}`, 200, "queued"},
		{"PATCH", "one", "", "sub", `{"budget":"80"}`, 403, ""}, // it would require approval
		{"PATCH", "one", "", "sub", `{"budget":"60"}`, 200, "paused"},
		{"POST", "one", "/end", "sub", `{}`, 200, "cancelled"},
		{"PATCH", "two", "", "sub", `{"budget":"70"}`, 200, "queued"},
		{"POST", "one", "/resume", "sub", `{}`, 402, ""}, // its hold is taken by now
		{"POST", "one", "/resume", "sub", `{"budget":"30"}`, 200, "queued"},
		{"POST", "two", "/end", "sub", `{}`, 200, "cancelled"},
		{"POST", "one", "/end", "sub", `{}`, 200, "cancelled"},
		{"POST", "one", "/resume", "sub", `{"budget":"80"}`, 200, "held"},
		{"POST", "one", "/resume", "sub", `{}`, 409, ""},
		{"PATCH", "one", "", "sub", `{"budget":"95"}`, 200, "held"}, // that is the new request
		{"PATCH", "one", "", "sub", `{"budget":"101"}`, 402, ""},
		{"PATCH", "one", "", "sub", `{"priority":"low"}`, 200, "held"},
		{"PATCH", "one", "", "sub", `{"budget":"60"}`, 200, "queued"}, // it needs no approval
		{"PATCH", "one", "", "sub", `{"budget":"80"}`, 403, ""},
		{"POST", "one", "/end", "sub", `{}`, 200, "cancelled"},
		{"POST", "two", "/resume", "sub", `{"budget":"80"}`, 200, "held"},
		{"POST", "two", "/approve", "boss", `{}`, 200, "queued"},
		{"PATCH", "two", "", "sub", `{"budget":"90"}`, 403, ""}, // more than was approved
		{"PATCH", "two", "", "sub", `{"budget":"75"}`, 200, "queued"},
		{"PATCH", "two", "", "sub", `{"budget":"80"}`, 200, "queued"},
		{"POST", "two", "/end", "sub", `{}`, 200, "cancelled"},
		{"POST", "one", "/resume", "sub", `{"budget":"80"}`, 200, "held"}, // it was never approved
		{"POST", "two", "/resume", "sub", `{}`, 200, "queued"},            // it was approved for that much
		{"POST", "two", "/pause", "sub", `{}`, 200, "paused"},
		{"POST", "two", "/resume", "sub", `{}`, 200, "queued"},
	} {
		j, code, p := w.may(c.method, "/v1/jobs/"+c.job+c.what, who[c.who], c.body)
		if code != c.code || j.State != c.state {
			t.Errorf("%s %s%s %s: %d, %q, %+v", c.method, c.job, c.what, c.body, code, j.State, p)
		}
	}
}

// A rejected job cannot be resumed to avoid approval.
func TestResume_RefusesRejectedJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	who := w.crew(map[string]identity.Grant{"sub": {Team: "a", Role: identity.Submitter}})
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Approve: dollars(10)})
	if j, code, _ := w.may("POST", "/v1/jobs", who["sub"], costing("one", "a", `,"budget":{"dollars":"20"}`)); code != 200 ||
		j.State != "held" {
		t.Fatalf("%d, %s", code, j.State)
	}
	w.must("POST", "/v1/jobs/one/reject", api.Review{Reason: "no"}, nil)
	if _, code, _ := w.may("POST", "/v1/jobs/one/resume", who["sub"], `{"budget":"5"}`); code != 409 {
		t.Errorf("with a small budget: %d", code)
	}
	if j, code, _ := w.may("POST", "/v1/jobs/one/resume", who["sub"], `{}`); code != 200 || j.State != "held" {
		t.Errorf("as it was: %d, %s", code, j.State)
	}
}

// The server forgets the secrets of an ended job, so a resumption must bring them again.
func TestResume_NeedsSecretsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/jobs", json.RawMessage(
		`{"spec":{"name":"one","command":"true","secrets":["KEY"]},"secrets":{"KEY":"hunter2"}}`), nil)
	w.must("POST", "/v1/jobs/one/pause", api.Pause{}, nil)
	w.must("POST", "/v1/jobs/one/resume", api.Resume{}, nil)
	if got := w.secrets("one")["KEY"]; got != "hunter2" {
		t.Errorf("after a pause the secret is %q", got)
	}
	w.must("POST", "/v1/jobs/one/end", api.End{}, nil)
	w.outbox.Forget("one")
	if _, code, p := w.may("POST", "/v1/jobs/one/resume", "owner", `{}`); code != 422 || p.Field != "secrets" {
		t.Errorf("without the secret: %d %+v", code, p)
	}
	w.must("POST", "/v1/jobs/one/resume", api.Resume{Secrets: map[string]string{"KEY": "hunter3"}}, nil)
	if got := w.secrets("one")["KEY"]; got != "hunter3" {
		t.Errorf("after it was resumed the secret is %q", got)
	}
	if strings.Contains(w.log.String(), "hunter") {
		t.Error("a secret is in the log")
	}
	for r, err := range w.eachRecord(t) {
		if err != nil || strings.Contains(string(r.Event), "hunter") {
			t.Errorf("a secret is in the log of events: %v", err)
		}
	}
}

// A new deadline that a job with known work misses at its pace needs the caller's acceptance; a later one does not.
func TestChange_DeadlineThatIsMissedNeedsAcceptance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/jobs", `{"accept_unproven":true,"spec":{"name":"lng","command":"true","checkpoint":{"dir":"c"},"work":{"time":"10h"}}}`, nil)
	for _, c := range []struct {
		body string
		code int
	}{{`{"deadline":"in 5m"}`, 422}, {`{"deadline":"in 9h"}`, 422}, {`{"deadline":"in 5m","accept_late":true}`, 200},
		{`{"deadline":"in 20h"}`, 200}, {`{"deadline":"none"}`, 200}, {`{"accept_late":true}`, 422}} {
		rec, p := w.ask("PATCH", "/v1/jobs/lng", "owner", c.body)
		late := c.code == 422 && strings.Contains(c.body, "in ")
		if rec.Code != c.code || (p.Field == "accept_late") != late {
			t.Errorf("%s: %d %+v", c.body, rec.Code, p)
		}
	}
}
