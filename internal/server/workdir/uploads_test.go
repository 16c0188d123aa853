package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir/flow"
	"scrimp/internal/test/must"
)

// An upload is cut off once only the log's reserve is left on the disk.
func TestUploads_LeaveTheLogItsRoom(t *testing.T) {
	t.Parallel()
	free := int64(disk.LogReserve)
	r := &flow.Roomy{Room: func() (disk.Left, bool) { return disk.Free(free), true }, From: strings.NewReader("some text")}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	free--
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a folder that is on its way goes on: %v", err)
	}
}

// Uploads of a user are limited by disk usage and number of files, not only by bytes.
func TestUploads_AreLimitedByDiskAndFiles(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Ref{
		"bytes": {Bytes: mostDisk / 2, Files: 1},
		"disk":  {Bytes: 1 << 20, Disk: mostDisk / 2, Files: 1},
		"files": {Bytes: 1 << 20, Disk: 1 << 20, Files: mostFiles / 2},
	} {
		s := openStore(t)
		u := NewUploads(s)
		r.Tree = strings.Repeat("0", 64)
		for _, sent := range []string{"a", "b", "c"} {
			must.Do(t, s.name(filepath.Join(u.of("ann"), sent), r))
		}
		u.forget(u.of("ann"))
		if left, err := os.ReadDir(u.of("ann")); err != nil || len(left) != 2 {
			t.Errorf("%s: %d are kept, %v", name, len(left), err)
		}
	}
}
