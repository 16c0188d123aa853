package reply_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
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

// An unknown field is named with its place and the field that may be meant, not with the decoder's words.
func TestBody_NamesUnknownField(t *testing.T) {
	t.Parallel()
	type entry struct {
		Team, Deadline string
		Own            json.RawMessage
	}
	type body struct {
		entry
		List  []entry           `json:"list"`
		Named map[string]*entry `json:"named"`
	}
	for text, want := range map[string][2]string{
		`{"teem":"a"}`: {"teem", "did you mean team"},
		`{"list":[{"TEAM":"a"},{"dedline":"6h"}]}`:  {"list[1].dedline", "did you mean deadline"},
		`{"named":{"x":{"team":"a","zzzzzzzz":1}}}`: {"named.x.zzzzzzzz", "GET /v1/openapi.json"},
		`{"own":{"any":1},"named":{"x":null},"":1}`: {"", "GET /v1/openapi.json"},
	} {
		w := httptest.NewRecorder()
		_, ok := reply.Body[body](w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text)))
		var p api.Problem
		err := json.NewDecoder(w.Body).Decode(&p)
		if ok || err != nil || p.Title != "this field is unknown" || p.Field != want[0] || !strings.Contains(p.Fix, want[1]) {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
}

// A request with a field that the server would ignore, or write over, or without an object, is refused. A
// message of an agent may have fields of a newer version.
func TestBody_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, field string
		good, agent bool
	}{
		{`{"name":"a","teem":"b"}`, "teem", false, true},
		{`{"name":"a"}{"name":"b"}`, "", false, false},
		{`{"name":7}`, "name", false, false},
		{`{"name":"a","name":"a"}`, "", false, true},
		{``, "", false, false},
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

// Names replace IDs in texts however they are cut into writes, and not in files.
func TestWriter_ReplacesIDsHoweverTheyAreCut(t *testing.T) {
	id := identity.NewID([10]byte{7, 1})
	b := identity.NewBook()
	b.Apply(identity.Change{User: &identity.User{Name: id}, Person: &identity.Person{Name: "zoe"}})
	text := "a " + id + `,p,person-x"` + id + "person-"
	for kind, want := range map[string]string{"text/csv": `a zoe,p,person-x"zoeperson-`, "application/x-tar": text} {
		for cut := range len(text) {
			for _, flushes := range []bool{false, cut <= 2 || cut >= 25 && cut <= 37} { // not within an ID
				rec := httptest.NewRecorder()
				w := reply.NewWriter(rec, func() bool { return false }, false)
				w.Names = b.Names().In
				w.Header().Set("Content-Type", kind)
				for _, part := range []string{text[:cut], text[cut:]} {
					if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
					if flushes {
						w.Flush()
					}
				}
				if w.End(); rec.Body.String() != want {
					t.Fatalf("%s cut at %d: %q, want %q", kind, cut, rec.Body, want)
				}
			}
		}
	}
}
