package diagnosis

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/client"
)

// answers returns a handler that answers with a value.
func answers(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
}

// newService returns a service of a job without measurements, at a time that the test sets.
func newService(now *time.Time, output http.HandlerFunc) *Service {
	return New(&Service{Job: answers(client.Job{ID: "a"}), Jobs: answers([]client.Job{{ID: "a"}}), Telemetry: answers(client.Telemetry{}),
		Receipt: answers(client.Receipt{}), Spec: answers(struct{}{}), Output: output, Now: func() time.Time { return *now }})
}

func (d *Service) asked(t *testing.T, do http.HandlerFunc, target string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	r.SetPathValue("id", "a")
	rec := httptest.NewRecorder()
	do(rec, r)
	return rec
}

// The evidence of a job is collected once in 30 seconds, however often and by whichever route it is asked for.
func TestDesk_KeepsADiagnosisFor30Seconds(t *testing.T) {
	now, read := time.Unix(1e9, 0), 0
	d := newService(&now, func(http.ResponseWriter, *http.Request) { read++ })
	for _, x := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {29 * time.Second, 1}, {time.Second, 2}, {0, 2}, {30 * time.Second, 3}} {
		now = now.Add(x.after)
		for _, rec := range []*httptest.ResponseRecorder{d.asked(t, d.Get, "/v1/jobs/a/diagnosis"), d.asked(t, d.List, "/v1/diagnoses")} {
			if rec.Code != 200 || !strings.Contains(rec.Body.String(), "Nothing was measured") {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		}
		if read != x.want {
			t.Errorf("at %v the output was read %d times, want %d", now.Unix(), read, x.want)
		}
	}
}

// Output of any length is read up to a limit, and a line up to another.
func TestDesk_ReadsBoundedOutput(t *testing.T) {
	now, sent := time.Unix(1e9, 0), 0
	line, _ := json.Marshal(client.LogLine{Line: strings.Repeat("é", 100_000)})
	d := newService(&now, func(w http.ResponseWriter, r *http.Request) {
		for range 5000 {
			n, err := w.Write(append(line, '\n'))
			if sent += n; err != nil {
				if r.Context().Err() == nil {
					t.Error("the handler is not told to stop")
				}
				return
			}
		}
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	list := d.lines(r, "/v1/jobs/a", "a")
	if sent != mostBytes || len(list) != mostBytes/(len(line)+1) {
		t.Errorf("%d bytes, %d lines", sent, len(list))
	}
	for _, l := range list {
		if len(l.Text) > longestLine {
			t.Fatalf("a line has %d bytes", len(l.Text))
		}
	}
}

// What refuses the caller in the API refuses the diagnosis in the same words.
func TestDesk_SendsRefusalsOn(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := newService(&now, answers(nil))
	d.Job = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"title":"no such job"}`))
	}
	rec := d.asked(t, d.Get, "/v1/jobs/a/diagnosis")
	if rec.Code != 404 || rec.Body.String() != `{"title":"no such job"}` || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if rec := d.asked(t, d.List, "/v1/diagnoses"); rec.Code != 200 || !strings.Contains(rec.Body.String(), "cannot read what was measured") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// Only the present attempt counts as one whose program has not begun, in wall time.
func TestAccountOf_CountsThePresentAttempt(t *testing.T) {
	from := time.Unix(1e9, 0)
	try := client.Try{From: from, Until: from.Add(time.Hour), End: "provisioning"}
	begun := try
	begun.Begun = &from
	ended := try
	ended.End = "silent"
	for name, x := range map[string]struct {
		try   client.Try
		phase string
		want  float64
	}{"present": {try, "provisioning", 360}, "begun": {begun, "provisioning", 0}, "ended": {ended, "requested", 0}, "waiting": {ended, "", 0}} {
		if got := accountOf(client.Receipt{MarketSpeed: 10, Tries: []client.Try{x.try}}, x.phase).NotBegun; got != x.want {
			t.Errorf("%s: %v seconds, want %v", name, got, x.want)
		}
	}
}
