package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
)

// If a webhook call fails while the server is killed, the next server repeats it with the same ID. Its secret is in no
// log, and is forgotten afterwards.
func TestWebhook_NextServerRepeatsFailedCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ids []string
	works := false
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/T0PSECRET" || !strings.Contains(string(body), `"state":"succeeded"`) {
			t.Errorf("%s: %s", r.URL, body)
		}
		ids = append(ids, r.Header.Get("Idempotency-Key"))
		if !works {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	told := func() int { mu.Lock(); defer mu.Unlock(); return len(ids) }

	h := newHome(t)
	h.env = []string{"HOOK=T0PSECRET"}
	h.write("job.yaml", "name: short\ncommand: echo done\nsecrets: [HOOK]\nnotify: "+hook.URL+"/$HOOK\n")
	h.do("run", "-y", "job.yaml")
	h.until("it is told twice", func() bool { return told() >= 2 })
	var s api.Server
	must.Do(t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &s))
	must.Do(t, syscall.Kill(s.PID, syscall.SIGKILL))
	mu.Lock()
	works = true
	before := len(ids)
	mu.Unlock()
	h.until("another server tells it", func() bool { _, err := h.try("jobs"); return err == nil && told() > before })
	secret := filepath.Join(h.data, "secrets", "short.json")
	h.until("the secret is forgotten", func() bool { _, err := os.Stat(secret); return os.IsNotExist(err) })
	h.do("server", "stop")
	h.do("jobs") // a third server has nothing to send
	h.do("server", "stop")
	if n := told(); n != before+1 {
		t.Errorf("told %d times after the kill, want once", n-before)
	}
	for _, id := range ids {
		if id != "notify/short/succeeded" {
			t.Errorf("id %q", id)
		}
	}
	for _, name := range []string{"server.log", filepath.Join("market", "market.log")} {
		if b, _ := os.ReadFile(filepath.Join(h.data, name)); strings.Contains(string(b), "T0PSECRET") {
			t.Errorf("%s has the secret", name)
		}
	}
}
