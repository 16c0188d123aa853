// Package migrations has the SQL that brings the databases of both backends to the schema of this release.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
)

// FS holds the files of SQL.
//
//go:embed postgres sqlite
var FS embed.FS

// Before is the last schema that this release cannot read.
const Before = 2

// Schema returns the number of the schema that this program writes.
func Schema(backend string) int {
	files, _ := Of(backend) // the pattern is valid
	return Before + len(files)
}

// Of returns the migrations of a backend in order; the first leads to schema before+1.
func Of(backend string) ([]string, error) {
	return fs.Glob(FS, backend+"/*.sql") // sorted
}

// Readable returns an error, with what to do, for a database that this program cannot read; schema 0 is a new one.
func Readable(have, known int) error {
	switch {
	case have > known:
		return fmt.Errorf("the database has schema %d, this program knows only %d: use a newer program", have, known)
	case have > 0 && have <= Before:
		return fmt.Errorf("an older release of scrimp wrote this database (schema %d), and this release cannot read "+
			"its log: "+
			"keep this data for that release, and start with an empty one: another --data folder or an empty "+
			"PostgreSQL database", have)
	}
	return nil
}
