package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
	"scrimp/internal/test/oidctest"
	"scrimp/internal/test/testbin"
)

// serve runs scrimp serve until the test ends, and returns its address.
func (h *home) serve(args ...string) string {
	h.t.Helper()
	cmd, out, errs := h.start(append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("serve: %v\n%s", err, errs)
		}
	})
	var at struct{ Address string }
	h.until("it serves", func() bool {
		_, err := os.Stat(filepath.Join(h.data, "server.sock"))
		return err == nil && json.Unmarshal([]byte(out.String()), &at) == nil
	})
	return at.Address
}

// user is a user with an own data folder.
type user struct {
	h   *home
	dir string
}

func (u user) try(input string, args ...string) (string, error) {
	cmd := u.h.command(args...)
	cmd.Stdin, cmd.Env = strings.NewReader(input), append(cmd.Env, "SCRIMP_TOKEN=", "SCRIMP_DATA="+u.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestServe_SeveralUsersShareServer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	address := h.serve()
	h.do("teams", "set", "vision")
	h.do("users", "set", "ann", "--grant", "vision=submitter")
	h.do("users", "set", "eve")
	login := func(name string) user {
		var made api.MadeToken
		must.Do(t, json.Unmarshal([]byte(h.out("tokens", "new", name, "--json")), &made))
		u := user{h, filepath.Join(h.dir, name)}
		if out, err := u.try(made.Text+"\n", "login", address, "--token-stdin"); err != nil || !strings.Contains(out, name) || strings.Contains(out, made.Text) {
			t.Fatalf("login: %v\n%s", err, out)
		}
		return u
	}
	ann, eve := login("ann"), login("eve")
	if s, err := os.Stat(filepath.Join(ann.dir, "login.json")); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("the token lies in %v, %v", s.Mode(), err)
	}
	h.write("a/job.yaml", "name: hers\ncommand: 'cat words; mkdir out; echo kept > out/result'\noutputs: [out]\n")
	h.write("a/words", "from her folder\n")
	if out, err := ann.try("", "run", "-y", "a/job.yaml"); err != nil || !strings.Contains(out, "succeeded") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := ann.try("", "logs", "hers"); err != nil || out != "from her folder\n" {
		t.Errorf("her log: %q, %v", out, err)
	}
	for range 2 { // repeatable
		if out, err := ann.try("", "get", "hers", "-o", filepath.Join(h.dir, "got")); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if b, err := os.ReadFile(filepath.Join(h.dir, "got", "out", "result")); err != nil || string(b) != "kept\n" {
		t.Errorf("her outputs: %q, %v", b, err)
	}
	for _, line := range []string{"status hers", "logs hers", "receipt hers", "get hers", "cancel hers", "users", "audit", "exec hers -- id"} {
		if out, err := eve.try("", strings.Fields(line)...); err == nil {
			t.Errorf("eve: scrimp %s:\n%s", line, out)
		}
	}
	if out := h.do("audit", "--json", "--user", "ann"); !strings.Contains(out, `"object":"hers"`) {
		t.Errorf("no submission on record:\n%s", out)
	}
	var kept, restored struct {
		End  int
		Hash string
	}
	if err := json.Unmarshal([]byte(h.out("backup", "b.tar.gz", "--json")), &kept); err != nil || kept.End == 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	if s, err := os.Stat(filepath.Join(h.dir, "b.tar.gz")); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("others may read the backup: %v, %v", s, err)
	}
	fresh := user{h, filepath.Join(h.dir, "fresh")}
	if out, err := fresh.try("", "restore", "b.tar.gz", "--json"); err != nil || json.Unmarshal([]byte(out), &restored) != nil || restored != kept {
		t.Errorf("restored %+v, were %+v, %v\n%s", restored, kept, err, out)
	}
	for _, name := range []string{"scrimp.db", "view.db"} { // with the usual umask
		if s, err := os.Stat(filepath.Join(h.dir, "fresh", name)); err == nil && s.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s of what is restored: %v", name, s.Mode())
		}
	}
	if out, err := fresh.try("", "restore", "b.tar.gz"); err == nil {
		t.Errorf("a store that is not empty is overwritten:\n%s", out)
	}
	if out, err := ann.try("", "backup", "c.tar.gz"); err == nil {
		t.Errorf("a submitter takes everybody's data:\n%s", out)
	}
	if out, err := ann.try("", "logout"); err != nil || !strings.Contains(out, "revoked") {
		t.Errorf("logout: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(ann.dir, "login.json")); err == nil {
		t.Error("the token is kept after logout")
	}
}

// If a cluster runs the server, its engines and its first token come from mounted files.
func TestServe_ReadsEnginesAndAdminFromFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := "scrimp_" + strings.Repeat("c3", 32)
	h.write("engines.yaml", "engines: [{name: given, kind: local}]\n")
	h.write("admin", token+"\n")
	address := h.serve("--engines", filepath.Join(h.dir, "engines.yaml"), "--admin-token", filepath.Join(h.dir, "admin"))
	admin := user{h, filepath.Join(h.dir, "laptop")}
	h.until("the admin's token is good", func() bool {
		_, err := admin.try(token+"\n", "login", address, "--token-stdin")
		return err == nil
	})
	for args, want := range map[string]string{"server status": "given", "users set ann --grant submitter": "ann"} {
		if out, err := admin.try("", strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("scrimp %s: %v\n%s", args, err, out)
		}
	}
	if out, err := h.try("engine", "rm", "given"); err == nil || !strings.Contains(out, "--engines") {
		t.Errorf("an engine of a file elsewhere is removed: %v\n%s", err, out)
	}
}

