package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
)

// ssh and scp reach the machine of a job through the entry that scrimp ssh-config prints; another key does not.
func TestSSHConfig_ReachesTheMachineOfAJob(t *testing.T) {
	lane.Component(t, "ssh")
	h := newHome(t)
	for _, name := range []string{"mine", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(h.dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	h.write("lab.yaml", "name: lab\ncommand: sleep 300\n")
	h.do("run", "-y", "-d", "lab.yaml")
	h.until("the program runs", func() bool { return h.job("lab").Phase == "running" })
	config := h.out("ssh-config", "lab", "--key", "mine.pub")
	h.write("config", config)
	h.write("wrong", strings.Replace(config, filepath.Join(h.dir, "mine"), filepath.Join(h.dir, "other"), 1))
	file := filepath.Join(h.dir, "config")
	if out, err := exec.Command("ssh", "-F", file, "scrimp-lab", "echo hello").Output(); err != nil || string(out) != "hello\n" {
		t.Errorf("%q, %v", out, err)
	}
	copied := filepath.Join(h.dir, "copied")
	if out, err := exec.Command("scp", "-q", "-F", file, h.bin, "scrimp-lab:"+copied).CombinedOutput(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	a, _ := os.ReadFile(h.bin)
	if b, err := os.ReadFile(copied); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the copied file differs: %d bytes of %d, %v", len(b), len(a), err)
	}
	if out, err := exec.Command("ssh", "-F", filepath.Join(h.dir, "wrong"), "-o", "BatchMode=yes", "scrimp-lab", "true").CombinedOutput(); err == nil {
		t.Errorf("another key is accepted: %s", out)
	}
	h.do("cancel", "lab")
}
