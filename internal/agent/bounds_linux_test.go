package agent

import (
	"strings"
	"testing"
)

// An agent updates itself only over a connection that nobody can alter: over plain HTTP an attacker
// could replace both the program and its hash.
func TestUpdate_RefusesPlainHTTP(t *testing.T) {
	t.Parallel()
	for server, takes := range map[string]bool{
		"https://scrimp.example:7077": true, "unix:///run/server.sock": true, "http://127.0.0.1:7077": true,
		"http://[::1]:7077": true, "http://localhost:7077": true, "http://10.0.0.5:7077": false, "http://scrimp.internal": false,
		"http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "%": false,
	} {
		if authenticated(server) != takes {
			t.Errorf("%s: it takes a program: %v", server, !takes)
		}
	}
	d := &daemon{Config: Config{Server: "http://10.0.0.5:7077", MachineDir: t.TempDir()}} // update would use machine, which is nil
	if err := d.update(t.Context(), strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("update: %v", err)
	}
}
