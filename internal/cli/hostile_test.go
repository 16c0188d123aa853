package cli_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli"
	"scrimp/internal/test/must"
)

// Text from a server, in errors and results, cannot steer a terminal.
func TestClient_ServersTextCannotSteerTerminal(t *testing.T) {
	t.Parallel()
	const steers = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\rowned"
	dir := t.TempDir()
	job := filepath.Join(dir, "job.yaml")
	must.Do(t, os.WriteFile(job, []byte("name: a\ncommand: 'true'\n"), 0o600))
	refuses := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(api.Problem{Title: steers, Status: http.StatusConflict, Detail: steers, Field: steers, Fix: steers})
	}
	does := func(w http.ResponseWriter, r *http.Request) {
		var v any
		switch r.URL.Path {
		case "/v1/server":
			v = api.Server{Version: steers, Shared: true}
		case "/v1/market":
			v = api.Market{}
		case "/v1/jobs":
			v = api.Job{ID: steers, State: "held", Detail: steers}
		default:
			v = api.Job{ID: steers, State: steers, Detail: steers, Name: steers}
		}
		_ = json.NewEncoder(w).Encode(v)
	}
	commands := [][]string{{"jobs"}, {"run", "-y", "-d", job}, {"status", "a"}, {"cancel", "-y", "a"}, {"stop", "a"}, {"receipt", "a"}, {"explain", "a"}, {"costs"}, {"budgets"}, {"users"}, {"approve", "a"}, {"market"}}
	said := 0
	for name, handler := range map[string]http.HandlerFunc{"refuses": refuses, "does": does} {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		data := filepath.Join(dir, name)
		must.Do(t, os.Mkdir(data, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(data, "login.json"), []byte(`{"server":"`+s.URL+`","token":"t"}`), 0o600))
		for _, c := range commands {
			var out, errOut bytes.Buffer
			cli.Main(append([]string{"--data", data}, c...), strings.NewReader(""), &out, &errOut)
			text := out.String() + errOut.String()
			if at := strings.IndexAny(text, "\x1b\a\u009b\u202e\r"); at >= 0 {
				t.Errorf("a server that %s, %v: %q", name, c, text[max(0, at-40):min(len(text), at+30)])
			}
			if strings.Contains(text, "owned") {
				said++
			}
		}
	}
	if said < len(commands) {
		t.Errorf("the test is void: %d texts of the server are shown", said)
	}
}
