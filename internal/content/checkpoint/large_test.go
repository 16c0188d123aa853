package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ours "scrimp/internal/content/blob"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// An object in a manifest's place is not read into memory beyond the limit, however large it is.
func TestRestore_RefusesAManifestThatIsTooLarge(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	for _, name := range []string{"manifests/000001-000001", "outputs/a/000001"} {
		path := filepath.Join(dir, "jobs", "a", name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(f.Truncate(1<<40), f.Close()) // zeros, which take no room
		}
		if err != nil {
			t.Skipf("skipped: this file system has no large files with holes: %v", err)
		}
	}
	b, err := ours.Open(t.Context(), "file://"+dir)
	must.Do(t, err)
	defer func() { _ = b.Close() }()
	s := Open(b, "jobs/a/")
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || !errors.Is(list[0].Damaged, ErrDamaged) || !strings.Contains(list[0].Damaged.Error(), "MiB") {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.Outputs(t.Context(), "a"); !errors.Is(err, ErrDamaged) {
		t.Errorf("outputs: %v", err)
	}
}
