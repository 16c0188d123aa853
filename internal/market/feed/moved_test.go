package feed

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Redirects are followed without passing on the key of the original URL. Redirects from TLS to plain HTTP, and loops,
// are refused.
func TestClient_RedirectDoesNotGetKey(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "sesame") {
				t.Errorf("%s: %v", name, values)
			}
		}
		_, _ = w.Write([]byte("page"))
	}))
	defer other.Close()
	mux := http.NewServeMux()
	mux.Handle("/moved", http.RedirectHandler(other.URL+"/", http.StatusFound))
	mux.Handle("/circle", http.RedirectHandler("/circle", http.StatusFound))
	old, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer old.Close()
	defer secure.Close()
	c := Default("test", 1<<10)
	c.Tries = 1
	if page, err := c.page(t.Context(), old.URL+"/moved?key=sesame"); err != nil || string(page) != "page" || asked.Load() != 1 {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := c.page(t.Context(), old.URL+"/circle"); err == nil {
		t.Error("it goes in circles")
	}
	c.HTTP.Transport = secure.Client().Transport
	if _, err := c.page(t.Context(), secure.URL+"/moved?key=sesame"); err == nil || asked.Load() != 1 {
		t.Errorf("from TLS to none: %v, asked %d times", err, asked.Load())
	}
}
