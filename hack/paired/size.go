package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// LogSize is the size of a data folder's log.
type LogSize struct {
	Records int64            // bytes of the rows themselves, in all tables of the log
	Used    int64            // bytes in used pages, including indexes and row headers
	File    int64            // size of the database file after a checkpoint of its write-ahead log
	Tables  map[string]int64 // Records by table
}

// notLog reports whether a table is not part of the log: it can be rebuilt from it, or does not grow with it. Every
// other table counts, whatever its name.
func notLog(table string) bool {
	return strings.HasPrefix(table, "snapshot") || strings.HasPrefix(table, "sqlite_") ||
		table == "meta" || table == "schema_version"
}

// measureLog reads the database of a running or ended server.
func measureLog(ctx context.Context, path string, ended bool) (s LogSize, err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return s, err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	if ended {
		if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return s, fmt.Errorf("fold the write-ahead log of %s: %w", path, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return s, err
		}
		s.File = info.Size()
	}
	rows, err := db.QueryContext(ctx, `SELECT m.tbl_name, m.type, sum(d.payload), sum(d.pgsize - d.unused)
		FROM dbstat d JOIN sqlite_master m ON m.name = d.name GROUP BY 1, 2`)
	if err != nil {
		return s, fmt.Errorf("measure %s: %w", path, err)
	}
	defer func() { _ = rows.Close() }()
	s.Tables = map[string]int64{}
	for rows.Next() {
		var table, kind string
		var payload, used int64
		if err := rows.Scan(&table, &kind, &payload, &used); err != nil {
			return s, err
		}
		if notLog(table) {
			continue
		}
		s.Used += used
		if kind == "table" {
			s.Records += payload
			s.Tables[table] += payload
		}
	}
	return s, rows.Err()
}

// tables lists the tables, the largest first.
func (s LogSize) tables() string {
	type table struct {
		name  string
		bytes int64
	}
	var list []table
	for name, n := range s.Tables {
		list = append(list, table{name, n})
	}
	slices.SortFunc(list, func(a, b table) int {
		if a.bytes != b.bytes {
			return int(b.bytes - a.bytes)
		}
		return strings.Compare(a.name, b.name)
	})
	var text []string
	for _, t := range list {
		text = append(text, fmt.Sprintf("%s %s", t.name, number(float64(t.bytes))))
	}
	return strings.Join(text, ", ")
}
