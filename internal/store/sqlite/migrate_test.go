package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"scrimp/internal/store"
	"scrimp/internal/store/migrations"
	"scrimp/internal/test/fast"
)

// Before a migration of a database that is not empty, Migrate makes a copy, even if an earlier attempt was cut short.
// It does not copy a new database, and does not apply a migration twice.
func TestMigrate_CopiesTheDatabaseFirst(t *testing.T) {
	dir := fast.Dir(t)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	record := store.Record{Seq: 1, Tenant: "default", Kind: "tick", Event: []byte("{}")}
	if err := s.Append(t.Context(), []store.Record{record}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if copies, _ := filepath.Glob(filepath.Join(dir, "*.schema-*")); len(copies) > 0 {
		t.Errorf("a new database was copied: %q", copies)
	}
	path := filepath.Join(dir, databaseName)
	now := migrations.Schema("sqlite")
	aside := fmt.Sprintf("%s.schema-%d", path, now)
	for _, left := range []string{aside, aside + ".new"} {
		if err := os.WriteFile(left, []byte("cut short"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	files, err := migrations.Of("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	texts := fstest.MapFS{"next.sql": {Data: []byte("ALTER TABLE meta ADD COLUMN next TEXT")}}
	for _, want := range [][]int{{now + 1}, nil} {
		applied, err := migrate(t.Context(), db, path, texts, append(files, "next.sql"))
		if err != nil || !slices.Equal(applied, want) {
			t.Errorf("applied %v (%v), want %v", applied, err, want)
		}
	}
	if _, err := db.Exec("UPDATE meta SET next = 'x'"); err != nil {
		t.Errorf("the schema did not change: %v", err)
	}
	kept, err := sql.Open("sqlite", "file:"+aside+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	var events, schema int
	if err := kept.QueryRow("SELECT (SELECT count(*) FROM event), (SELECT max(version) FROM schema_version)").Scan(&events, &schema); err != nil {
		t.Fatal(err)
	}
	if events != 1 || schema != now {
		t.Errorf("the copy holds %d events of schema %d, want 1 of schema %d", events, schema, now)
	}
	if _, err := os.Stat(aside + ".new"); !os.IsNotExist(err) {
		t.Errorf("%s.new is left: %v", aside, err)
	}
	if s, err := Open(dir); err == nil { // this program does not know that schema
		_ = s.Close()
		t.Error("a newer schema was opened")
	}
}

// An upgrade that changes the schema can be taken back: the older program refuses the newer database, and opens the copy
// from before the migration once it stands in its place, with every event up to the upgrade.
func TestMigrate_RollsBackToTheCopy(t *testing.T) {
	dir := fast.Dir(t)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	record := store.Record{Seq: 1, Tenant: "default", Kind: "tick", Event: []byte(`{"n":1}`)}
	if err := s.Append(t.Context(), []store.Record{record}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseName)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := migrations.Of("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	texts := fstest.MapFS{"next.sql": {Data: []byte("ALTER TABLE meta ADD COLUMN next TEXT")}}
	if _, err := migrate(t.Context(), db, path, texts, append(files, "next.sql")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "use a newer program") {
		t.Fatalf("the older program opens the newer database: %v", err)
	}
	for _, old := range []string{path, path + "-wal", path + "-shm", filepath.Join(dir, viewName)} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(fmt.Sprintf("%s.schema-%d", path, migrations.Schema("sqlite")), path); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	got, err := s.Records(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || string(got[0].Event) != `{"n":1}` {
		t.Errorf("the log is %+v", got)
	}
}
