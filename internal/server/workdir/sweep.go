package workdir

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Swept describes what a sweep has removed, or would remove.
type Swept struct {
	Objects int
	Bytes   int64
}

// Sweep removes contents that no folder needs, and expired uploads. With dry, it only reports what it would remove
// if the folders of the given jobs were dropped. Writes may go on meanwhile: what they touch stays.
func (s *Store) Sweep(dry bool, jobs ...string) (done Swept, err error) {
	before := s.since() // contents touched from now on stay
	if !dry {
		if err := s.expire(time.Now().Add(-keepUploads)); err != nil {
			return done, err
		}
	}
	m := marks{without: map[string]bool{}, trees: map[string]bool{}, needed: map[string]bool{}}
	for _, job := range jobs {
		m.without[s.job(job)] = dry
	}
	if err := s.mark(&m); err != nil {
		return done, err
	}
	// Once more while no one writes: only the few lists that arrived meanwhile are left to read.
	s.sweep.Lock()
	defer s.sweep.Unlock()
	if err := s.mark(&m); err != nil {
		return done, err
	}
	err = filepath.WalkDir(filepath.Join(s.Dir, "objects"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() || m.needed[e.Name()] {
			return err
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			return err
		}
		if !dry {
			if err := os.Remove(path); err != nil {
				return err
			}
			_ = os.Remove(filepath.Dir(path)) // fails unless empty
		}
		done.Objects, done.Bytes = done.Objects+1, done.Bytes+info.Size()
		return nil
	})
	return done, err
}

// marks collects what a sweep must keep.
type marks struct {
	without map[string]bool // names that count as dropped
	trees   map[string]bool // lists already read
	needed  map[string]bool // contents to keep
}

// mark adds the contents of folders whose lists were not read yet.
func (s *Store) mark(m *marks) error {
	var list []string
	err := s.names(func(path string, r Ref) {
		if !m.without[path] {
			list = append(list, r.Tree)
		}
	})
	if err != nil {
		return err
	}
	for _, tree := range list {
		if m.trees[tree] {
			continue
		}
		m.trees[tree], m.needed[tree] = true, true
		if err := s.needs(tree, m.needed); err != nil {
			return err
		}
	}
	return nil
}

// needs adds the contents of a folder.
func (s *Store) needs(tree string, needed map[string]bool) error {
	return s.Contents(tree, func(sum string, _ int64) { needed[sum] = true })
}

// Contents calls each for a folder's list and its files. A folder without its list is unusable and has none.
func (s *Store) Contents(tree string, each func(sum string, bytes int64)) error {
	f, err := s.Open(tree)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := os.Stat(s.object(tree)); err == nil {
		each(tree, info.Size())
	}
	for e, err := range lines(f) {
		if err != nil {
			return err
		}
		if e.kind == tar.TypeReg {
			each(e.sum, e.size)
		}
	}
	return nil
}

// expire removes uploads from before the given time.
func (s *Store) expire(before time.Time) error {
	sent := filepath.Join(s.Dir, "sent")
	var old []string
	err := s.names(func(path string, r Ref) {
		if rel, err := filepath.Rel(sent, path); err == nil && filepath.IsLocal(rel) && r.Kept.Before(before) {
			old = append(old, path)
		}
	})
	for _, path := range old {
		err = errors.Join(err, drop(path))
	}
	return err
}
