package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/searches"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
	"scrimp/money"
)

const loopStudy = `{"metric":"loss","params":[{"name":"lr","min":0.001,"max":0.1,"log":true},` +
	`{"name":"opt","values":["\"adam\"","\"sgd\""]}],"fidelity":{"name":"epoch","min":1,"max":4},` +
	`"searcher":"asha-promo","at_once":2,"trials":6}`

// aSearch returns the definition of a search.
func aSearch(name, rest string) string {
	return `{"name":"` + name + `","study":` + loopStudy + rest + `}`
}

// forgets makes the server read its searches from the store, as after a restart.
func (w *world) forgets() {
	w.searches = &searches.Service{Meta: w.store, Gate: w.gate, Control: w.control}
}

// askAndTell plays a search to its end: the values fall with each epoch, and grow with the number of the trial. It
// returns the told seconds and values.
func (w *world) askAndTell(name string) (seconds float64, values int) {
	w.t.Helper()
	for n := range 200 {
		var a, b, told, again client.SearchAnswer
		w.must("POST", "/v1/searches/"+name+"/ask", `{}`, &a)
		if a.Do == "end" {
			return seconds, values
		}
		if n%5 == 0 {
			w.forgets()
		}
		w.must("POST", "/v1/searches/"+name+"/ask", `{"worker":0}`, &b) // a program that was killed asks again
		if a.Do != "train" || b.Do != "train" || a.Trial.Number != b.Trial.Number || a.Trial.JSON != b.Trial.JSON {
			w.t.Fatalf("it asks twice, and gets %+v and %+v", a, b)
		}
		value, took := 1/(a.Trial.At+1)+float64(a.Trial.Number), 0.5
		seconds, values = seconds+took, values+1
		tell := client.TellTrial{Trial: a.Trial.Number, At: a.Trial.At + 1, Value: &value, Seconds: &took}
		w.must("POST", "/v1/searches/"+name+"/tell", tell, &told)
		w.must("POST", "/v1/searches/"+name+"/tell", tell, &again)
		if told.Do != again.Do || again.Search.Values != values || *again.Search.Spent != *told.Search.Spent {
			w.t.Fatalf("a repeated value: %s and %s, %d values", told.Do, again.Do, again.Search.Values)
		}
	}
	w.t.Fatal("the search does not end")
	return 0, 0
}

func TestSearches_GoOnAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var v client.Search
	for range 2 { // the second one changes nothing
		w.must("POST", "/v1/searches", aSearch("mine", `,"budget":"40","per_hour":"3600"`), &v)
		if v.Name != "mine" || v.User != auth.OwnerName || v.Over != "" || v.Trials != 0 || v.Best != nil {
			t.Fatalf("it is shown as %+v", v)
		}
	}
	seconds, values := w.askAndTell("mine")
	w.must("GET", "/v1/searches/mine", nil, &v)
	if v.Over != "search_done" || v.Values != values || *v.Seconds != seconds || v.Spent.Float() != seconds || v.Trials > 6 {
		t.Errorf("it ends as %+v after %d epochs and %g s", v, values, seconds)
	}
	if v.Best == nil || v.Best.Number != 0 || *v.Best.Best != 0.25 || v.Best.BestAt != 4 || v.Best.State != "trained" {
		t.Errorf("the best is %+v", v.Best)
	}
	var trials []client.SearchTrial
	w.must("GET", "/v1/searches/mine/trials", nil, &trials)
	sum := 0.0
	for _, x := range trials {
		if x.Cost == nil || *x.Seconds != x.Cost.Float() || fmt.Sprintf(`{"lr":%s,"opt":%s}`, x.Params["lr"], x.Params["opt"]) != x.JSON {
			t.Fatalf("a trial of a dollar a second is %+v", x)
		}
		sum += x.Cost.Float()
	}
	if len(trials) != v.Trials || sum != seconds {
		t.Errorf("%d trials cost %g", len(trials), sum)
	}
}

func TestSearches_StartAnewAfterTheyAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/searches", aSearch("mine", ""), nil)
	w.must("POST", "/v1/searches/mine/ask", `{}`, nil)
	w.must("DELETE", "/v1/searches/mine", nil, nil)
	w.forgets()
	if rec, _ := w.ask("GET", "/v1/searches/mine", auth.OwnerName, nil); rec.Code != http.StatusNotFound {
		t.Errorf("a removed search is shown: %d", rec.Code)
	}
	var v client.Search
	w.must("POST", "/v1/searches", aSearch("mine", ""), &v)
	if v.Values != 0 || v.Trials != 0 {
		t.Errorf("another search of its name begins with %+v", v)
	}
}

