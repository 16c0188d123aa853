package folderblob_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"

	"gocloud.dev/gcerrors"
)

// A full disk yields an error that names the folder, and no partial blob is visible.
func TestFolder_NamesAFullDisk(t *testing.T) {
	lane.Component(t, "host")
	dir := t.TempDir()
	if err := syscall.Mount("scrimp", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("the right to mount a tmpfs is not installed: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	b := openFolder(t, dir)
	must.Do(t, b.WriteAll(t.Context(), "deep/kept", []byte("old"), nil))
	for _, key := range []string{"deep/new", "deep/kept"} {
		err := b.WriteAll(t.Context(), key, make([]byte, 2<<20), nil)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), filepath.Join(dir, "deep")) || !strings.Contains(err.Error(), "free space") {
			t.Errorf("write %s on a full disk: %v; want the folder, the cause and the mend", key, err)
		}
		if code := gcerrors.Code(err); code != gcerrors.ResourceExhausted {
			t.Errorf("code = %v", code)
		}
	}
	if data, err := b.ReadAll(t.Context(), "deep/kept"); err != nil || string(data) != "old" {
		t.Errorf("after a failed replacement: %q, %v", data, err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"deep/kept"}) {
		t.Errorf("files left: %q", got)
	}
	if err := b.WriteAll(t.Context(), "deep/new", []byte("room"), nil); err != nil {
		t.Errorf("space is not given back: %v", err)
	}
}
