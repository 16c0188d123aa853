// Package nsight reads the SQLite files that nsys export writes of a run under Nsight Systems. It opens a file
// read-only and writes nothing beside it.
package nsight

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/work/diagnose/profile"

	"modernc.org/sqlite" // also registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Bounds on a file. All rows are read once, in the order of the file, so that SQLite sorts nothing.
const (
	longestValue = 1 << 20   // bytes
	mostHeap     = 256 << 20 // bytes of SQLite
	mostNames    = 200_000   // distinct names of a GPU's work, and of calls of threads
	mostRanges   = 1_000_000 // with a purpose
	mostThreads  = 4096
	mostTables   = 1000
	leastRow     = 4 // bytes of a row on a page; more rows than fit the file are a loop
	patience     = 10 * time.Minute
)

// fix says how to write a file that can be read.
const fix = "write it with nsys export --type sqlite FILE.nsys-rep, of nsys profile --trace cuda,nvtx,osrt"

// Is reports whether a file begins as an SQLite database.
func Is(f io.ReaderAt) bool {
	head := make([]byte, len(profile.SQLite))
	_, err := f.ReadAt(head, 0)
	return err == nil && bytes.Equal(head, []byte(profile.SQLite))
}

// Read reads the profiles of a file.
func Read(ctx context.Context, name string) ([]profile.Profile, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	list, err := read(ctx, name)
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("read %s: it takes longer than %s: profile fewer steps", name, patience)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, said(err))
	}
	return list, nil
}

// said explains errors of SQLite.
func said(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FORMAT:
		return fmt.Errorf("the SQLite database is damaged or incomplete (%w): %s", err, fix)
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("it has values or tables that Nsight Systems does not write (%w): %s", err, fix)
	}
	return fmt.Errorf("%w: %s", err, fix)
}

func read(ctx context.Context, name string) (list []profile.Profile, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if wal, err := os.Stat(name + "-wal"); err == nil && wal.Size() > 0 {
		return nil, fmt.Errorf("%s-wal holds a part of it: wait until the program that writes it has ended", name)
	}
	if err := checkSchema(name); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	options := url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"query_only(1)", "trusted_schema(0)",
		"cell_size_check(1)", "mmap_size(0)", "cache_size(-8192)", fmt.Sprintf("hard_heap_limit(%d)", mostHeap)}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, longestValue); err != nil {
		return nil, err
	}
	f := &file{ctx: ctx, c: c, left: info.Size()/leastRow + 1000, work: map[any]*work{}, gpus: map[int64]bool{},
		calls: map[int64]int64{}, named: map[int64]int64{}, purposes: map[profile.Source]map[int64]purpose{}}
	return f.read()
}

// file is a database that is being read.
type file struct {
	ctx    context.Context //nolint:containedctx // of one call of Read
	c      *sql.Conn
	tables map[string][]string // columns by table
	left   int64               // rows that the file may still have
	odd    int64               // rows without the values that Nsight Systems writes

	timeline profile.Timeline
	begun    bool
	gpus     map[int64]bool
	work     map[any]*work // by id of the name, or by name
	purposes map[profile.Source]map[int64]purpose
	calls    map[int64]int64 // of CUDA, by thread
	named    map[int64]int64 // ranges, by thread
	over     bool            // there are more ranges than mostRanges
}

// work is the sum of a GPU's work of one name.
type work struct {
	time  float64
	count int64
}

// purpose is what a named call of a thread is for.
type purpose struct {
	name string
	part profile.Part
}

func (f *file) read() ([]profile.Profile, error) {
	if err := f.schema(); err != nil {
		return nil, err
	}
	steps := []func() error{f.readPurposes, f.readRanges, f.readCalls, f.readWork, f.nameWork}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	f.timeline.Tool, f.timeline.GPUs = "Nsight Systems", len(f.gpus)
	f.keepLaunching()
	list := f.timeline.Profiles()
	switch {
	case len(list) == 0 && f.odd > 0:
		return nil, fmt.Errorf("its %d rows are not those of Nsight Systems: %s", f.odd, fix)
	case len(list) == 0:
		return nil, fmt.Errorf("it has neither GPU work nor a range that names what it does: %s", fix)
	}
	return list, nil
}

// schema reads which known tables there are. It counts ordinary tables alone: a view may compute anything.
func (f *file) schema() error {
	rows, err := f.c.QueryContext(f.ctx,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 LIMIT ?", mostTables)
	if err != nil {
		return err
	}
	var all []string
	for rows.Next() {
		var name sql.NullString
		if err = rows.Scan(&name); err != nil {
			break
		}
		all = append(all, name.String)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	f.tables = map[string][]string{}
	known := []string{namesTable, rangesTable}
	for _, t := range kernelTables {
		known = append(known, t.table)
	}
	for _, t := range hostTables {
		known = append(known, t.table)
	}
	found := false
	for _, t := range known {
		if !slices.Contains(all, t) {
			continue
		}
		if f.tables[t], err = f.columns(t); err != nil {
			return err
		}
		found = found || t != namesTable
	}
	if !found {
		slices.Sort(all)
		return fmt.Errorf("it is an SQLite database of another tool (its tables: %.200s): %s",
			cmp.Or(strings.Join(all[:min(len(all), 8)], ", "), "none"), fix)
	}
	return nil
}

func (f *file) columns(table string) (list []string, err error) {
	rows, err := f.c.QueryContext(f.ctx, "SELECT name FROM pragma_table_info(?) LIMIT 1000", table)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var name string
		if err = rows.Scan(&name); err != nil {
			break
		}
		list = append(list, name)
	}
	return list, errors.Join(err, rows.Err(), rows.Close())
}

// each calls do with each row of a table: the values of the columns, nil for a column that the table lacks. Without
// one of the first needed columns, it calls nothing.
func (f *file) each(table string, needed int, columns []string, do func(row []any)) error {
	has := f.tables[table]
	text := make([]string, len(columns))
	for i, c := range columns {
		switch text[i] = "NULL"; {
		case slices.Contains(has, c):
			text[i] = `"` + c + `"`
		case i < needed:
			return nil
		}
	}
	//nolint:gosec // the names of tables and columns are constants of this package
	rows, err := f.c.QueryContext(f.ctx, "SELECT "+strings.Join(text, ", ")+` FROM "`+table+`" NOT INDEXED`)
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	row, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err = rows.Scan(to...); err != nil {
			break
		}
		if f.left--; f.left < 0 {
			err = errors.New("it has more rows than fit into a file of its size, so it is damaged")
			break
		}
		do(row)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}
