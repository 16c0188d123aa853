package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/storetest"
	"scrimp/internal/test/storetest/suite"
)

var onSQLite = storetest.Backend{
	Name:  "sqlite",
	Place: fast.Dir,
	Open: func(_ context.Context, place string) (store.Store, error) {
		s, err := sqlite.Open(place)
		if err != nil {
			return nil, err // avoids a nil *SQLite in a Store
		}
		return s, nil
	},
	Exec: execSQLite,
	Full: fullFolder,
	Old:  oldSQLite,
	Size: sizeSQLite,
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	suite.Run(t, onSQLite)
}

func TestSQLiteOnAFullDisk(t *testing.T) {
	lane.Component(t, "host")
	suite.FullDisk(t, onSQLite)
}

// TestSQLiteAtLength appends more records, more often, than the other lanes have time for.
func TestSQLiteAtLength(t *testing.T) {
	lane.Nightly(t, "a hundred thousand records")
	suite.Run(t, onSQLite)
}

func execSQLite(t testing.TB, place, text string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(place, "scrimp.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), text)
	return err
}

// fullFolder mounts a file system of its own.
func fullFolder(t testing.TB, bytes int64) string {
	dir := t.TempDir()
	if err := syscall.Mount("scrimp", dir, "tmpfs", 0, "size="+strconv.FormatInt(bytes, 10)); err != nil {
		t.Skipf("the right to mount a tmpfs is not installed: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// oldSQLite creates a database as an early release left it.
func oldSQLite(t testing.TB) string {
	dir := fast.Dir(t)
	text, err := os.ReadFile(filepath.Join("testdata", "sqlite-1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if err := execSQLite(t, dir, string(text)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sizeSQLite returns the file's size after a checkpoint.
func sizeSQLite(t testing.TB, place string) int64 {
	must(t, execSQLite(t, place, "PRAGMA wal_checkpoint(TRUNCATE)"))
	info, err := os.Stat(filepath.Join(place, "scrimp.db"))
	must(t, err)
	return info.Size()
}
