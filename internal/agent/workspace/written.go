package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/size"
	"scrimp/internal/wire/api"
)

// maxWritten bounds the bytes of written files to keep if the job names no output folders.
const maxWritten = 1 << 30

// ignoredFolders lists folders that never hold output of the program.
var ignoredFolders = []string{".git", "__pycache__", ".venv", "venv", "node_modules", ".cache", ".ipynb_checkpoints"}

// version identifies the content of a file by size and time.
type version struct {
	size int64
	at   time.Time
}

// written is a file or a link that the program made or changed.
type written struct {
	name string // path relative to the work folder
	version
}

// keepsWritten reports whether the job asks to keep all files that the program writes.
func (w *Workspace) keepsWritten() bool {
	return w.Task.OutputsURL != "" && slices.Contains(w.Task.Outputs, api.OutputsWritten)
}

// RecordWork records the files of the work folder before the program starts.
func (w *Workspace) RecordWork() error {
	if !w.keepsWritten() {
		return nil
	}
	list, err := w.listWork()
	w.before = map[string]version{}
	for _, f := range list {
		w.before[f.name] = f.version
	}
	return err
}

// listWork lists the files of the work folder, except those that scrimp keeps elsewhere.
func (w *Workspace) listWork() (list []written, err error) {
	tree, err := w.Reading(w.Folders.Work).Open()
	if err != nil {
		return nil, fmt.Errorf("list the work folder: %w", err)
	}
	own := map[string]bool{}
	for _, p := range []string{w.Folders.Checkpoint, w.Folders.Progress} {
		if rel, err := filepath.Rel(w.Folders.Work, p); err == nil {
			own[filepath.ToSlash(rel)] = true
		}
	}
	err = tree.Walk(".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil
		case rel == ".":
			return err
		case d.IsDir() && (own[rel] || slices.Contains(ignoredFolders, path.Base(rel))):
			return fs.SkipDir
		case err != nil: // unreadable folder: list it, so that Keep reports why
			list = append(list, written{name: rel})
			return fs.SkipDir
		case own[rel] || !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
			return nil
		}
		info, err := d.Info()
		if err != nil { // as above, unless it was removed
			if !errors.Is(err, fs.ErrNotExist) {
				list = append(list, written{name: rel})
			}
			return nil
		}
		list = append(list, written{rel, version{info.Size(), info.ModTime()}})
		return nil
	})
	if err = errors.Join(err, tree.Close()); err != nil {
		return nil, fmt.Errorf("list the work folder: %w", err)
	}
	return list, nil
}

// pickWritten returns the newest files that the program made or changed, up to most bytes in total,
// with the number and size of those left out.
func pickWritten(list []written, before map[string]version, most int64) (names []string, left int, leftBytes int64) {
	list = slices.DeleteFunc(slices.Clone(list), func(f written) bool {
		old, was := before[f.name]
		return was && old.size == f.size && old.at.Equal(f.at)
	})
	slices.SortFunc(list, func(a, b written) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name))
	})
	room := most
	for _, f := range list {
		if f.size > room {
			left, leftBytes = left+1, leftBytes+f.size
			continue
		}
		room -= f.size
		names = append(names, f.name)
	}
	return names, left, leftBytes
}

// OutputNames returns the names of the outputs to keep, below the work folder, and a description of what is left out.
func (w *Workspace) OutputNames() (names []string, wrong string, err error) {
	if !w.keepsWritten() {
		return w.Task.Outputs, "", nil
	}
	list, err := w.listWork()
	if err != nil {
		return nil, "", err
	}
	picked, left, bytes := pickWritten(list, w.before, maxWritten)
	if left > 0 {
		wrong = fmt.Sprintf("%d of the files that the program wrote (%.1f GiB) are not kept, as all are more than %v: name "+
			"folders in outputs of a job file", left, float64(bytes)/float64(size.GiB), size.Bytes(maxWritten))
	}
	names = slices.DeleteFunc(slices.Clone(w.Task.Outputs), func(name string) bool { return name == api.OutputsWritten })
	return append(names, picked...), wrong, nil
}
