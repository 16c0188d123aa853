// Package billfile reads the rows of providers' bills from files, Parquet included, and packs them for the server.
package billfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
	"scrimp/internal/work/bill/record"
)

// File is a file with a bill.
type File struct {
	Name string // in errors
	Path string
}

// Named returns the files at paths, each named by its path.
func Named(paths []string) []File {
	list := make([]File, len(paths))
	for i, path := range paths {
		list[i] = File{path, path}
	}
	return list
}

// Open returns a reader of the bill in a file, whose format it detects.
func Open(name string, in *os.File) (*reader.Reader, error) {
	r, err := reader.New(name, in, bill.Default())
	if !errors.Is(err, record.ErrParquet) {
		return r, err
	}
	header, next, err := readParquet(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return reader.Table(name, header, next, bill.Default())
}

// Rows calls f with each row of a file. torn is the problem with its rest if the file ends early, "" otherwise.
func Rows(ctx context.Context, file File, f func(bill.Row) error) (torn string, err error) {
	in, err := os.Open(file.Path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file.Name, err)
	}
	defer func() { _ = in.Close() }()
	r, err := Open(file.Name, in)
	if err != nil {
		return "", err
	}
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return r.Torn(), nil
		case err != nil:
			return "", err
		}
		if err := f(row); err != nil {
			return "", err
		}
	}
}

// ErrEmpty says that a file has a header and no row.
var ErrEmpty = errors.New("has no row below its header")

// Count is what a file has.
type Count struct {
	Rows, Lines, Unread int
	Torn                string // what is wrong with the rest of the file if it ends early
}

// Scan reads a file to its end. It refuses a file without a readable line; fix names the command that says why.
func Scan(ctx context.Context, file File, fix string) (c Count, err error) {
	c.Torn, err = Rows(ctx, file, func(row bill.Row) error {
		if c.Rows, c.Lines = c.Rows+1, c.Lines+len(row.Lines); row.Problem != nil {
			c.Unread++
		}
		return nil
	})
	switch {
	case err != nil:
		return c, err
	case c.Rows == 0:
		return c, fmt.Errorf("%s %w: export the bill again, once it has charges", file.Name, ErrEmpty)
	case c.Lines == 0:
		return c, fmt.Errorf("%s: no row could be read: %s %s says why", file.Name, fix, file.Name)
	}
	return c, nil
}

// Distinct drops files with the same content as an earlier one: a bill counts once.
func Distinct(files []File) (list []File, err error) {
	var sums [][]byte
	for _, file := range files {
		h := sha256.New()
		in, err := os.Open(file.Path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file.Name, err)
		}
		_, err = io.Copy(h, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", file.Name, err)
		}
		sum := h.Sum(nil)
		if !slices.ContainsFunc(sums, func(s []byte) bool { return bytes.Equal(s, sum) }) {
			list, sums = append(list, file), append(sums, sum)
		}
	}
	return list, nil
}

// Pack writes the rows of the files as JSON lines in gzip.
func Pack(ctx context.Context, to io.Writer, files []File) error {
	packed := gzip.NewWriter(to)
	out := bufio.NewWriter(packed)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, file := range files {
		if _, err := Rows(ctx, file, afterLine(func(row bill.Row) error { return e.Encode(row) })); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), packed.Close())
}

// afterLine delays unread rows before the first line of a file until that line: an unread row belongs to the bill of
// the line before it, which would be one of another file. So a bill has the same rows whatever files precede it.
func afterLine(f func(bill.Row) error) func(bill.Row) error {
	var early []bill.Row
	begun := false
	return func(row bill.Row) error {
		if !begun && len(row.Lines) == 0 {
			early = append(early, row)
			return nil
		}
		err := f(row)
		for _, r := range early {
			if err == nil {
				err = f(r)
			}
		}
		begun, early = true, nil
		return err
	}
}
