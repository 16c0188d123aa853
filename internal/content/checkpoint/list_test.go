package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"gocloud.dev/blob/memblob"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// List counts the files of each checkpoint and keeps no file lists: of many large manifests only one is in memory at
// a time.
func TestList_HoldsOneManifestInMemory(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	s := Open(bucket, "")
	w, err := s.Claim(t.Context(), 1, "j.1")
	must.Do(t, err)
	for step := range 3 {
		must.Do(t, os.WriteFile(filepath.Join(dir, string(rune('a'+step))), []byte("state"), 0o600))
		if _, _, err := w.Publish(t.Context(), dir, format.Meta{Step: int64(step + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, l := range list {
		if l.Step != int64(3-i) || l.Count != 3-i || l.Files != nil {
			t.Errorf("%d is of step %d, with %d files, of which it keeps %d", i, l.Step, l.Count, len(l.Files))
		}
	}
	if m, err := s.Find(t.Context(), ""); err != nil || m.Step != 3 || len(m.Files) != 3 {
		t.Errorf("the newest is %+v, %v", m, err)
	}
}
