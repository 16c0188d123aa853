package folderblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gocloud.dev/blob/driver"
)

// defaultPage is the number of blobs in a page if the caller sets none.
const defaultPage = 1000

// errPage ends a walk when the page is full.
var errPage = errors.New("page is full")

// ListPaged lists blobs in the order of their keys. It skips files that no key can have, and files that are still
// being written.
func (f *Store) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	w := walk{ctx: ctx, opts: opts, after: string(opts.PageToken), size: opts.PageSize}
	if w.size == 0 {
		w.size = defaultPage
	}
	err := w.folder(f.root, "")
	page := &driver.ListPage{Objects: w.found}
	switch {
	case errors.Is(err, errPage):
		page.NextPageToken = []byte(w.found[len(w.found)-1].Key)
	case err != nil:
		return nil, err
	}
	return page, nil
}

type walk struct {
	ctx   context.Context // of this one listing
	opts  *driver.ListOptions
	after string // a page begins after this key or common prefix
	size  int
	found []*driver.ListObject
}

// entry is a name in a folder. A folder's key ends in a slash, because that is how the keys below it compare.
type entry struct {
	key  string
	path string
	dir  bool
}

// folder walks the blobs of a folder, in order; above is the common beginning of their keys.
func (w *walk) folder(path, above string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, err := os.ReadDir(path)
	if err != nil {
		if above != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
			return nil // it was emptied meanwhile
		}
		return err
	}
	entries := make([]entry, 0, len(names))
	for _, n := range names {
		if strings.HasPrefix(n.Name(), asidePrefix) {
			continue
		}
		element, ok := unescape(n.Name())
		if !ok || !n.IsDir() && !n.Type().IsRegular() {
			continue
		}
		e := entry{key: above + element, path: filepath.Join(path, n.Name()), dir: n.IsDir()}
		if e.dir {
			e.key += "/"
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range entries {
		if err := w.entry(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(e entry) error {
	prefix := w.opts.Prefix
	if e.dir {
		switch {
		case !strings.HasPrefix(e.key, prefix) && !strings.HasPrefix(prefix, e.key):
			return nil // no key below it begins with the prefix
		case w.after > e.key && !strings.HasPrefix(w.after, e.key):
			return nil // all keys below it were in earlier pages
		case w.common(e.key) != "" && w.seen(w.common(e.key)):
			return nil // a common prefix already covers all keys below it
		}
		return w.folder(e.path, e.key)
	}
	if !strings.HasPrefix(e.key, prefix) || e.key <= w.after {
		return nil
	}
	if common := w.common(e.key); common != "" {
		if w.seen(common) {
			return nil
		}
		return w.add(&driver.ListObject{Key: common, IsDir: true})
	}
	stat, err := os.Lstat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	return w.add(&driver.ListObject{Key: e.key, ModTime: stat.ModTime(), Size: stat.Size()})
}

// common returns the common prefix that represents key in this listing, up to the delimiter after the prefix, or ""
// if the key represents itself.
func (w *walk) common(key string) string {
	rest, ok := strings.CutPrefix(key, w.opts.Prefix)
	if w.opts.Delimiter == "" || !ok {
		return ""
	}
	i := strings.Index(rest, w.opts.Delimiter)
	if i < 0 {
		return ""
	}
	return w.opts.Prefix + rest[:i+len(w.opts.Delimiter)]
}

// seen reports whether a common prefix has been listed, here or in an earlier page.
func (w *walk) seen(common string) bool {
	if common == w.after {
		return true
	}
	n := len(w.found)
	return n > 0 && w.found[n-1].IsDir && w.found[n-1].Key == common
}

func (w *walk) add(o *driver.ListObject) error {
	if len(w.found) == w.size {
		return errPage
	}
	w.found = append(w.found, o)
	return nil
}
