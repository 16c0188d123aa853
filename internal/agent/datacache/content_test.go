package datacache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func contentCache(t *testing.T, bytes int64) *Cache {
	t.Helper()
	c, err := Open(t.TempDir(), "boot-1", Limits{Bytes: bytes,
		disk: func(string) (int64, int64, error) { return 1 << 40, 1 << 40, nil }}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// copied copies a content and returns what the file holds, and how often the source was opened.
func copied(t *testing.T, c *Cache, want, source []byte) (got []byte, hit bool, opened int, err error) {
	t.Helper()
	to, err := os.Create(filepath.Join(t.TempDir(), "to"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	sum := sha256.Sum256(want)
	hit, err = c.Copy(t.Context(), hex.EncodeToString(sum[:]), int64(len(want)), to,
		func(context.Context) (io.ReadCloser, error) {
			opened++
			return io.NopCloser(bytes.NewReader(source)), nil
		})
	got, readErr := os.ReadFile(to.Name())
	return got, hit, opened, errors.Join(err, readErr)
}

// A content is read once from its source, and never used if it is damaged: neither if the source sends something else,
// nor if something changes the file in the cache.
func TestCopy_ReadsOnceAndUsesNothingDamaged(t *testing.T) {
	t.Parallel()
	c, want := contentCache(t, 1<<20), []byte("the content")
	if _, _, _, err := copied(t, c, want, []byte("THE CONTENT")); !errors.Is(err, ErrChanged) {
		t.Errorf("another content: %v", err)
	}
	for i, wantHit := range []bool{false, true} {
		if got, hit, opened, err := copied(t, c, want, want); err != nil || !bytes.Equal(got, want) || hit != wantHit ||
			(opened == 0) != wantHit {
			t.Errorf("copy %d: %q, hit %v, opened %d times, %v", i, got, hit, opened, err)
		}
	}
	sum := sha256.Sum256(want)
	path := c.object(hex.EncodeToString(sum[:]))
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("the CONTENT"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, hit, opened, err := copied(t, c, want, want); err != nil || !bytes.Equal(got, want) || hit || opened != 1 {
		t.Errorf("after damage: %q, hit %v, opened %d times, %v", got, hit, opened, err)
	}
}

// A content that does not fit goes past the cache, and an added file evicts nothing.
func TestCopy_GoesPastAFullCache(t *testing.T) {
	t.Parallel()
	c := contentCache(t, 20)
	small, large := []byte("sixteen bytes ok"), bytes.Repeat([]byte("x"), 30)
	if _, _, _, err := copied(t, c, small, small); err != nil {
		t.Fatal(err)
	}
	if got, hit, _, err := copied(t, c, large, large); err != nil || !bytes.Equal(got, large) || hit {
		t.Errorf("%d bytes, hit %v, %v", len(got), hit, err)
	}
	if err := add(t, c, []byte("five!")); err != nil {
		t.Fatal(err)
	}
	if _, hit, _, err := copied(t, c, small, small); err != nil || !hit {
		t.Errorf("after adding: hit %v, %v", hit, err)
	}
}

// A file of the machine that was added is a hit.
func TestAdd_MakesAHit(t *testing.T) {
	t.Parallel()
	c, made := contentCache(t, 1<<20), []byte("what a stage made")
	if err := add(t, c, made); err != nil {
		t.Fatal(err)
	}
	if got, hit, opened, err := copied(t, c, made, nil); err != nil || !hit || opened != 0 || !bytes.Equal(got, made) {
		t.Errorf("%q, hit %v, opened %d times, %v", got, hit, opened, err)
	}
}

func add(t *testing.T, c *Cache, content []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return c.Add(t.Context(), f)
}
