package listener

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFront_AnswersAsFollowerUntilItLeads(t *testing.T) {
	t.Parallel()
	f := &Front{}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/v1/jobs": 503} {
		rec := httptest.NewRecorder()
		f.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if rec.Code != want || want == 503 && rec.Header().Get("Retry-After") == "" {
			t.Errorf("a server that follows answers %s with %d", path, rec.Code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	f.Open(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel() // the leadership ends while a stream is open
		<-r.Context().Done()
		close(ended)
	}))
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/v1/events", nil))
	select {
	case <-ended:
	default:
		t.Error("a stream outlives the leadership that it tells of")
	}
}