func TestSearches_RefuseInvalidDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct{ from, to, field string }{
		{`"name":"mine"`, `"name":"my search"`, "name"},
		{`"at_once":2`, `"at_once":0`, "study.at_once"},
		{`"trials":6`, `"trials":0`, "budget"},
		{`"trials":6`, `"gpu_hours":1,"trials":6`, "study.gpu_hours"},
		{`"max":4`, `"max":0`, "study.fidelity"},
		{`"asha-promo"`, `"magic"`, "study.searcher"},
		{`"study":`, `"budget":"-1","study":`, "budget"},
	} {
		body := strings.Replace(aSearch("mine", ""), c.from, c.to, 1)
		if rec, p := w.ask("POST", "/v1/searches", auth.OwnerName, body); rec.Code != http.StatusUnprocessableEntity || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s: %d, field %q: %s", c.to, rec.Code, p.Field, p.Detail)
		}
	}
	w.must("POST", "/v1/searches", aSearch("mine", `,"budget":"5"`), nil)
	if rec, p := w.ask("POST", "/v1/searches", auth.OwnerName, aSearch("mine", `,"budget":"6"`)); rec.Code != http.StatusConflict || p.Field != "name" || !strings.Contains(p.Title, "its budget is 5 and not 6") {
		t.Errorf("another search of the same name: %d %+v", rec.Code, p)
	}
}

func TestSearches_RefuseInvalidValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/searches", aSearch("mine", `,"budget":"5"`), nil)
	w.must("POST", "/v1/searches/mine/ask", `{}`, nil)
	for _, c := range []struct {
		body  string
		code  int
		field string
	}{
		{`{"trial":0,"at":1,"value":1}`, 422, "cost"},
		{`{"trial":0,"at":1,"cost":"1"}`, 422, "value"},
		{`{"trial":0,"at":1,"value":1,"diverged":true,"cost":"1"}`, 422, "value"},
		{`{"trial":0,"at":1,"value":1,"seconds":-1,"cost":"1"}`, 422, "seconds"},
		{`{"trial":0,"at":1,"value":1e200,"cost":"1"}`, 422, "value"},
		{`{"trial":0,"at":1,"value":NaN,"cost":"1"}`, 400, ""},
		{`{"trial":7,"at":1,"value":1,"cost":"1"}`, 404, "trial"},
		{`{"trial":0,"at":3,"value":1,"cost":"1"}`, 409, "at"},
		{`{"trial":0,"at":1,"value":1,"cost":"-1"}`, 422, "cost"},
		{`{"trial":0,"at":9,"value":1,"cost":"1"}`, 422, ""},
		{`{"trial":0,"at":1,"value":1,"cost":"1","seconds":999999999999}`, 422, "seconds"},
	} {
		rec, p := w.ask("POST", "/v1/searches/mine/tell", auth.OwnerName, c.body)
		if rec.Code != c.code || p.Field != c.field {
			t.Errorf("%s: %d, field %q: %s %s", c.body, rec.Code, p.Field, p.Title, p.Detail)
		}
	}
	for path, want := range map[string]int{"/v1/searches/other/ask": 404, "/v1/searches/mine/ask": 422} {
		if rec, _ := w.ask("POST", path, auth.OwnerName, `{"worker":5}`); rec.Code != want {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	var v client.Search
	if w.must("GET", "/v1/searches/mine", nil, &v); v.Values != 0 {
		t.Errorf("refused values count: %+v", v)
	}
	w.must("POST", "/v1/searches/mine/tell", `{"trial":0,"at":1,"value":1,"cost":"1"}`, nil)
	rec, p := w.ask("POST", "/v1/searches/mine/tell", auth.OwnerName, `{"trial":0,"at":1,"value":2,"cost":"1"}`)
	if rec.Code != 409 || !strings.Contains(p.Title, "another one is worker 0") || !strings.Contains(p.Fix, "worker=1, workers=2") {
		t.Errorf("another value of a second program: %d %+v", rec.Code, p)
	}
}

func TestSearches_AnswerNullWhereNoCostAndNoTimeWasTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/searches", aSearch("mine", ""), nil)
	w.must("POST", "/v1/searches/mine/ask", `{}`, nil)
	w.must("POST", "/v1/searches/mine/tell", `{"trial":0,"at":1,"value":1}`, nil)
	var v client.Search
	if w.must("GET", "/v1/searches/mine", nil, &v); v.Spent != nil || v.Seconds != nil || v.Best.Cost != nil || v.Best.Seconds != nil {
		t.Errorf("the search is %+v and its trial %+v", v, v.Best)
	}
}

