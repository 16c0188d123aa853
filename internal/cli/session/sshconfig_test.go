package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// ssh passes the command to a shell; each word arrives as it was, whatever characters it has.
func TestConfigOf_QuotesEachWord(t *testing.T) {
	words := []string{"printf", `%s\n`, "it's", `a "b" $c`, "100%", serveSSH}
	text, err := configOf("lab", "ann", "/keys/100%", words)
	must.Do(t, err)
	_, line, _ := strings.Cut(text, "ProxyCommand ")
	out, err := exec.Command("sh", "-c", strings.ReplaceAll(strings.TrimSpace(line), "%%", "%")).Output()
	if want := strings.Join(words[2:], "\n") + "\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
	if !strings.Contains(text, "Host scrimp-lab\n  User ann\n  IdentityFile \"/keys/100%%\"\n") {
		t.Error(text)
	}
	if _, err := configOf("lab", "ann", "k", []string{"a\nProxyCommand evil"}); err == nil {
		t.Error("a word with a line break is accepted")
	}
}

func TestPublicKey_RefusesWhatIsNoPublicKey(t *testing.T) {
	dir := fast.Dir(t)
	file := filepath.Join(dir, "k.pub")
	for text, ok := range map[string]bool{"ssh-ed25519 AAAAC3Nz ann@home\n": true, "ssh-rsa AAAA": true, "ecdsa-sha2-nistp256 AAAA x": true,
		"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA": false, "ssh-ed25519 AAAA a\nssh-ed25519 BBBB b": false, "": false, "command=\"x\" ssh-rsa AAAA": false} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		private, public, err := publicKey(file)
		if (err == nil) != ok || ok && (private != filepath.Join(dir, "k") || public != strings.TrimSpace(text)) {
			t.Errorf("%q: %q, %q, %v", text, private, public, err)
		}
	}
	if _, _, err := publicKey(filepath.Join(dir, "none.pub")); err == nil || !strings.Contains(err.Error(), "read --key") {
		t.Error(err)
	}
}
