package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// One user works with several servers: each login has a name, --server selects it, and the data folder's own server stays
// the standard one. A name that nobody is logged in to is an error, never another server.
func TestLogin_NamedServers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	address := h.serve()
	h.do("teams", "set", "vision")
	h.do("users", "set", "ann", "--grant", "vision=submitter")
	var made api.MadeToken
	must.Do(t, json.Unmarshal([]byte(h.out("tokens", "new", "ann", "--json")), &made))
	u := user{h, filepath.Join(h.dir, "ann")}
	if out, err := u.try(made.Text+"\n", "login", address, "--as", "prod", "--token-stdin"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s, err := os.Stat(filepath.Join(u.dir, "login-prod.json")); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("the token lies in %v, %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(u.dir, "login.json")); err == nil {
		t.Error("a named login is used by all commands")
	}
	out, err := u.try("scrimp_"+strings.Repeat("0", 64)+"\n", "login", address, "--as", "other", "--token-stdin")
	if err == nil || !strings.Contains(out, "does not accept this token") || strings.Contains(out, "scrimp login") {
		t.Errorf("a wrong token: %v, %s", err, out)
	}
	for _, c := range []struct {
		args, want string
		fails      bool
	}{
		{"jobs --server prod", "No jobs", false},
		{"jobs --server prdo", "you are not logged in to it: scrimp login URL --as prdo (logins: prod, local)", true},
		{"jobs --server ../x", "names no server", true},
		{"login " + address + " --as local", "names no server", true},
		{"server status --server local", "No server runs", false},
		{"logout", "not logged in", true},
		{"logout --server prod", "Logged out", false},
		{"jobs --server prod", "not logged in to it", true},
	} {
		out, err := u.try(made.Text+"\n", strings.Fields(c.args)...)
		if (err != nil) != c.fails || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s, want %q", c.args, err, out, c.want)
		}
	}
}
