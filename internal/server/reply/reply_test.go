package reply_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
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
