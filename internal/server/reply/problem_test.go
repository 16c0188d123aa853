package reply_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/server/reply"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// A number that is found out of bounds only when the event is made gives status 422: after a 503, a client would
// retry for ever.
func TestProblem_NumberOutOfBoundsIs422(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("take job_submitted: %w", &limits.ExcessError{Field: "terms.memory", Kind: quantity.Bytes})
	for name, answer := range map[string]func(http.ResponseWriter){
		"a problem": func(w http.ResponseWriter) {
			reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		},
		"a refusal": func(w http.ResponseWriter) {
			(&reply.Refusal{Status: http.StatusServiceUnavailable, Title: "the change was not saved", Fix: "try again", Err: err}).Answer(w)
		},
	} {
		w := httptest.NewRecorder()
		answer(w)
		var p api.Problem
		must.Do(t, json.Unmarshal(w.Body.Bytes(), &p))
		if w.Code != http.StatusUnprocessableEntity || p.Status != w.Code || p.Field != "terms.memory" || p.Fix == "try again" {
			t.Errorf("%s: %d %+v", name, w.Code, p)
		}
	}
}
