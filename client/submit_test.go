package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Submit retries with the same key after a lost response. The server knows the key and makes one job.
func TestSubmit_RetriesWithItsKeyAfterLostResponse(t *testing.T) {
	defer func(d time.Duration) { firstPause = d }(firstPause)
	firstPause = time.Nanosecond
	for name, lose := range map[string]func(w http.ResponseWriter){
		"the connection breaks": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"a part of the answer comes": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"id":`))
		},
		"a proxy gives up": func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) },
	} {
		for key, want := range map[string]int{"k": 3, "": 1} {
			asked := 0
			jobs := map[string]bool{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var sent Submission
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				jobs[sent.Key] = true
				if asked++; asked < 3 {
					lose(w)
					return
				}
				_ = json.NewEncoder(w).Encode(Job{ID: "one"})
			}))
			j, err := New(s.URL, "", nil).Submit(t.Context(), Submission{Key: key})
			s.Close()
			if asked != want || len(jobs) != 1 || (key != "") != (err == nil && j.ID == "one") {
				t.Errorf("%s, with key %q: asked %d times for %v, answered %v, %v", name, key, asked, jobs, j.ID, err)
			}
		}
	}
}

func TestSubmit_DoesNotRetryRefusalsOrFailedDials(t *testing.T) {
	defer func(d time.Duration) { firstPause = d }(firstPause)
	firstPause = time.Nanosecond
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"title":"no"}`))
	}))
	if _, err := New(s.URL, "", nil).Submit(t.Context(), Submission{Key: "k"}); err == nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	s.Close()
	if _, err := New(s.URL, "", nil).Submit(t.Context(), Submission{Key: "k"}); err == nil || isCutOff(err) {
		t.Errorf("nobody answers: %v", err)
	}
}
