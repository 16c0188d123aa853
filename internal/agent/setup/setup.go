// Package setup keeps the results of set-up commands on a machine, so that the next task with the
// same set-up starts from the result instead of running the command.
package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Tree is a folder that a set-up command may change.
type Tree struct {
	Name   string // name of its copy, such as work or home
	Path   string
	Except string // relative path of a folder in it that is not copied; may be empty
}

// Limits bound the size of a Cache.
type Limits struct {
	Number  int     // number of set-ups
	Bytes   int64   // bytes of all set-ups
	Reserve float64 // share of the disk that must stay free
}

// Default returns the usual limits: 4 set-ups of 20 GiB in total, with a tenth of the disk free,
// because checkpoints and outputs come first.
func Default() Limits { return Limits{Number: 4, Bytes: 20 << 30, Reserve: 0.1} }

// Leaving returns the usual limits with the share of the disk, from 0 to 1, that must stay free; an empty text stands
// for the usual share.
func Leaving(share string) (Limits, error) {
	l := Default()
	if share == "" {
		return l, nil
	}
	v, err := strconv.ParseFloat(share, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return l, fmt.Errorf("SCRIMP_FREE_DISK is %q, want the share of the disk that kept set-ups leave free, from 0 to 1",
			share)
	}
	l.Reserve = v
	return l, nil
}

// Entry is a kept set-up.
type Entry struct {
	Key    string        `json:"key"`
	Made   time.Time     `json:"made"`
	Took   time.Duration `json:"took_ns"` // duration of the command
	Bytes  int64         `json:"bytes"`
	Digest string        `json:"digest"` // digest of the copies, including inode numbers
	Boot   string        `json:"boot"`   // boot of the machine: a crash may have torn older copies

	used time.Time // when it was last made or restored
}

// Callers test for these with errors.Is.
var (
	ErrNone   = errors.New("no set-up is kept under this key")
	ErrRoom   = errors.New("there is no room for it")
	ErrMoving = errors.New("a file changed during the copy")
	ErrOdd    = errors.New("it is not a regular file, a folder or a link")
)

// entryFile is written last: a folder without it is not an entry.
const entryFile = "kept.json"

// partial is the name prefix of incomplete copies.
const partial = "partial-"

// Cache is a folder of kept set-ups.
type Cache struct {
	dir    string
	boot   string
	limits Limits
	mu     sync.RWMutex // write-locked while entries change
}

