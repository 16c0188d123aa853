package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/lib/durable"
	"scrimp/internal/store"
)

// Whole is all that a backup contains: a store, and the rows of the bills that the store lists.
type Whole struct {
	Store store.Store
	// Bills is the folder of the rows, which need not exist. "" leaves the bills out, and refuses to restore any.
	Bills string
}

const (
	billsFact  = "bills" // metadata that lists the bills, with the name of the file of each
	billSuffix = ".jsonl.gz"
	// mostBill bounds the rows of an import, in bytes of gzip: the server accepts no larger one.
	mostBill = 256 << 20
)

// billFiles returns the names of the files that the metadata lists, sorted.
func billFiles(facts map[string]string) ([]string, error) {
	var index struct {
		Bills []struct {
			File string `json:"file"`
		} `json:"bills"`
	}
	text, ok := facts[billsFact]
	if !ok {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		return nil, fmt.Errorf("read the list of bills: %w", err)
	}
	var names []string
	for _, b := range index.Bills {
		if isBill(b.File) {
			names = append(names, b.File)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isBill reports whether a file of bills can have the name: the SHA-256 of its rows.
func isBill(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

func (o Whole) billPath(name string) string { return filepath.Join(o.Bills, name+billSuffix) }

// billsThere returns the names of the files in the folder.
func (o Whole) billsThere() (map[string]bool, error) {
	there := map[string]bool{}
	if o.Bills == "" {
		return there, nil
	}
	list, err := os.ReadDir(o.Bills)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if name, ok := strings.CutSuffix(e.Name(), billSuffix); ok && isBill(name) {
			there[name] = true
		}
	}
	return there, nil
}

// eachBill calls f with the rows of each listed bill. Rows that were lost earlier are left out. It fails if a file
// that was there before the list was read has gone since.
func (o Whole) eachBill(ctx context.Context, facts map[string]string, before map[string]bool,
	f func(name string, size int64, rows io.Reader) error) error {
	if o.Bills == "" {
		return nil
	}
	names, err := billFiles(facts)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		file, err := os.Open(o.billPath(name))
		if errors.Is(err, fs.ErrNotExist) && !before[name] {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("a bill was replaced meanwhile: try again")
		}
		if err != nil {
			return err
		}
		at, err := file.Stat()
		if err == nil {
			err = f(name, at.Size(), file)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read the bill %s: %w", name[:12], err)
		}
	}
	return nil
}

// bill reads a member with the rows of a bill.
func (b *reader) bill(m *tar.Header, name string) error {
	if !isBill(name) || m.Size > mostBill || b.head.Format < formatOfBills {
		return damaged(m.Name+" has no place there", nil)
	}
	b.d.bill(name, m.Size)
	rows := &counted{from: io.TeeReader(b.members, b.d.h)}
	if err := b.t.bill(name, rows); err != nil {
		return err
	}
	if rows.n != m.Size {
		return damaged("the bill "+name[:12]+" is cut short", rows.err)
	}
	return nil
}

// counted counts the bytes that were read, and keeps the error that ended the reading.
type counted struct {
	from io.Reader
	n    int64
	err  error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n, c.err = c.n+int64(n), err
	return n, err
}

func (nothing) bill(_ string, rows io.Reader) error {
	if _, err := io.Copy(io.Discard, rows); err != nil {
		return damaged("a bill cannot be read", err)
	}
	return nil
}

// bill writes the rows to a temporary file, and gives it its name once all are on the disk.
func (f *filler) bill(name string, rows io.Reader) error {
	if f.Bills == "" {
		return fmt.Errorf("the backup contains bills: give a data folder for them")
	}
	if err := os.MkdirAll(f.Bills, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.Bills, ".restore-*") // 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(file, rows)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), f.billPath(name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the bill %s: %w", name[:12], err), os.Remove(file.Name()))
	}
	return durable.Folder(f.Bills)
}
