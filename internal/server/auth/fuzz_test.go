package auth

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Only tickets made with the key open anything, and only their own purpose.
func FuzzTicket(f *testing.F) {
	k := Tickets("key")
	made := k.For(AttemptTicket, "job.1/2")
	for _, token := range []string{made, made + "0", "attempt..", "attempt.job.1/2.", "bootstrap" + strings.TrimPrefix(made, "attempt"), ".", ""} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.Header["Authorization"] = []string{"Bearer " + token}
		for _, what := range []string{AttemptTicket, BootstrapTicket} {
			if attempt, ok := k.Shown(r, what); ok != (token == k.For(what, attempt)) {
				t.Errorf("%q opens %s of %q: %t", token, what, attempt, ok)
			}
		}
	})
}

// Any RemoteAddr can be parsed, and an IPv6 address maps to its network.
func FuzzSource(f *testing.F) {
	for _, from := range []string{"1.2.3.4:5", "[2001:db8::1]:5", "[fe80::1%eth0]:1", "", "x", "[::ffff:1.2.3.4]:5"} {
		f.Add(from)
	}
	f.Fuzz(func(t *testing.T, from string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.RemoteAddr = from
		if got := sourceOf(r); !strings.HasPrefix(got, "from ") {
			t.Errorf("%q comes %s", from, got)
		}
	})
}

func TestSourceOf_IPv6NetworkSharesOneLimit(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{"[2001:db8:1:2:3::1]:9": "from 2001:db8:1:2::/64", "[2001:db8:1:2:ffff::]:1": "from 2001:db8:1:2::/64",
		"1.2.3.4:5": "from 1.2.3.4", "[::ffff:1.2.3.4]:5": "from ::ffff:1.2.3.4"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.RemoteAddr = from
		if got := sourceOf(r); got != want {
			t.Errorf("%s is %s, want %s", from, got, want)
		}
	}
}
