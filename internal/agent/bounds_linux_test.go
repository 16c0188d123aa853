package agent

import (
	"strings"
	"testing"
)

// An agent takes another program only from whom it can tell that it is its server: over plain HTTP whoever is between
// sends both the program and the hash that it is held against.
func TestAnAgentTakesNoProgramThatSomebodyBetweenMayHaveChanged(t *testing.T) {
	t.Parallel()
	for server, takes := range map[string]bool{
		"https://scrimp.example:7077": true, "unix:///run/server.sock": true, "http://127.0.0.1:7077": true,
		"http://[::1]:7077": true, "http://localhost:7077": true, "http://10.0.0.5:7077": false, "http://scrimp.internal": false,
		"http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "%": false,
	} {
		if unaltered(server) != takes {
			t.Errorf("%s: it takes a program: %v", server, !takes)
		}
	}
	d := &daemon{Config: Config{Server: "http://10.0.0.5:7077", MachineDir: t.TempDir()}} // it would ask through machine, which is nil
	if err := d.update(t.Context(), strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("update: %v", err)
	}
}
