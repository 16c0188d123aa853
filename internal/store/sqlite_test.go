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
	"scrimp/internal/store/storetest"
)

var sqlite = storetest.Backend{
	Name:  "sqlite",
	Place: func(t testing.TB) string { return t.TempDir() },
	Open: func(_ context.Context, place string) (store.Store, error) {
		s, err := store.Open(place)
		if err != nil {
			return nil, err // not a nil *SQLite in a Store
		}
		return s, nil
	},
	Exec:     execSQLite,
	Full:     fullFolder,
	Versions: 2,
	Old:      oldSQLite,
}

func TestSQLite(t *testing.T) { storetest.Run(t, sqlite) }

func execSQLite(t testing.TB, place, text string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(place, "scrimp.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), text)
	return err
}

// fullFolder mounts a file system of its own, which the test's user may not be allowed to.
func fullFolder(t testing.TB, bytes int64) string {
	dir := t.TempDir()
	if err := syscall.Mount("scrimp", dir, "tmpfs", 0, "size="+strconv.FormatInt(bytes, 10)); err != nil {
		storetest.Missing(t, "the right to mount a tmpfs ("+err.Error()+")")
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// oldSQLite makes a database with the schema that a release shipped, as files under testdata hold it.
func oldSQLite(t testing.TB, version int) string {
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", "sqlite-"+strconv.Itoa(version)+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	if err := execSQLite(t, dir, string(text)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Before the schema of a database that holds something changes, a copy is made,
// also where an earlier try was cut short; an empty or a new one is not copied.
func TestACopyIsKeptBeforeASchemaChanges(t *testing.T) {
	dir := oldSQLite(t, 1)
	aside := filepath.Join(dir, "scrimp.db.schema-1")
	for _, left := range []string{aside, aside + ".new"} {
		if err := os.WriteFile(left, []byte("cut short"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+aside+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var events, schema int
	if err := db.QueryRow("SELECT (SELECT count(*) FROM event), (SELECT max(version) FROM schema_version)").Scan(&events, &schema); err != nil {
		t.Fatal(err)
	}
	if events != storetest.OldLog || schema != 1 {
		t.Errorf("the copy holds %d events of schema %d, want %d of schema 1", events, schema, storetest.OldLog)
	}
	if _, err := os.Stat(aside + ".new"); !os.IsNotExist(err) {
		t.Errorf("%s.new is left: %v", aside, err)
	}
	again := t.TempDir()
	if s, err = store.Open(again); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if copies, _ := filepath.Glob(filepath.Join(again, "*.schema-*")); len(copies) > 0 {
		t.Errorf("a new database was copied: %q", copies)
	}
}