func TestServe_PublicAddressNeedsTLS(t *testing.T) {
	t.Parallel()
	h := user{&home{t: t, dir: t.TempDir(), bin: testbin.Local.Path(t)}, t.TempDir()}
	for _, args := range [][]string{{"--listen", "0.0.0.0:0"}, {"--listen", ":0"}, {"--listen", "[::]:0"}, {"--listen", "example.com:0"}} {
		out, err := h.try("", append([]string{"serve"}, args...)...)
		if err == nil || !strings.Contains(out, "--tls-cert") {
			t.Errorf("serve %v: %v\n%s", args, err, out)
		}
	}
}

// People sign in to a server that scrimp serve runs, by a provider that its flags name.
func TestServe_OffersTheProviderOfItsFlags(t *testing.T) {
	t.Parallel()
	h, at := newHome(t), oidctest.New(t)
	h.write("oidc.secret", oidctest.Secret)
	secret := filepath.Join(h.dir, "oidc.secret")
	flags := []string{"serve", "--listen", "127.0.0.1:0", "--oidc-issuer", at.URL, "--oidc-client", oidctest.Client,
		"--oidc-secret-file", secret}
	if out, err := h.try(flags...); err == nil || !strings.Contains(out, "chmod 600 "+secret) {
		t.Errorf("everybody can read the secret: %v\n%s", err, out)
	}
	must.Do(t, os.Chmod(secret, 0o600))
	flags[4] = at.URL + "/other"
	if out, err := h.try(flags...); err == nil || !strings.Contains(out, "--oidc-issuer "+at.URL+"/other") {
		t.Errorf("an issuer that is none: %v\n%s", err, out)
	}
	address := h.serve("--oidc-issuer", at.URL, "--oidc-client", oidctest.Client, "--oidc-secret-file",
		filepath.Join(h.dir, "oidc.secret"))
	h.do("teams", "set", "vision")
	if out := h.do("users", "set", "ann", "--grant", "vision=viewer", "--email", "ann@example.com"); !strings.Contains(out,
		"ann@example.com") {
		t.Errorf("the user has no address:\n%s", out)
	}
	for email, want := range map[string]string{"ann": "write NAME@HOST", "ANN@example.com": "user ann has the address"} {
		if out, err := h.try("users", "set", "bob", "--email", email); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", email, err, out)
		}
	}
	jar, err := cookiejar.New(nil)
	must.Do(t, err)
	got, err := (&http.Client{Jar: jar}).Get(address + "/oidc/sign-in?to=/jobs") // to the provider, and back
	must.Do(t, err)
	_ = got.Body.Close()
	if refresh := got.Header.Get("Refresh"); got.StatusCode != http.StatusOK || refresh != "0; url=/jobs" {
		t.Errorf("signed in: %d, %q", got.StatusCode, refresh)
	}
	if out := h.do("tokens"); !strings.Contains(out, "dashboard, by 127.0.0.1") {
		t.Errorf("the tokens are\n%s", out)
	}
	h.do("users", "set", "ann", "--email", "")
	if out := h.do("users", "--json"); strings.Contains(out, "example.com") {
		t.Errorf("the user keeps the address:\n%s", out)
	}
}

// scrimp serve takes over from the server that a command has started, and the program of its job runs on. A second
// scrimp serve is refused.
func TestServe_TakesOverFromServerThatCommandStarted(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", endless)
	h.do("run", "-y", "-d", "job.yaml")
	h.until("the program runs", func() bool { return h.job("endless").Phase == "running" })
	machine, before := h.job("endless").Machine, h.serverNow()
	h.serve()
	h.until("it answers", func() bool { return h.serverNow().PID > 0 })
	if now := h.serverNow(); now.PID == before.PID || !now.Shared || before.Shared {
		t.Errorf("before it process %d (shared %v), now %d (shared %v)", before.PID, before.Shared, now.PID, now.Shared)
	}
	out, err := h.try("serve", "--listen", "127.0.0.1:0")
	if err == nil || !strings.Contains(out, "another scrimp serve has") || !strings.Contains(out, "server stop") {
		t.Errorf("a second one: %v\n%s", err, out)
	}
	h.mustStop("endless")
	h.until("it is done", func() bool { return h.job("endless").Closed })
	if j := h.job("endless"); j.State != "succeeded" || j.Attempts != 1 || j.Machine != "" && j.Machine != machine {
		t.Errorf("%s on %s after %d attempts, want succeeded on %s after 1", j.State, j.Machine, j.Attempts, machine)
	}
	if out := h.do("logs", "endless"); out != "one\ntwo\n" {
		t.Errorf("its output: %q", out)
	}
}

// serverNow returns the description of the server of the data folder.
func (h *home) serverNow() (v api.Server) {
	h.t.Helper()
	must.Do(h.t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &v))
	return v
}