func TestSearches_BelongToTheirTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/red", `{}`, nil)
	w.must("PUT", "/v1/teams/blue", `{}`, nil)
	ann := w.user("ann", identity.Grant{Team: "red", Role: identity.Submitter})
	eve := w.user("eve", identity.Grant{Team: "blue", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "red", Role: identity.Submitter})
	if rec, p := w.ask("POST", "/v1/searches", ann, aSearch("mine", "")); rec.Code != http.StatusOK {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	for _, c := range []struct {
		method, path, token, body string
		want                      int
	}{
		{"GET", "/v1/searches/mine", eve, "", 404},
		{"POST", "/v1/searches/mine/ask", eve, "{}", 404},
		{"POST", "/v1/searches", eve, aSearch("mine", ""), 409},
		{"DELETE", "/v1/searches/mine", eve, "", 404},
		{"GET", "/v1/searches/mine", bob, "", 200},
		{"POST", "/v1/searches/mine/ask", bob, "{}", 403},
		{"DELETE", "/v1/searches/mine", bob, "", 403},
		{"POST", "/v1/searches/mine/ask", ann, "{}", 200},
		{"POST", "/v1/searches", ann, strings.Replace(aSearch("other", ""), "{", `{"team":"blue",`, 1), 422},
	} {
		if rec, p := w.ask(c.method, c.path, c.token, c.body); rec.Code != c.want {
			t.Errorf("%s %s: %d, want %d: %+v", c.method, c.path, rec.Code, c.want, p)
		}
	}
	var list []client.Search
	if w.must("GET", "/v1/searches", nil, &list); len(list) != 1 || list[0].Team != "red" || list[0].User != "ann" {
		t.Errorf("the owner sees %+v", list)
	}
}

type meta = searches.Meta

// failing is a store that fails where it says so, before or after it has written.
type failing struct {
	meta
	before, after bool
}

func (f *failing) PutMeta(ctx context.Context, key, value string) error {
	if f.before {
		return errors.New("no room")
	}
	if err := f.meta.PutMeta(ctx, key, value); err != nil || !f.after {
		return err
	}
	return errors.New("the connection was lost")
}

func TestSearches_KeepNoValueThatTheStoreLacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	f := &failing{meta: w.store}
	w.searches = &searches.Service{Meta: f, Gate: w.gate, Control: w.control}
	w.must("POST", "/v1/searches", aSearch("mine", ""), nil)
	for n, kept := range []int{0, 2} { // the second value is written, and nobody hears of it
		var a client.SearchAnswer
		w.must("POST", "/v1/searches/mine/ask", `{}`, &a)
		body := fmt.Sprintf(`{"trial":%d,"at":1,"value":%d}`, a.Trial.Number, 9-n)
		f.before, f.after = n == 0, n == 1
		if rec, p := w.ask("POST", "/v1/searches/mine/tell", auth.OwnerName, body); rec.Code != http.StatusServiceUnavailable {
			t.Fatalf("a value that is not saved: %d %+v", rec.Code, p)
		}
		f.before, f.after = false, false
		var v client.Search
		if w.must("GET", "/v1/searches/mine", nil, &v); v.Values != kept {
			t.Errorf("the store has %d values, and the search %d", kept, v.Values)
		}
		if w.must("POST", "/v1/searches/mine/tell", body, &a); a.Search.Values != n+1 {
			t.Errorf("told again it has %d values, want %d", a.Search.Values, n+1)
		}
	}
}

func TestSearches_GoOnInARestoredBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/searches", aSearch("mine", `,"budget":"40"`), nil)
	var a, b client.SearchAnswer
	for range 3 {
		w.must("POST", "/v1/searches/mine/ask", `{}`, &a)
		w.must("POST", "/v1/searches/mine/tell", client.TellTrial{Trial: a.Trial.Number, At: a.Trial.At + 1,
			Value: new(float64(a.Trial.Number)), Cost: new(money.FromMicros(1_000_000, 0))}, nil)
	}
	w.must("POST", "/v1/searches/mine/ask", `{}`, &a)
	var file bytes.Buffer
	if _, err := backup.Write(t.Context(), w.store, &file); err != nil {
		t.Fatal(err)
	}
	other, err := sqlite.Open(fast.Dir(t))
	must.Do(t, err)
	t.Cleanup(func() { _ = other.Close() })
	if _, err := backup.Restore(t.Context(), other, &file); err != nil {
		t.Fatal(err)
	}
	w.searches = &searches.Service{Meta: other, Gate: w.gate, Control: w.control}
	w.must("POST", "/v1/searches/mine/ask", `{}`, &b)
	if !reflect.DeepEqual(a, b) || b.Search.Values != 3 || b.Search.Spent.String() != "3" {
		t.Errorf("a restored search answers %+v, and the one before %+v", b, a)
	}
}
