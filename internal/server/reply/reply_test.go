package reply_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// A response that JSON cannot represent is a 500 with a reason for the log, never a 200 without a body.
func TestJSON_FailsOnValuesThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		code int
	}{{math.Inf(1), http.StatusInternalServerError}, {map[string]any{"a": []float64{math.NaN()}}, http.StatusInternalServerError},
		{func() {}, http.StatusInternalServerError}, {1.5, http.StatusOK}} {
		rec := httptest.NewRecorder()
		w := reply.NewWriter(rec, func() bool { return false }, false)
		reply.JSON(w, c.v)
		if rec.Code != c.code || rec.Body.Len() == 0 || (w.Fault() == nil) != (c.code == http.StatusOK) {
			t.Errorf("%T: %d %q, %v", c.v, rec.Code, rec.Body, w.Fault())
		}
	}
}

// A request with a field that the server would ignore, or with more than one value, is refused. A
// message of an agent may have fields of a newer version.
func TestBody_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, field string
		good, agent bool
	}{
		{`{"name":"a","teem":"b"}`, "", false, true},
		{`{"name":"a"}{"name":"b"}`, "", false, false},
		{`{"name":7}`, "name", false, false},
		{" {\"name\":\"a\"}\n", "", true, true},
	} {
		type named struct {
			Name string `json:"name"`
		}
		ask := func(read func(http.ResponseWriter, *http.Request) (named, bool)) (named, bool, api.Problem) {
			w := httptest.NewRecorder()
			v, ok := read(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)))
			var p api.Problem
			if err := json.NewDecoder(w.Body).Decode(&p); !ok && (err != nil || p.Status != http.StatusBadRequest) {
				t.Errorf("%s: answered %+v, %v", c.body, p, err)
			}
			return v, ok, p
		}
		if v, ok, p := ask(reply.Body[named]); ok != c.good || ok && v.Name != "a" || p.Field != c.field {
			t.Errorf("%s: %+v, %v, %+v", c.body, v, ok, p)
		}
		if v, ok, _ := ask(reply.FromAgent[named]); ok != c.agent || ok && v.Name != "a" {
			t.Errorf("%s of an agent: %+v, %v", c.body, v, ok)
		}
	}
}
