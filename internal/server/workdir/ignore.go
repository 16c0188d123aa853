package workdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/job/ignore"
	"scrimp/internal/lib/confined"
)

// ignoreName is the file that says what is not copied to machines.
const ignoreName = ".scrimpignore"

// habits are left out wherever the file does not take them back in.
const habits = ".git/\n__pycache__/\n.venv/\nnode_modules/\n"

// Holds reports whether a work folder brings files to machines in a folder of it. Names that begin
// with a dot or end in .tmp do not count: they are written aside.
func Holds(folder, dir string) bool {
	ignored, err := ignoreFile(folder)
	if err != nil {
		return false
	}
	for at := filepath.Clean(dir); at != "."; at = filepath.Dir(at) {
		if !filepath.IsLocal(at) || ignored(at, true) {
			return false
		}
	}
	found := false
	_ = filepath.WalkDir(filepath.Join(folder, dir), func(path string, e fs.DirEntry, err error) error {
		rel, wrong := filepath.Rel(folder, path)
		switch {
		case err != nil || wrong != nil:
			return fs.SkipAll // there is none, or it cannot be read
		case isAside(path) || ignored(rel, e.IsDir()):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir():
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// ignoreFile returns whether a path below the folder is left out.
func ignoreFile(folder string) (func(rel string, isFolder bool) bool, error) {
	text, err := readIgnore(folder)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ignoreName, err)
	}
	patterns := ignore.Parse(habits + text)
	return func(rel string, isFolder bool) bool { return patterns.Match(filepath.ToSlash(rel), isFolder) }, nil
}

// readIgnore reads the ignore file of a folder, a regular file within its limits; "": it has none.
func readIgnore(folder string) (string, error) {
	t, err := confined.Folder{Path: folder}.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = t.Close() }() // only read
	f, err := t.File(ignoreName)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxIgnore:
		return "", fmt.Errorf("it has more than %d MiB", maxIgnore>>20)
	case bytes.Count(text, []byte("\n")) > maxPatterns:
		return "", fmt.Errorf("it has more than %d lines", maxPatterns)
	}
	return string(text), nil
}
