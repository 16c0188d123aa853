package folder

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/lib/confined"
	"scrimp/internal/test/fast"
)

// A capture copies a file that was written a moment ago, because its next change might not be visible.
func TestCapture_CopiesFreshFiles(t *testing.T) {
	before := tick
	tick = time.Hour // however slow this machine is
	t.Cleanup(func() { tick = before })
	dir := filepath.Join(fast.Dir(t), "c")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "fresh")
	if err := os.WriteFile(at, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := (&Capturer{Folder: confined.Folder{Path: dir}}).Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Copied != 3 || len(c.Files) != 1 {
		t.Fatalf("copied %d bytes of a file that was written just now, of %d files", c.Copied, len(c.Files))
	}
	stat, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(at, stat.ModTime(), stat.ModTime()); err != nil { // as if within one tick
		t.Fatal(err)
	}
	in, err := c.Files[0].open()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if string(got) != "one" || err != nil || Unchanged(c.Files) != nil {
		t.Errorf("the copy holds %q, %v", got, err)
	}
	if err := c.Discard(); err != nil {
		t.Fatal(err)
	}
}
