package weburl_test

import (
	"testing"

	"scrimp/internal/lib/weburl"
)

func TestParse_TakesHTTPWithAHostAlone(t *testing.T) {
	for text, want := range map[string]bool{"http://127.0.0.1:4566": true, "https://user@host/path?q=1": true,
		"ftp://host": false, "https:///path": false, "host": false, "http://%zz": false, "": false} {
		if u, ok := weburl.Parse(text); ok != want || ok && u.String() != text {
			t.Errorf("%q is %v, %v, want %v", text, u, ok, want)
		}
	}
}
