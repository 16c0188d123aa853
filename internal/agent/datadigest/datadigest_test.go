package datadigest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// The digest of a folder is that of the same files as an input.
func TestFolder_IsTheDigestOfTheInput(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	in := filepath.Join(dir, "in")
	cache, err := datacache.Open(filepath.Join(dir, "cache"), "boot", datacache.Limits{Bytes: 1 << 40}, time.Now)
	must.Do(t, err)
	for i := range 30 {
		path := filepath.Join(in, fmt.Sprint(i%3), fmt.Sprint(i))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, make([]byte, i*i*i), 0o600))
		src, err := datacache.OpenFolder(in)
		must.Do(t, err)
		r, h, err := cache.Bring(t.Context(), src, nil, filepath.Join(dir, "out"))
		must.Do(t, err)
		h.Release()
		must.Do(t, src.Close())
		if got, err := Folder(t.Context(), in); err != nil || got != r.Digest {
			t.Fatalf("of %d files: %s, %v, want %s", i+1, got, err, r.Digest)
		}
	}
	must.Do(t, cache.Close())
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if got, err := Folder(stopped, in); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %q, %v", got, err)
	}
}

// BenchmarkFolder hashes 100,000 files of 1 to 10 KB whose names it does not know. plain is one goroutine that does no
// more than hash the same bytes in memory.
func BenchmarkFolder(b *testing.B) {
	dir := fast.Dir(b)
	const count = 100_000
	text := make([]byte, 10_000)
	size := func(i int) int { return 1000 + i*7919%9001 }
	for i := range count {
		in := filepath.Join(dir, fmt.Sprint(i%100))
		if i < 100 {
			must.Do(b, os.Mkdir(in, 0o700))
		}
		must.Do(b, os.WriteFile(filepath.Join(in, fmt.Sprint(i)), text[:size(i)], 0o600))
	}
	begin := time.Now()
	for i := range count {
		_ = sha256.Sum256(text[:size(i)])
	}
	plain := time.Since(begin)
	for b.Loop() {
		_, err := Folder(b.Context(), dir)
		must.Do(b, err)
	}
	b.ReportMetric(plain.Seconds(), "plain-s")
}
