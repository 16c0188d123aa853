package openapi

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"testing"
)

// The document is built once for all requests, and a client with its tag gets no body.
func TestDocument_IsBuiltOnce(t *testing.T) {
	t.Parallel()
	made := 0
	d := &Document{Make: func() []byte { made++; return []byte(`{"openapi":"3.1.0"}`) }}
	ask := func(header, value string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/v1/openapi.json", nil), httptest.NewRecorder()
		r.Header.Set(header, value)
		d.ServeHTTP(w, r)
		return w
	}
	for header, values := range map[string][]string{"Accept": {""}, "Accept-Encoding": {"identity", "br, gzip;q=0", "gzip; q=0.0"}} {
		for _, v := range values {
			if w := ask(header, v); w.Code != 200 || w.Body.String() != `{"openapi":"3.1.0"}` || w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s %s: %d %q %v", header, v, w.Code, w.Body, w.Header())
			}
		}
	}
	for _, v := range []string{"gzip", "br, gzip;q=0.5"} {
		w := ask("Accept-Encoding", v)
		z, err := gzip.NewReader(w.Body)
		if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", v, err, w.Header())
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != `{"openapi":"3.1.0"}` {
			t.Errorf("%s: %q, %v", v, text, err)
		}
	}
	tag := ask("Accept", "").Header().Get("ETag")
	if w := ask("If-None-Match", tag); w.Code != 304 || w.Body.Len() > 0 || tag == "" {
		t.Errorf("who has it: %d, %d bytes, tag %q", w.Code, w.Body.Len(), tag)
	}
	if made != 1 {
		t.Errorf("it is made %d times", made)
	}
}
