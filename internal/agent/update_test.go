package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/wire"
	"scrimp/internal/wire/api"
)

// ownHash returns the hash of this program, or "" if it cannot read it.
func ownHash() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// An agent whose build differs from the server's replaces itself in the same process and keeps its
// key; the new build runs the task.
func TestUpdate_StartsServersBuild(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	a := assign(t, "")
	a.Args, a.Command, a.Checkpoint = nil, "readlink /proc/$PPID/exe", api.Checkpoints{}
	server := newServer(t, a)
	server.order(func() {
		server.binary = slices.Concat(newer, []byte("of the next release")) // runs like the original
	})
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), exe)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "TEST_PROGRAM=agent", "SCRIMP_SERVER="+server.URL, "SCRIMP_TOKEN=bootstrap-token",
		"SCRIMP_INSTANCE_ID=i-1", "SCRIMP_MACHINE_DIR="+dir)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	server.order(func() {}) // synchronises with the reads below
	sum := sha256.Sum256(server.binary)
	if want := []string{ownHash(), hex.EncodeToString(sum[:])}; !slices.Equal(server.builds, want) {
		t.Errorf("the builds that pulled are %v, want %v", server.builds, want)
	}
	if got, want := string(server.log), filepath.Join(place.OwnFolder(dir), "scrimp")+"\n"; got != want {
		t.Errorf("the task's agent is %q, want %q\n%s", got, want, &said)
	}
	if server.registered.Key == "" || server.claims != 1 {
		t.Errorf("registered %+v, %d tasks given", server.registered, server.claims)
	}
}

// The agent does not start a program whose hash is not the server's build.
func TestUpdate_RefusesOtherBuild(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "print", "TEST_TAIL=x"))
	r.config.Build, r.config.Restart = "0123456789abcdef", func(string) error { t.Error("it was started"); return nil }
	server := r.server
	d := &daemon{Config: r.config, running: map[string]string{}}
	for build, want := range map[string]bool{"0123456789abcdef": false, "": false, "short": false, "fedcba9876543210": true} {
		if got := d.outdated(build); got != want {
			t.Errorf("build %q: %v, want %v", build, got, want)
		}
	}
	if d.running["a"] = "job-1"; d.outdated("fedcba9876543210") {
		t.Error("it updates itself while a task runs")
	}
	server.order(func() { server.binary = []byte("damaged") })
	sum := sha256.Sum256([]byte("whole"))
	if err := r.updateTo(hex.EncodeToString(sum[:])); err == nil {
		t.Error("a damaged program is taken")
	}
	if left, _ := filepath.Glob(filepath.Join(place.OwnFolder(r.config.MachineDir), "scrimp*")); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// updateTo makes a registered agent of the rig update itself to a build.
func (r *rig) updateTo(build string) error {
	if err := os.MkdirAll(place.OwnFolder(r.config.MachineDir), 0o700); err != nil {
		return err
	}
	id, err := openIdentity(r.config.MachineDir)
	if err != nil {
		return err
	}
	r.server.order(func() { r.server.key = id.public() })
	m, err := wire.DialMachine(r.server.URL, "i-1", id.key, "")
	if err != nil {
		return err
	}
	defer m.Close()
	return (&daemon{Config: r.config, machine: m}).update(r.t.Context(), build)
}
