package workdir

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Item is a file, a folder or a link in a folder.
type Item struct {
	Path     string // with slashes
	Mode     fs.FileMode
	Modified time.Time
	Size     int64
	Link     string // target of a link
	Sum      string // SHA-256 of a file that is in the store
	// Content writes the content of a file that is not in the store; Name identifies that content.
	Content func(to io.Writer) error
	Name    string
}

// Items returns the contents of a job's folder, sorted by path; none if it has no folder.
func (s *Store) Items(job string) (items []Item, err error) {
	r, err := s.Of(job)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := s.Open(r.Tree)
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }() // only read
	for e, err := range lines(list) {
		if err != nil {
			return nil, err
		}
		i := Item{Path: e.name, Mode: e.mode, Modified: e.made, Size: e.size, Link: e.link, Sum: e.sum}
		switch e.kind {
		case tar.TypeDir:
			i.Mode |= fs.ModeDir
		case tar.TypeSymlink:
			i.Mode |= fs.ModeSymlink
		}
		items = append(items, i)
	}
	return items, nil
}

// Compose gives a job a folder of these items, which are sorted by path. It shares contents that are in the store.
func (s *Store) Compose(job string, items []Item) error {
	return s.writeTo(s.job(job), func(w *writer) error {
		for _, i := range items {
			if err := w.item(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// item stores one item.
func (w *writer) item(i Item) error {
	e := entry{mode: i.Mode.Perm(), size: i.Size, made: plain(i.Modified), sum: i.Sum, name: i.Path, link: i.Link}
	switch {
	case i.Mode.IsDir():
		return w.dir(e)
	case i.Mode&fs.ModeSymlink != 0:
		return w.link(e)
	case i.Sum != "":
		if !w.has(i.Sum, i.Size) {
			return &fs.PathError{Op: "read", Path: i.Path, Err: os.ErrNotExist}
		}
		return w.known(e)
	}
	from, to := io.Pipe()
	go func() { _ = to.CloseWithError(i.Content(to)) }()
	err := w.file(e, from)
	return errors.Join(err, from.Close())
}
