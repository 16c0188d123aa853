//go:build !local

package blob

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// A shared access signature reaches the service, and appears in no error of the service or the transport.
func TestSAS_AppearsInNoError(t *testing.T) {
	lane.Component(t, "whole")
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RawQuery }))
	for _, on := range []bool{true, false} {
		if !on {
			server.Close()
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/c?comp=list", nil)
		must.Do(t, err)
		answer, err := sasCarrier{sas: "sv=1&sig=hunter2", client: server.Client()}.Do(r)
		if (err == nil) != on {
			t.Fatalf("the server is there: %v; %v", on, err)
		}
		if on {
			_ = answer.Body.Close()
			if got != "comp=list&sv=1&sig=hunter2" || strings.Contains(answer.Request.URL.String(), "hunter2") {
				t.Errorf("the server got %q, and the answer is to %s", got, answer.Request.URL)
			}
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the signature is told: %v", err)
		}
	}
}
