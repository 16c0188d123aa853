package folder

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/lib/confined"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// A capture copies a file that was written a moment ago, because its next change might not be visible.
func TestCapture_CopiesFreshFiles(t *testing.T) {
	before := tick
	tick = time.Hour // however slow this machine is
	t.Cleanup(func() { tick = before })
	dir := filepath.Join(fast.Dir(t), "c")
	must.Do(t, os.MkdirAll(dir, 0o700))
	at := filepath.Join(dir, "fresh")
	must.Do(t, os.WriteFile(at, []byte("one"), 0o600))
	c, err := (&Capturer{Folder: confined.Folder{Path: dir}}).Capture(t.Context())
	must.Do(t, err)
	if c.Copied != 3 || len(c.Files) != 1 {
		t.Fatalf("copied %d bytes of a file that was written just now, of %d files", c.Copied, len(c.Files))
	}
	stat, err := os.Stat(at)
	must.Do(t, err)
	must.Do(t, os.WriteFile(at, []byte("two"), 0o600))
	if err := os.Chtimes(at, stat.ModTime(), stat.ModTime()); err != nil { // as if within one tick
		t.Fatal(err)
	}
	in, err := c.Files[0].open()
	must.Do(t, err)
	got, err := io.ReadAll(in)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if string(got) != "one" || err != nil || Unchanged(c.Files) != nil {
		t.Errorf("the copy holds %q, %v", got, err)
	}
	must.Do(t, c.Discard())
}
