package notice

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Whatever a metadata service answers, a poll ends, and each notice has a time or is advice.
func FuzzMetadata(f *testing.F) {
	for _, text := range []string{`{"action":"terminate","time":"2026-11-23T00:00:00Z"}`, `{"noticeTime":"2026-11-23T00:00:00Z"}`,
		`{"DocumentIncarnation":1,"Events":[{"EventId":"a","EventType":"Preempt","EventStatus":"Scheduled","NotBefore":"Mon, 23 Nov 2026 00:00:00 GMT","Resources":["vm"]}]}`,
		"TRUE", "FALSE", "", "{", "null", `{"Events":[null,{}]}`, "10.0.0.1", "\xff"} {
		f.Add([]byte(text), 200)
		f.Add([]byte(text), 404)
	}
	f.Fuzz(func(t *testing.T, text []byte, status int) {
		if status < 200 || status > 599 {
			status = http.StatusOK
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(text)
		}))
		defer s.Close()
		host := s.Listener.Addr().String()
		a, g, z := &aws{base: s.URL, http: s.Client()}, &gce{host: host, http: s.Client()}, &azure{base: s.URL, http: s.Client()}
		for range 2 {
			for name, poll := range map[string]func() ([]Notice, error){
				"aws": func() ([]Notice, error) { return a.poll(t.Context()) }, "gcp": func() ([]Notice, error) { return g.poll(t.Context()) },
				"azure": func() ([]Notice, error) { return z.poll(t.Context()) },
			} {
				list, _ := poll()
				for _, n := range list {
					if n.Source != name || n.Advice && n.Until != (time.Time{}) {
						t.Errorf("%q with %d: %+v", text, status, n)
					}
				}
			}
		}
		if own, err := Address(t.Context(), Endpoints{AWS: s.URL, GCE: host}, s.Client()); err != nil && own != "" {
			t.Errorf("%q: %q and %v", text, own, err)
		}
	})
}
