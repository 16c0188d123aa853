// Package billfile reads the rows of providers' bills from files, Parquet included, and packs them for the server.
package billfile

import (
	"bufio"
	"compress/gzip"
	"context"
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

// Rows calls f with each row of a file. seen has met the rows of the bill's earlier files (nil: there are none). torn
// is the problem with its rest if the file ends early, "" otherwise. digest identifies its rows.
func Rows(ctx context.Context, file File, seen *record.Repeated, f func(bill.Row) error) (torn, digest string,
	err error) {
	in, err := os.Open(file.Path)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", file.Name, err)
	}
	defer func() { _ = in.Close() }()
	r, err := Open(file.Name, in)
	if err != nil {
		return "", "", err
	}
	if seen != nil {
		r.Beside(seen)
	}
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return r.Torn(), r.Digest(), nil
		case err != nil:
			return "", "", err
		}
		if err := f(row); err != nil {
			return "", "", err
		}
	}
}

// Seen returns the memory of rows that the files of one bill share.
func Seen() *record.Repeated { return &record.Repeated{Most: bill.Default().Repeated} }

// ErrEmpty says that a file has a header and no row.
var ErrEmpty = errors.New("has no row below its header")

// Set is the files of one import, without copies.
type Set struct {
	Files   []File
	Unread  int           // rows that cannot be read
	Overlap int           // those of them that an earlier file has, too
	First   *bill.Problem // the first of these
	seen    *record.Repeated
	digests []string
}

// Add reads a file to its end. It refuses one without a readable line; fix names the command that says why. It leaves
// out a copy of an earlier file, however that is packed: a bill counts once. torn is what is wrong with the rest of the
// file if it ends early.
func (s *Set) Add(ctx context.Context, file File, fix string) (torn string, err error) {
	if s.seen == nil {
		s.seen = Seen()
	}
	rows, lines, unread, overlap := 0, 0, 0, 0
	first := s.First
	torn, digest, err := Rows(ctx, file, s.seen, func(row bill.Row) error {
		rows, lines = rows+1, lines+len(row.Lines)
		if p := row.Problem; p != nil {
			if unread++; p.Also != "" {
				overlap++
			}
			if p.Also != "" && first == nil {
				first = p
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return torn, err
	case rows == 0:
		return torn, fmt.Errorf("%s %w: export the bill again, once it has charges", file.Name, ErrEmpty)
	case slices.Contains(s.digests, digest):
		return torn, nil
	case lines == 0 && overlap == 0:
		return torn, fmt.Errorf("%s: no row could be read: %s %s says why", file.Name, fix, file.Name)
	}
	s.Files, s.digests = append(s.Files, file), append(s.digests, digest)
	s.Unread, s.Overlap, s.First = s.Unread+unread, s.Overlap+overlap, first
	return torn, nil
}

// Pack writes the rows of the files as JSON lines in gzip.
func Pack(ctx context.Context, to io.Writer, files []File) error {
	packed := gzip.NewWriter(to)
	out := bufio.NewWriter(packed)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	seen := Seen()
	for _, file := range files {
		if _, _, err := Rows(ctx, file, seen, afterLine(func(row bill.Row) error { return e.Encode(row) })); err != nil {
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
