package export

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/decide/focus"
	"scrimp/internal/lib/durable"
)

// column is a column of a file that may be Parquet.
type column struct {
	name string
	kind focus.Kind
	null bool
}

// target is an output file.
type target struct {
	*app
	path    string
	force   bool
	columns []column
}

const (
	stdout     = "-"
	endCSV     = ".csv"
	endGzip    = ".csv.gz"
	endParquet = ".parquet"
)

// target checks the output path before the command requests anything.
func (a *app) target(f *flags, columns []column) (*target, error) {
	t := &target{a, f.to, f.force, columns}
	forms := "end its name with .csv or .csv.gz"
	if columns != nil {
		forms = "end its name with .csv, .csv.gz or .parquet"
	}
	switch {
	case f.to == "":
		return nil, errUnnamed
	case f.to == stdout || strings.HasSuffix(f.to, endCSV) || strings.HasSuffix(f.to, endGzip):
	case strings.HasSuffix(f.to, endParquet) && columns != nil:
		if err := parquetHere(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("write %s: its form is not known: %s", f.to, forms)
	}
	if f.to == stdout {
		return t, nil
	}
	if err := t.free(); err != nil {
		return nil, fmt.Errorf("write %s: %w", f.to, err)
	}
	return t, nil
}

// free verifies that the folder exists and that the file may be written.
func (t *target) free() error {
	dir := filepath.Dir(t.path)
	if at, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", dir)
	} else if err == nil && !at.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if at, err := os.Stat(t.path); err == nil && at.IsDir() {
		return errors.New("it is a folder: name a file in it")
	}
	if _, err := os.Lstat(t.path); err == nil && !t.force { // also a dangling link
		return errTaken
	}
	return nil
}

var errTaken = errors.New("there is one: --force replaces it, or name another file")

// write writes CSV in the target's format.
func (t *target) write(ctx context.Context, from io.Reader) error {
	if t.path == stdout {
		_, err := io.Copy(t.Out, from)
		return err
	}
	size, err := t.replace(func(w io.Writer) error {
		switch {
		case strings.HasSuffix(t.path, endGzip):
			z := gzip.NewWriter(w)
			if _, err := io.Copy(z, from); err != nil {
				return err
			}
			return z.Close()
		case strings.HasSuffix(t.path, endParquet):
			return writeParquet(ctx, w, t.columns, csv.NewReader(from))
		}
		_, err := io.Copy(w, from)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	if t.JSON {
		return t.Print(map[string]any{"file": t.path, "bytes": size})
	}
	t.Printf("Wrote %s, %d bytes.\n", t.path, size)
	return nil
}

// replace writes a temporary file beside the target and renames it once it is complete and synced.
func (t *target) replace(fill func(io.Writer) error) (size int64, err error) {
	dir, name := filepath.Split(t.path)
	part := filepath.Join(dir, "."+name+"."+rand.Text()[:8]+".part")
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666) // with the usual permissions of the user's files
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return 0, at.Err // the user does not know the temporary name
	}
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close() // a second close does nothing
		_ = os.Remove(part)
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := fill(w); err != nil {
		return 0, err
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return 0, err
	}
	at, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	return at.Size(), errors.Join(t.name(part), durable.Folder(filepath.Dir(t.path)))
}

// name gives the complete file its name. Without force it does not replace a file that appeared meanwhile. On a file
// system without hard links it checks for one first.
func (t *target) name(part string) error {
	if t.force {
		return os.Rename(part, t.path)
	}
	err := os.Link(part, t.path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err != nil {
			return errTaken
		}
		return nil
	}
	if _, err := os.Lstat(t.path); err == nil {
		return errTaken
	}
	return os.Rename(part, t.path)
}

// answer wraps a response body; if it ends early, the error names the fix.
type answer struct{ from io.Reader }

func (a *answer) Read(p []byte) (n int, err error) {
	n, err = a.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("the server's response was cut off, and nothing was kept: run it again: %w", err)
	}
	return n, err
}
