package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"scrimp/internal/store/migrations"
)

// Migrate brings db to the newest schema and returns the versions that it applied. Each runs in its own transaction,
// together with the update of the version. Migrate copies a database that is not empty first.
func Migrate(ctx context.Context, db *sql.DB, path string) (applied []int, err error) {
	files, err := migrations.Of("sqlite")
	if err != nil {
		return nil, err
	}
	return migrate(ctx, db, path, migrations.FS, files)
}

func migrate(ctx context.Context, db *sql.DB, path string, texts fs.FS, files []string) (applied []int, err error) {
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, at TEXT "+
		"NOT NULL) STRICT"); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	var have int
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&have); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	if err := migrations.Readable(have, migrations.Before+len(files)); err != nil {
		return nil, err
	}
	if have > 0 && have < migrations.Before+len(files) {
		if err := copyAside(ctx, db, fmt.Sprintf("%s.schema-%d", path, have)); err != nil {
			return nil, fmt.Errorf("copy the database before its schema changes: %w: is its disk full?", err)
		}
	}
	have = max(have, migrations.Before)
	for i, name := range files[have-migrations.Before:] {
		version := have + i + 1
		if err := apply(ctx, db, texts, name, version); err != nil {
			return applied, fmt.Errorf("migrate to %d (%s): %w", version, name, err)
		}
		applied = append(applied, version)
	}
	return applied, nil
}

// copyAside writes a complete copy of the database, or none.
func copyAside(ctx context.Context, db *sql.DB, path string) error {
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // an incomplete copy
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", path+".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func apply(ctx context.Context, db *sql.DB, texts fs.FS, name string, version int) error {
	text, err := fs.ReadFile(texts, name)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO schema_version (version, at) VALUES (?, datetime('now'))",
		version); err != nil {
		return err
	}
	return tx.Commit()
}
