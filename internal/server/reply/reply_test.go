package reply_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

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
