package openssh

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// A job of the local market runs as the server's user, and can read the environment of each ssh
// process of the server.
func TestSSH_HasNoPasswordsInEnvironment(t *testing.T) {
	for _, name := range []string{"PGPASSWORD", "DATABASE_URL", "SCRIMP_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"} {
		t.Setenv(name, "of-the-shell")
	}
	bin := t.TempDir()
	for _, name := range []string{"ssh", "ssh-keygen"} { // both only record their environment
		script := "#!/bin/sh\nenv >> " + bin + "/environ\necho Host key verification failed >&2\nfor a; do case $a in " +
			"UserKnownHostsFile=/*) echo key > ${a#*=} 2>/dev/null;; esac; done\n" +
			"[ ${0##*/} = ssh-keygen ]\n"
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := &Host{Target: "m1", Name: "m1", Engine: "rack", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if _, err := o.Dial(t.Context()); err == nil {
		t.Error("no machine is there, and it is reached")
	}
	if o.Ping(t.Context()) {
		t.Error("no machine is there, and it answers")
	}
	if key, err := o.Unknown(t.Context()); err != nil || key == nil {
		t.Errorf("the machine's key: %v, %v", key, err)
	}
	text, err := os.ReadFile(filepath.Join(bin, "environ"))
	must.Do(t, err)
	const starts = 6 // -G, probe, ping, the key's absence, the key, its fingerprint
	if n := strings.Count(string(text), "SSH_AUTH_SOCK=of-the-shell"); n != starts {
		t.Errorf("the user's keys reach %d of %d programs", n, starts)
	}
	for _, name := range []string{"PGPASSWORD", "DATABASE_URL", "SCRIMP_TOKEN", "AWS_SECRET_ACCESS_KEY"} {
		if n := strings.Count(string(text), name+"=of-the-shell"); n > 0 {
			t.Errorf("%s reaches %d programs", name, n)
		}
	}
}
