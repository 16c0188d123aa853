package cli_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"

	_ "modernc.org/sqlite" // the driver
)

// A data folder of an older release goes on with its jobs, its costs and its users. It can be given back to the older
// release by the steps of docs/operate.md: nothing that the older release wrote is lost, and it knows the form of all
// that was added.
func TestUpgrade_OldDataGoesOnAndCanBeRolledBack(t *testing.T) {
	lane.Component(t, "whole")
	t.Parallel()
	h := newHome(t)
	text, err := os.ReadFile(filepath.Join("testdata", "upgrade", "schema-3.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.data, 0o700); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(h.data, "scrimp.db")
	old := openDatabase(t, database)
	if _, err := old.ExecContext(t.Context(), string(text)); err != nil {
		t.Fatal(err)
	}
	before, form := rowsOf(t, old), formOf(t, old)
	_ = old.Close()

	jobs := h.do("jobs")
	for _, part := range []string{"first", "second", "owner", "zoe", "$0.000506"} {
		if !strings.Contains(jobs, part) {
			t.Errorf("after the upgrade, the jobs lack %s:\n%s", part, jobs)
		}
	}
	h.write("third.yaml", "name: third\nteam: vision\ncommand: 'true'\n")
	h.do("run", "-y", "third.yaml")
	h.do("users", "set", "yan", "--grant", "vision=submitter")
	h.do("users", "erase", "zoe", "--yes")
	if out := h.do("costs", "--by", "user"); !strings.Contains(out, "erased-1") || strings.Contains(out, "zoe") {
		t.Errorf("the costs by user are\n%s", out)
	}
	h.do("ledger", "verify")
	h.do("server", "stop", "--now")

	copies, err := filepath.Glob(database + ".schema-*")
	if err != nil {
		t.Fatal(err)
	}
	if len(copies) == 0 { // the schema is the old one: the older release opens the database itself
		db := openDatabase(t, database)
		if now := formOf(t, db); now != form {
			t.Errorf("the form of the database has changed without a copy of the old one:\n%s\nwas\n%s", now, form)
		}
		if now := rowsOf(t, db); len(now) <= len(before) || !slices.Equal(now[:len(before)], before) {
			t.Error("what the older release wrote is not the beginning of the log")
		}
		unknown := ""
		if err := db.QueryRowContext(t.Context(), `SELECT coalesce(group_concat(DISTINCT kind), '') FROM event
			WHERE event NOT LIKE ',"actor":%' AND event NOT LIKE ',"cause":%' AND event NOT LIKE ',"body":%'`).
			Scan(&unknown); err != nil || unknown != "" {
			t.Errorf("events of a form that the older release cannot read: %s, %v", unknown, err)
		}
		_ = db.Close()
	}
	for _, to := range copies {
		for _, name := range []string{"scrimp.db", "view.db"} {
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(filepath.Join(h.data, name+end)) // a closed database has no -wal
			}
		}
		if err := os.Rename(to, database); err != nil {
			t.Fatal(err)
		}
		db := openDatabase(t, database)
		if now := rowsOf(t, db); !slices.Equal(now, before) || formOf(t, db) != form {
			t.Error("the copy is not the database as it was before the upgrade")
		}
		_ = db.Close()
	}
	if jobs := h.do("jobs"); !strings.Contains(jobs, "first") || !strings.Contains(jobs, "second") {
		t.Errorf("a server that starts after the roll-back has the jobs\n%s", jobs)
	}
}

func openDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rowsOf returns the events with their facts, in order.
func rowsOf(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return columnOf(t, db, "SELECT seq || kind || key || event || facts FROM event ORDER BY seq")
}

// formOf returns the schema and its number.
func formOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.Join(append(columnOf(t, db, "SELECT max(version) FROM schema_version"),
		columnOf(t, db, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")...), "\n")
}

func columnOf(t *testing.T, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
