package command

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// The error about an unreachable remote server has its address and the fix, not the failed request.
func TestSaid_NamesUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once, so nobody listens there
	must.Do(t, err)
	address := "http://" + l.Addr().String()
	must.Do(t, l.Close())
	c := &Client{Client: api.New(address, "", nil), Base: address, Far: true}
	_, err = c.Request(t.Context(), http.MethodGet, "/v1/jobs")
	if err == nil || !strings.HasPrefix(err.Error(), "no answer from "+address+": ") || !strings.Contains(err.Error(), "scrimp login") || strings.Contains(err.Error(), "/v1/jobs") {
		t.Errorf("%v", err)
	}
}

// A client without TLS, or without trust in the server's certificate, gets an error with the fix.
func TestSaid_NamesFixForTLSServer(t *testing.T) {
	site := httptest.NewUnstartedServer(http.NotFoundHandler())
	site.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	site.StartTLS()
	defer site.Close()
	plain := strings.Replace(site.URL, "https://", "http://", 1)
	for base, want := range map[string]string{site.URL: "scrimp login " + site.URL + " --ca FILE", plain: "write " + site.URL} {
		c := &Client{Client: api.New(base, "", nil), Base: base, Far: true}
		if _, err := c.Request(t.Context(), http.MethodGet, "/v1/me"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", base, err, want)
		}
	}
}

// A container often has no init process that reaps orphaned processes.
func TestGone_ZombieCountsAsEnded(t *testing.T) {
	cmd := exec.Command("true")
	must.Do(t, cmd.Start())
	defer func() { _ = cmd.Wait() }() // a zombie until then
	if err := Gone(t.Context(), cmd.Process.Pid, eventually.Limit); err != nil {
		t.Error(err)
	}
}
