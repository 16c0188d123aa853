package folder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// A sparse file costs its program nothing, so it must cost the agent nothing: the copy has the same holes.
func TestCapture_KeepsHoles(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	const size = 16<<20 + 7
	holes(t, from, size)
	in, err := os.Open(from)
	must.Do(t, err)
	defer in.Close()
	must.Do(t, copyFile(in, to, size))
	a, _ := os.ReadFile(from)
	b, _ := os.ReadFile(to)
	stat, err := os.Stat(to)
	if err != nil || !bytes.Equal(a, b) || len(a) != size {
		t.Errorf("%d bytes were copied from %d, %v", len(b), len(a), err)
	}
	if used := stat.Sys().(*syscall.Stat_t).Blocks * 512; used > 1<<20 {
		t.Errorf("the copy takes %d bytes of the disk", used)
	}
	if err := copyFile(in, filepath.Join(dir, "shorter"), size-1); err == nil {
		t.Error("a file that has grown is copied as if it had not")
	}
}

// A manifest has room for a limited number of files. Keep leaves out those beyond it, and the rest can be read.
func TestKeep_LeavesOutWhatTheManifestHasNoRoomFor(t *testing.T) {
	t.Parallel()
	files := make([]Source, 0, 60_000)
	for i := range cap(files) {
		files = append(files, Source{File: format.File{Path: fmt.Sprintf("out/%06d-%s", i, strings.Repeat("<", 200)), Mode: 0o600}})
	}
	var s scanner
	base := fast.Dir(t)
	must.Do(t, os.WriteFile(filepath.Join(base, "f"), nil, 0o600))
	for i := range files {
		files[i].from = filepath.Join(base, "f")
	}
	kept := s.keepable(files)
	m := format.Manifest{Form: format.Version, Name: "j/000001"}
	for _, f := range kept {
		m.Files = append(m.Files, f.File)
	}
	data, err := format.Seal(m)
	if err != nil || len(data) > format.MostBytes || len(data) < format.MostBytes/2 {
		t.Errorf("a manifest of %d bytes for %d files, %v", len(data), len(kept), err)
	}
	if left := s.left; len(left) != 1 || left[0].Count+len(kept) != cap(files) {
		t.Errorf("%d are kept, and left out are %v", len(kept), left)
	}
}

// holes creates a file of a size with some bytes in its middle and nothing else.
func holes(t *testing.T, path string, size int64) {
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
