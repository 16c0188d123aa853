package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// sparse creates a file of a size with some bytes in its middle and nothing else.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Skipf("skipped: this file system has no such file: %v", err)
	}
	if _, err := f.WriteAt([]byte("here"), size/2); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// A file with more parts than a manifest can list is refused before anything is read or allocated.
func TestPublish_RefusesAFileThatIsTooLargeUnread(t *testing.T) {
	t.Parallel()
	work := fast.Dir(t)
	must.Do(t, os.MkdirAll(filepath.Join(work, "out"), 0o700))
	sparse(t, filepath.Join(work, "out", "large"), folder.MostBytes+(1<<40))
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	s := Open(bucket, "")
	w, err := s.Claim(t.Context(), 1, "j.1")
	must.Do(t, err)
	_, _, published := w.Publish(t.Context(), filepath.Join(work, "out"), format.Meta{Step: 1})
	if published == nil || !strings.Contains(published.Error(), "holes") {
		t.Errorf("published: %v", published)
	}
	m, stats, err := s.Keep(t.Context(), confined.Folder{Path: work}, []string{"out"}, "j")
	if left := stats.Left.String(); err != nil || len(m.Files) != 1 || !strings.Contains(left, "out/large (") {
		t.Errorf("kept: %+v without %s, %v", m.Files, left, err)
	}
}
