package tarball_test

import (
	"archive/tar"
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

	"scrimp/internal/content/tarball"
	"scrimp/internal/test/must"
)

// Light leaves out large contents alone; the receiver fills them in after it has read all else, and gets the same folder.
func TestLight_IsFilledAfterTheRest(t *testing.T) {
	large, small := bytes.Repeat([]byte("x"), tarball.LeastLight), []byte("small")
	at := time.Unix(1_700_000_000, 0)
	folder := tarball.Of("tag", func(yield func(tarball.Entry, error) bool) {
		for _, f := range []struct {
			name    string
			content []byte
		}{{"a", large}, {"b", small}} {
			sum := sha256.Sum256(f.content)
			h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o750, Size: int64(len(f.content)), ModTime: at,
				Format: tar.FormatPAX}
			if !yield(tarball.Entry{Header: h, Sum: hex.EncodeToString(sum[:]),
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.content)), nil }}, nil) {
				return
			}
		}
	})
	light := folder.Light()
	var b bytes.Buffer
	_, err := light.Write(t.Context(), &b, 0)
	must.Do(t, err)
	if b.Len() >= tarball.LeastLight || light.Tag() == folder.Tag() {
		t.Errorf("%d bytes with the tag %s", b.Len(), light.Tag())
	}
	if err := tarball.Unpack(t.Context(), bytes.NewReader(b.Bytes()), t.TempDir()); err == nil {
		t.Error("Unpack leaves an empty file where a content is missing")
	}
	to, from := t.TempDir(), bytes.NewReader(b.Bytes())
	must.Do(t, tarball.UnpackLight(t.Context(), from, to, func(ctx context.Context, sum string, size int64, f *os.File) error {
		e, there, err := folder.Content(sum)
		if err != nil || !there || from.Len() > 0 || size != int64(len(large)) {
			t.Errorf("%v, there %v, %d bytes are left to read, size %d", err, there, from.Len(), size)
			return err
		}
		_, err = f.Write(large[:100])
		_, more := e.WriteContent(ctx, f, 100)
		return errors.Join(err, more)
	}))
	for name, want := range map[string][]byte{"a": large, "b": small} {
		got, err := os.ReadFile(filepath.Join(to, name))
		info, statErr := os.Stat(filepath.Join(to, name))
		if err != nil || statErr != nil || !bytes.Equal(got, want) || info.Mode().Perm() != 0o750 || !info.ModTime().Equal(at) {
			t.Errorf("%s: %d bytes, %v, %v", name, len(got), info, errors.Join(err, statErr))
		}
	}
	if _, there, err := folder.Content("other"); there || err != nil {
		t.Errorf("an unknown content: %v, %v", there, err)
	}
}
