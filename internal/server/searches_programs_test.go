package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/money"
)

// asJob returns a job's calls of its search: the attempt's token, and the calls. It submits the job and starts it.
func (w *world) asJob(name string) (attempt string, call func(body string) (client.SearchAnswer, int, client.Problem)) {
	w.t.Helper()
	w.must("POST", "/v1/jobs", costing(name, "", ""), nil)
	attempt = w.booting(1)[0]
	as := w.take(attempt)
	w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, time.Minute)
	return attempt, func(body string) (v client.SearchAnswer, code int, p client.Problem) {
		w.t.Helper()
		rec, p := w.ask("POST", "/v1/agent/search", as.AttemptToken, body)
		if rec.Code == http.StatusOK {
			must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &v))
		}
		return v, rec.Code, p
	}
}

// The program of a job asks with the task's token; where it says no cost, the job's own counts: what the job has cost
// between its first question and its last value, whatever it costs before and after. The job's cost grows with the clock,
// so the test reads it before and after each call.
func TestSearches_CountTheCostOfTheJobBetweenItsQuestionAndItsLastValue(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	_, call := w.asJob("train")
	spent := func() money.Amount {
		var job client.Job
		w.must("GET", "/v1/jobs/train", nil, &job)
		return job.Spent
	}
	around := func(body string) (v client.SearchAnswer, before, after money.Amount) {
		before = spent()
		v, code, p := call(body)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %+v", body, code, p)
		}
		return v, before, spent()
	}
	call(`{"name":"mine","open":` + aSearch("mine", `,"budget":"1000"`) + `}`)
	spent() // the job costs something before its first question
	a, ask0, ask1 := around(`{"name":"mine","ask":{}}`)
	var last client.SearchAnswer
	for n, trial := range []int{0, 1, 2} {
		v, tell0, tell1 := around(fmt.Sprintf(`{"name":"mine","tell":{"trial":%d,"at":1,"value":3}}`, trial))
		if got := *v.Search.Spent; got.Cmp(tell0.Sub(ask1)) < 0 || got.Cmp(tell1.Sub(ask0)) > 0 {
			t.Errorf("after value %d the search counts %v; the job cost %v to %v at its question, and %v to %v now", n, got, ask0,
				ask1, tell0, tell1)
		}
		last = v
		around(`{"name":"mine","ask":{}}`) // counts nothing
	}
	w.forgets()
	var v client.Search
	w.must("GET", "/v1/searches/mine", nil, &v)
	if a.Do != "train" || v.User != auth.OwnerName || ask0.Sign() <= 0 || v.Spent == nil || *v.Spent != *last.Search.Spent ||
		spent().Sub(ask0).Cmp(*v.Spent) < 0 {
		t.Errorf("it answers %+v; the job cost %v at its question, the search %v after a restart", a, ask0, v.Spent)
	}
	var trials []client.SearchTrial
	w.must("GET", "/v1/searches/mine/trials", nil, &trials)
	sum := money.Amount{}
	for _, x := range trials {
		if x.Cost != nil {
			sum = sum.Add(*x.Cost)
		}
	}
	if sum != *v.Spent {
		t.Errorf("the trials cost %v, the search %v", sum, v.Spent)
	}
}

// A second program that says it is worker 0, too, gets that worker with a note, and the first is refused at its next
// value. A program with a free number of its own is not disturbed, also after a restart of the server.
func TestSearches_NoticeTwoProgramsOfOneWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/searches", aSearch("mine", ""), nil)
	ask := func(body string) (v client.SearchAnswer) {
		w.must("POST", "/v1/searches/mine/ask", body, &v)
		return v
	}
	first, again := ask(`{"program":"one"}`), ask(`{"program":"one"}`)
	other := ask(`{"worker":1,"program":"three"}`)
	if first.Note != "" || again.Note != "" || other.Note != "" || other.Trial.Number == first.Trial.Number {
		t.Errorf("one program a worker: notes %q, %q and %q", first.Note, again.Note, other.Note)
	}
	w.must("POST", "/v1/searches/mine/tell", `{"trial":0,"at":1,"value":9,"program":"one"}`, nil)
	trial := ask(`{"program":"one"}`).Trial
	second := ask(`{"program":"two"}`)
	if second.Trial.Number != trial.Number || !strings.Contains(second.Note, "another program was worker 0") {
		t.Errorf("the second program gets trial %d and the note %q", second.Trial.Number, second.Note)
	}
	w.forgets()
	tell := fmt.Sprintf(`{"trial":%d,"at":%g,"value":8,"program":"one"}`, trial.Number, trial.At+1)
	rec, p := w.ask("POST", "/v1/searches/mine/tell", auth.OwnerName, tell)
	if rec.Code != http.StatusConflict || p.Field != "worker" || !strings.Contains(p.Title, "asked as worker 0") ||
		!strings.Contains(p.Fix, "workers=3") {
		t.Errorf("the first program's next value: %d %+v", rec.Code, p)
	}
	var v client.Search
	if w.must("GET", "/v1/searches/mine", nil, &v); v.Values != 1 {
		t.Errorf("a refused value counts: %d values", v.Values)
	}
	w.must("POST", "/v1/searches/mine/tell", strings.Replace(tell, "one", "two", 1), nil)
	w.must("POST", "/v1/searches/mine/tell", `{"trial":1,"at":1,"value":7,"program":"three"}`, nil)
	w.must("POST", "/v1/searches/mine/ask", `{}`, nil) // a program without a name is not checked
	for _, name := range []string{strings.Repeat("x", 101), `\u0007`} {
		for path, rest := range map[string]string{"ask": "", "tell": `,"trial":0,"at":1,"value":1`} {
			body := `{"program":"` + name + `"` + rest + `}`
			if rec, p := w.ask("POST", "/v1/searches/mine/"+path, auth.OwnerName, body); rec.Code != 422 || p.Field != "program" {
				t.Errorf("%s %.20s: %d %+v", path, name, rec.Code, p)
			}
		}
	}
}

// While a job that is not over trains a worker's trials, a program outside that says it is this worker is refused and
// gets to know a free number; once the job is over, it goes on with the job's trial.
func TestSearches_RefuseASecondProgramWhileAJobHasTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	attempt, call := w.asJob("train")
	call(`{"name":"mine","open":` + aSearch("mine", "") + `}`)
	a, _, _ := call(`{"name":"mine","ask":{"program":"in"}}`)
	rec, p := w.ask("POST", "/v1/searches/mine/ask", auth.OwnerName, `{"program":"out"}`)
	if rec.Code != http.StatusConflict || p.Field != "worker" || !strings.Contains(p.Title, "the job train") ||
		!strings.Contains(p.Fix, "the free number 1") {
		t.Errorf("a second program: %d %+v", rec.Code, p)
	}
	if b, code, p := call(`{"name":"mine","ask":{"program":"next attempt"}}`); code != 200 || b.Trial.Number != a.Trial.Number ||
		b.Note != "" {
		t.Errorf("the job's next attempt: %d %+v %+v", code, b, p)
	}
	if _, code, _ := call(`{"name":"mine","tell":{"trial":0,"at":1,"value":1,"program":"in"}}`); code != http.StatusConflict {
		t.Errorf("a value of the attempt before: %d", code)
	}
	w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: "completed"}, time.Minute)
	var v client.SearchAnswer
	w.must("POST", "/v1/searches/mine/ask", `{"program":"out"}`, &v)
	if v.Trial.Number != a.Trial.Number || v.Note == "" {
		t.Errorf("after the job: %+v", v)
	}
}
