package command

import (
	"strings"
	"testing"
)

// An address without a scheme is answered with the one to write: a server on this machine speaks http.
func TestAddress_NamesTheSchemeToWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"127.0.0.1:17977": "write http://127.0.0.1:17977,", "localhost:7077/": "write http://localhost:7077,",
		"[::1]:9": "write http://[::1]:9,", "scrimp.example.com": "write https://scrimp.example.com,",
		"10.0.0.1:7077": "write https://10.0.0.1:7077,", "ftp://x": "write https://HOST", "": "write https://HOST",
	} {
		if _, err := ParseAddress(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"http://127.0.0.1:7077", "https://scrimp.example.com/"} {
		if u, err := ParseAddress(text); err != nil || u.String() != strings.TrimRight(text, "/") {
			t.Errorf("%q: %v, %v", text, u, err)
		}
	}
}
