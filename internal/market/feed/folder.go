package feed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scrimp/internal/market/catalog"
)

// PricesName is the file in the data folder with the user's own prices and discounts.
const PricesName = "prices.csv"

// folder holds copies of fetched or imported prices, one file per source.
const folder = "catalog"

// Copy is the copy of a source in the data folder.
type Copy struct {
	Name string    `json:"name"`
	At   time.Time `json:"written"`
	Rows int       `json:"rows"`
}

// Load returns the catalogue of a data folder: the built-in one, with the copies and then the user's own prices on top.
// An invalid file is an error that names it.
func Load(dir string) (catalog.Catalog, []Copy, error) {
	c, copies, err := Published(dir)
	if err != nil {
		return c, copies, err
	}
	text, at, err := read(filepath.Join(dir, PricesName))
	if errors.Is(err, fs.ErrNotExist) {
		return c.Managed(), copies, nil
	}
	if err != nil {
		return c, copies, err
	}
	over, err := c.Overlay(PricesName, text, at)
	if err != nil {
		return c, copies, fmt.Errorf("%w: correct %s", err, filepath.Join(dir, PricesName))
	}
	copies = append(copies, Copy{Name: PricesName, At: at, Rows: strings.Count(strings.TrimSpace(text), "\n")})
	return over.Managed(), copies, nil
}

// Charges returns the user's own charges for storing and transferring data, in a catalogue without listings. A missing
// file has none.
func Charges(dir string) (catalog.Catalog, error) {
	text, at, err := read(filepath.Join(dir, PricesName))
	if errors.Is(err, fs.ErrNotExist) {
		return catalog.Catalog{}, nil
	}
	if err != nil {
		return catalog.Catalog{}, err
	}
	c, err := catalog.Catalog{}.Overlay(PricesName, text, at)
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("%w: correct %s", err, filepath.Join(dir, PricesName))
	}
	return catalog.Catalog{Own: c.Own}, nil
}

// Published is Load without the user's own prices. Sources are read against it, so that a discount never gets into a
// copy and applies twice.
func Published(dir string) (catalog.Catalog, []Copy, error) {
	c := catalog.Builtin()
	copies := []Copy{{Name: "built in", Rows: len(c.Listings), At: newest(c)}}
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, copies, fmt.Errorf("read catalogue: %w", err)
	}
	for _, e := range entries { // sorted by name
		if filepath.Ext(e.Name()) != ".csv" {
			continue
		}
		text, at, err := read(filepath.Join(dir, folder, e.Name()))
		if err != nil {
			return c, copies, err
		}
		more, err := catalog.Read(e.Name(), text)
		if err != nil {
			return c, copies, fmt.Errorf("%w: delete %s, or fetch it again with scrimp catalog update", err,
				filepath.Join(dir, folder, e.Name()))
		}
		copies = append(copies, Copy{Name: e.Name(), Rows: len(more.Listings), At: at})
		c = c.With(more)
	}
	return c, copies, nil
}

func newest(c catalog.Catalog) time.Time {
	var t time.Time
	for _, l := range c.Listings {
		if l.Quote.At.After(t) {
			t = l.Quote.At
		}
	}
	return t
}

func read(name string) (string, time.Time, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read catalogue: %w", err)
	}
	if info.Size() > 256<<20 {
		return "", time.Time{}, fmt.Errorf("read catalogue: %s has more than 256 MiB", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read catalogue: %w", err)
	}
	return string(text), info.ModTime().UTC(), nil
}

// Keep merges c into the copy of its source in the data folder, so that earlier fetches of other regions stay, and
// returns the number of listings in the copy. It replaces an unreadable copy.
func Keep(dir, name string, c catalog.Catalog) (int, error) {
	name = fileName(name)
	text, _, err := read(filepath.Join(dir, folder, name))
	if err == nil {
		if old, bad := catalog.Read(name, text); bad == nil {
			c = old.With(c)
		}
	}
	return len(c.Listings), Save(dir, name, c)
}

// fileName returns the file name for the copy of a source.
func fileName(source string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
			return r
		}
		return '-'
	}, source)
	return strings.TrimSuffix(name, ".csv") + ".csv"
}

// Save replaces a source's copy in the data folder atomically.
func Save(dir, name string, c catalog.Catalog) error {
	name = fileName(name)
	dir = filepath.Join(dir, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep catalogue: %w", err)
	}
	f, err := os.CreateTemp(dir, name+".*.tmp")
	if err != nil {
		return fmt.Errorf("keep catalogue: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // has no effect after the rename
	_, err = f.WriteString(catalog.Write(c.Listings))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keep catalogue: %w", err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return fmt.Errorf("keep catalogue: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("keep catalogue: %w", err)
	}
	return nil
}
