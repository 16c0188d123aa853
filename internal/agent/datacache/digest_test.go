package datacache

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// The digest of an input depends on names and contents alone, not on where the files lie or whether the cache had them.
func TestBring_DigestIdentifiesContent(t *testing.T) {
	dir := fast.Dir(t)
	c := opened(t, filepath.Join(dir, "cache"), "boot", ample)
	defer closed(t, c)
	digest := func(files map[string]string) string {
		t.Helper()
		r, h, err := c.Bring(t.Context(), &memory{files: files}, nil, filepath.Join(dir, "in"))
		must.Do(t, err)
		h.Release()
		return r.Digest
	}
	files := map[string]string{"a": "alpha", "sub/b": "beta"}
	first := digest(files)
	if again := digest(files); again != first {
		t.Errorf("digests of one content: %s and %s", first, again)
	}
	for _, other := range []map[string]string{{"a": "alpha", "sub/c": "beta"}, {"a": "alphA", "sub/b": "beta"},
		{"a": "alpha", "sub/b": "beta", "c": ""}} {
		if digest(other) == first {
			t.Errorf("%v has the digest of %v", other, files)
		}
	}
	if got, want := digest(map[string]string{"a": "alpha"}), fmt.Sprintf("%x", sha256.Sum256([]byte("alpha"))); got != want {
		t.Errorf("a single file has the digest %s, want its SHA-256 %s", got, want)
	}
}
