package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// A mistyped database address must not bind the data folder to PostgreSQL.
func TestServe_UnreachableDatabaseDoesNotBindTheFolder(t *testing.T) {
	for _, db := range []string{"mysql://x", "postgres://nobody@127.0.0.1:1/x"} {
		dir := t.TempDir()
		if err := Serve(t.Context(), Options{Dir: dir, DB: db, Listen: "127.0.0.1:0",
			Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s is served", db)
		}
		if _, err := os.Stat(filepath.Join(dir, ElsewhereName)); err == nil {
			t.Errorf("%s: the folder says that its log lies in PostgreSQL", db)
		}
	}
}
