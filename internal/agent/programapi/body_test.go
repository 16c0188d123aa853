package programapi

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// Every route with a body refuses one that is too large, and names the limit.
func TestServe_NamesTheLimitOfABody(t *testing.T) {
	p, err := Serve(searching{heard: new(string)}, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	defer func() { must.Do(t, p.Close()) }()
	for _, path := range []string{"/v1/progress", "/v1/saved", "/v1/search"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+path, strings.NewReader(strings.Repeat(" ", maxProgress+1)))
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+p.Token)
		resp, err := http.DefaultClient.Do(r)
		must.Do(t, err)
		text, err := io.ReadAll(resp.Body)
		must.Do(t, err)
		must.Do(t, resp.Body.Close())
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "1048576 bytes") {
			t.Errorf("%s answers with %d: %s", path, resp.StatusCode, text)
		}
	}
}
