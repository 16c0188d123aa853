package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
)

// A data folder that others could read, with its contents, is its owner's alone once a server has started; what the
// server writes is so from the first.
func TestDataFolder_IsAccessibleToItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, folder := range []string{dir, dir + "/blobs/jobs", dir + "/work/job", dir + "/market/machines"} {
		must.Do(t, os.MkdirAll(folder, 0o755))
	}
	for _, file := range []string{dir + "/secrets.key", dir + "/server.log", dir + "/blobs/jobs/b"} {
		must.Do(t, os.WriteFile(file, []byte(strings.Repeat("0", 64)), 0o644))
	}
	for _, at := range []string{dir, dir + "/blobs", dir + "/work", dir + "/market"} {
		if err := os.Chmod(at, 0o755); err != nil { // whatever the process's own mask
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	o := Options{Dir: dir, Version: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Ready: func(string) {}}
	go func() { served <- Serve(ctx, o) }()
	<-served // there is no engine to open, and by then it has created its files
	cancel()
	w := newWorld(t, func(o *Options) { o.Dir = dir })
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	w.ask("POST", "/v1/work", ann, "some bytes")
	w.ask("POST", "/v1/jobs", ann, `{"secrets":{"A":"x"},"spec":{"name":"j","command":"true","secrets":["A"]}}`)
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e == nil {
			return err
		}
		at, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // a temporary file of the database
		}
		rights := fs.FileMode(others)
		if path == dir || path == filepath.Join(dir, "market") {
			rights = 0o066 // traversable, not readable
		}
		if seen++; at.Mode().Perm()&rights != 0 {
			t.Errorf("%s has the mode %v", path, at.Mode())
		}
		if e.IsDir() && path != dir { // nobody reaches the contents of a closed folder
			for _, below := range []string{"blobs", "work", "market"} {
				if e.Name() == below {
					return fs.SkipDir
				}
			}
		}
		return nil
	})
	if seen < 10 {
		t.Errorf("%d files and folders were looked at", seen)
	}
}

// If this user cannot close a folder, the error names the command that does.
func TestDataFolder_ThatCannotBeClosedIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o755))
	err := restrictFolder(dir, func(string, fs.FileMode) error { return fs.ErrPermission })
	if err == nil || !strings.Contains(err.Error(), "chmod -R go-rwx "+dir) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a folder that cannot be changed: %v", err)
	}
}
