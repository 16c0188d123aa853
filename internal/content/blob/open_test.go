package blob_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// A wrong address yields an error that says what to write.
func TestOpen_RefusesWrongAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, says string }{
		{"", "file://, s3://, gs:// or azblob://"},
		{"az://container", "file://, s3://, gs:// or azblob://"},
		{"/plain/path", "file://, s3://, gs:// or azblob://"},
		{"gs://bucket/path", "write ?prefix=path"},
		{"azblob://container/path", "write ?prefix=path"},
		{"file://dir/x", "three slashes"},
		{"file:///x?region=y", "no parameter but prefix"},
		{"file:relative", "absolute"},
		{"s3://user:hunter2@bucket", "credentials"},
		{"%", "store"},
	} {
		b, err := blob.Open(t.Context(), c.address)
		if b != nil || !errors.Is(err, blob.ErrURL) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("open %q: %v; want it to say %q", c.address, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open %q tells the secret: %v", c.address, err)
		}
	}
}

// Open creates a folder, also a nested one, and names one that cannot be written.
func TestOpen_CreatesAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(fast.Dir(t), "a b", "c")
	b, err := blob.Open(t.Context(), "file://"+strings.ReplaceAll(dir, " ", "%20")+"?prefix=p/q")
	must.Do(t, err)
	defer b.Close()
	must.Do(t, b.WriteAll(t.Context(), "k", []byte("v"), nil))
	if data, err := os.ReadFile(filepath.Join(dir, "p", "q", "k")); err != nil || string(data) != "v" {
		t.Errorf("%q, %v", data, err)
	}

	file := filepath.Join(fast.Dir(t), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if _, err := blob.Open(t.Context(), "file://"+file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("open a file as folder: %v", err)
	}
}