// Open opens the cache in a folder, and removes incomplete entries and those of an earlier boot.
// boot is empty if the system does not identify boots; then no entry is reused.
func Open(dir, boot string, limits Limits) (*Cache, error) {
	c := &Cache{dir: dir, boot: boot, limits: limits}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of set-ups: %w", err)
	}
	names, err := os.ReadDir(dir)
	for _, n := range names {
		if e, bad := c.read(n.Name()); bad != nil || e.Boot != boot || boot == "" {
			err = errors.Join(err, remove(filepath.Join(dir, n.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder of set-ups: %w", err)
	}
	return c, nil
}

// read reads the entry in the folder with the given name.
func (c *Cache) read(name string) (e Entry, err error) {
	if strings.HasPrefix(name, partial) {
		return e, ErrNone
	}
	path := filepath.Join(c.dir, name, entryFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err == nil && e.Key != name {
		err = fmt.Errorf("read %s: it belongs to %q", path, e.Key)
	}
	if err != nil {
		return e, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return e, err
	}
	e.used = stat.ModTime()
	return e, nil
}

// Restore empties the trees and fills them with the entry of a key. If there is no entry, or it was
// modified, Restore returns ErrNone and does not touch the trees.
func (c *Cache) Restore(ctx context.Context, key string, now time.Time, trees []Tree) (Entry, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, err := c.read(key)
	if err != nil {
		return e, err
	}
	copies := c.copies(filepath.Join(c.dir, key), trees)
	digest, _, err := scan(copies, true)
	if err != nil || digest != e.Digest {
		_ = os.Remove(filepath.Join(c.dir, key, entryFile)) // makeRoom removes the rest later
		return e, errors.Join(ErrNone, err)
	}
	for i, t := range trees {
		if err := errors.Join(os.MkdirAll(t.Path, 0o700), emptyBut(t.Path, t.Except)); err != nil {
			return e, fmt.Errorf("restore a set-up: %w", err)
		}
		if err := copyTree(ctx, copies[i].Path, t.Path, ""); err != nil {
			return e, fmt.Errorf("restore a set-up: %w", err)
		}
	}
	return e, os.Chtimes(filepath.Join(c.dir, key, entryFile), now, now)
}

// copies returns the trees of the copies in dir.
func (c *Cache) copies(dir string, trees []Tree) []Tree {
	out := make([]Tree, len(trees))
	for i, t := range trees {
		out[i] = Tree{Name: t.Name, Path: filepath.Join(dir, t.Name)}
	}
	return out
}

// Keep copies the trees that a set-up command has made. If room is short, it removes the entries
// that were unused for longest.
func (c *Cache) Keep(ctx context.Context, e Entry, trees []Tree) error {
	before, size, err := scan(trees, false)
	if err != nil {
		return fmt.Errorf("keep a set-up: %w", err)
	}
	if err := c.makeRoom(e.Key, size); err != nil {
		return fmt.Errorf("keep a set-up: %w", err)
	}
	aside, err := os.MkdirTemp(c.dir, partial)
	if err != nil {
		return fmt.Errorf("keep a set-up: %w", err)
	}
	err = c.copyAll(ctx, aside, trees)
	if err == nil {
		var after string
		if after, _, err = scan(trees, false); err == nil && after != before {
			err = ErrMoving
		}
	}
	if err == nil {
		e.Boot, e.Bytes = c.boot, size
		err = c.publish(aside, e, trees)
	}
	if err != nil {
		return fmt.Errorf("keep a set-up: %w", errors.Join(err, remove(aside)))
	}
	return nil
}

func (c *Cache) copyAll(ctx context.Context, to string, trees []Tree) error {
	for i, t := range c.copies(to, trees) {
		if err := os.Mkdir(t.Path, 0o700); err != nil {
			return err
		}
		if err := copyTree(ctx, trees[i].Path, t.Path, trees[i].Except); err != nil {
			return err
		}
	}
	return nil
}

// publish moves complete copies to their final name.
func (c *Cache) publish(aside string, e Entry, trees []Tree) (err error) {
	if e.Digest, _, err = scan(c.copies(aside, trees), true); err != nil {
		return err
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	to := filepath.Join(c.dir, e.Key)
	return errors.Join(remove(to), os.WriteFile(filepath.Join(aside, entryFile), b, 0o600), os.Rename(aside, to))
}

// makeRoom removes entries until another one of the given size fits.
func (c *Cache) makeRoom(key string, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, total, err := c.others(key)
	if err != nil {
		return err
	}
	free, whole, err := Disk(c.dir)
	if err != nil {
		return err
	}
	spare := free - int64(c.limits.Reserve*float64(whole))
	if size > c.limits.Bytes || size > spare+total || c.limits.Number < 1 {
		return fmt.Errorf("%w: it has %d bytes", ErrRoom, size)
	}
	slices.SortFunc(kept, func(a, b Entry) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.Key, b.Key))
	})
	for _, e := range kept {
		if len(kept) < c.limits.Number && total+size <= c.limits.Bytes && size <= spare {
			break
		}
		if err := remove(filepath.Join(c.dir, e.Key)); err != nil {
			return err
		}
		kept, total, spare = kept[1:], total-e.Bytes, spare+e.Bytes
	}
	return nil
}

// others returns the entries except that of key, and their total bytes. It removes the entry of key
// and damaged ones.
func (c *Cache) others(key string) (kept []Entry, total int64, err error) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range names {
		e, err := c.read(n.Name())
		switch {
		case err == nil && e.Key != key:
			kept, total = append(kept, e), total+e.Bytes
		case err != nil && strings.HasPrefix(n.Name(), partial): // another task is copying
		default:
			if err := remove(filepath.Join(c.dir, n.Name())); err != nil {
				return nil, 0, err
			}
		}
	}
	return kept, total, nil
}
