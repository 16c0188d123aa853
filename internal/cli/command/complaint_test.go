package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestComplaint_NamesWhyServerDidNotStart(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	if got := complaint(log, sizeOf(log)); got != "" {
		t.Errorf("no log: %q", got)
	}
	old := "time=1 level=INFO msg=serving\nscrimp: an old trouble\n"
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"time=2 level=INFO msg=leaving\n", ""},
		{"scrimp: first\nscrimp: open x.db: schema 2\ntime=3 msg=x\n", "open x.db: schema 2"},
	} {
		if err := os.WriteFile(log, []byte(old+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := complaint(log, int64(len(old))); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
