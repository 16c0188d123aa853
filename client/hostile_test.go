package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// A response without end costs some memory and an error, not all memory of the host.
func TestClient_FailsOnEndlessResponse(t *testing.T) {
	defer func(before int64) { mostAnswer = before }(mostAnswer)
	mostAnswer = 1 << 20
	part := []byte(strings.Repeat(" ", 1<<20))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := `{"id":"`
		if strings.HasSuffix(r.URL.Path, "/watch") {
			begin = `{"id":"a"}{"id":"`
		}
		_, err := w.Write([]byte(begin))
		for err == nil {
			_, err = w.Write(part)
		}
	}))
	defer srv.Close()
	c := New(srv.URL, "t", nil)
	if _, err := c.Job(t.Context(), "j"); !errors.Is(err, errLong) {
		t.Errorf("a job: %v", err)
	}
	if err := c.Do(t.Context(), http.MethodGet, "/x", nil, &struct{}{}); !errors.Is(err, errLong) {
		t.Errorf("anything: %v", err)
	}
	if _, _, err := c.JobsPage(t.Context(), nil); !errors.Is(err, errLong) {
		t.Errorf("a page: %v", err)
	}
	seen := 0
	for _, err := range c.Watch(t.Context(), "j") {
		if seen++; err != nil && !errors.Is(err, errLong) {
			t.Errorf("a stream: %v", err)
		}
	}
	if seen != 2 {
		t.Errorf("a stream yields %d times, want a job and an error", seen)
	}
}

// A name of dots is no step in the path: nothing is sent, and the error names it.
func TestClient_RefusesNamesThatArePathSteps(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the client asks for %s", r.URL.Path)
	}))
	defer server.Close()
	for _, name := range []string{".", ".."} {
		_, err := New(server.URL, "", nil).Job(t.Context(), name)
		p, ok := errors.AsType[*Problem](err)
		if !ok || p.Status != http.StatusNotFound || !strings.Contains(p.Title, strconv.Quote(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
