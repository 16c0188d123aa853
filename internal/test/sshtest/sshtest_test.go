package sshtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// A machine starts although a process killed on it still holds the port for a moment.
func TestOn_WaitsForAPortStillHeld(t *testing.T) {
	lane.Component(t, "ssh")
	m := Start(t, 1, 88)
	m.Off(t, 1)
	log := filepath.Join(m.dir, "sshd1.log")
	said := func(what string) bool {
		text, _ := os.ReadFile(log)
		return strings.Contains(string(text), what)
	}
	must.Do(t, os.Remove(log))
	old := exec.Command("ip", "netns", "exec", m.space(1), "/usr/sbin/sshd", "-D", "-e", "-o", "PidFile=none", "-f",
		filepath.Join(m.dir, "sshd1.conf"))
	holds, err := os.Create(filepath.Join(m.dir, "held.log"))
	must.Do(t, err)
	old.Stderr = holds
	must.Do(t, old.Start())
	eventually.True(t, "the port is held", func() bool {
		text, _ := os.ReadFile(holds.Name())
		return strings.Contains(string(text), "listening")
	})
	on := make(chan struct{})
	go func() {
		defer close(on)
		m.On(t, 1)
	}()
	eventually.True(t, "sshd does not begin", func() bool { return said("Address already in use") })
	must.Do(t, old.Process.Kill())
	_ = old.Wait() // killed
	<-on
	if out, err := m.Run(t, 1, "echo on"); err != nil || !strings.Contains(out, "on") {
		t.Errorf("%v: %s", err, out)
	}
}
