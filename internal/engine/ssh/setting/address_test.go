package setting

import (
	"strings"
	"testing"
)

// An address that ssh would read in another way is refused with what is wrong in it.
func TestWrongAddress_NamesTheFault(t *testing.T) {
	for address, want := range map[string]string{
		"gpu1": "", "ann@gpu1": "", "ann@127.0.0.1": "", "ssh://ann@gpu1:2222": "", "ssh://127.0.0.1:2222": "", "ann@[::1]": "",
		"ann@fe80::1": "", "user@": "the host is missing", "ssh://": "the host is missing", "@gpu1": "the user before @ is missing",
		"ssh://a@b/c": "no path", "ssh://a@b/": "", "ssh://a@b:70000": "1 to 65535", "ssh://a@b:x": "1 to 65535",
		"ssh://a@[fe80::1]:22": "", "a@b@c": "two @", "127.0.0.1:2222": "write ssh://127.0.0.1:2222", "ann@gpu1:22": "write ssh://ann@gpu1:22",
	} {
		got := wrongAddress(address)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
