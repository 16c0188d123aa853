package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/job/ignore"
	"scrimp/internal/lib/confined"
)

// IgnoreName is the file with the patterns of what is not copied to machines.
const IgnoreName = ".scrimpignore"

// defaultPatterns are excluded by default; .scrimpignore can include them again. So are secrets: files in which
// tools keep passwords and keys.
const (
	defaultPatterns = ".git/\n__pycache__/\n.venv/\nnode_modules/\n.dvc/cache/\n.dvc/tmp/\n"
	secrets         = ".env\n.env.*\n!.env.example\n!.env.sample\n!.env.template\n*.pem\n*.p12\n*.pfx\n*.key\n" +
		"*.token\ncredentials.json\nid_rsa\nid_dsa\nid_ecdsa\nid_ed25519\n.netrc\n.pypirc\n.git-credentials\n" +
		".aws/\n.ssh/\n.kube/\n.config/scrimp/\n"
)

// FetchedName marks a folder that scrimp get has created under a name of its own. Work folders exclude such folders,
// otherwise the outputs of a job would travel with the next one. Without the mark, a folder is copied like any
// other.
const FetchedName = ".scrimp-get"

// Fetched is the text of that file.
const Fetched = "scrimp get has made this folder, and scrimp run leaves it out. Without this file it is sent.\n"

// Holds reports whether a work folder brings files to machines in its subfolder dir. Names that start with a dot or
// end in .tmp do not count: they are incomplete.
func Holds(folder, dir string) bool {
	ignored, err := Ignored(folder)
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
			return fs.SkipAll // missing or unreadable
		case isIncomplete(path) || ignored(rel, e.IsDir()):
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

// Ignored returns a function that reports whether a path below the folder is excluded.
func Ignored(folder string) (func(rel string, isFolder bool) bool, error) {
	text, err := readIgnore(folder)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", IgnoreName, err)
	}
	patterns, ours := ignore.Parse(defaultPatterns+secrets+text), own{folder: folder, user: text}
	return func(rel string, isFolder bool) bool {
		return patterns.Match(filepath.ToSlash(rel), isFolder) || ours.has(rel, isFolder)
	}, nil
}

// fetched reports whether scrimp get has created the folder.
func fetched(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, FetchedName))
	return err == nil && info.Mode().IsRegular()
}

// Secrets returns up to 10 paths of a work folder that are excluded only because they are secrets by name or content.
func Secrets(folder string) (list []string) {
	text, err := readIgnore(folder)
	if err != nil {
		return nil // Pack reports the error
	}
	without, with := ignore.Parse(defaultPatterns+text), ignore.Parse(defaultPatterns+secrets+text)
	ours := own{folder: folder, user: text}
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error { // Pack reports errors
		rel, wrong := filepath.Rel(folder, path)
		if err != nil || wrong != nil || rel == "." {
			return nil
		}
		name, dir := filepath.ToSlash(rel), e.IsDir()
		out := without.Match(name, dir) || dir && ours.has(rel, true)
		if !out && (with.Match(name, dir) || !dir && ours.secret(rel) && ours.stays(rel, false)) {
			list, out = append(list, name), true
		}
		switch {
		case len(list) == 10:
			return fs.SkipAll
		case out && dir:
			return fs.SkipDir
		}
		return nil
	})
	return list
}

// readIgnore reads the ignore file of a folder, a regular file within the limits; "": none.
func readIgnore(folder string) (string, error) {
	t, err := confined.Folder{Path: folder}.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = t.Close() }() // only read
	f, err := t.File(IgnoreName)
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

// Limits of .scrimpignore.
const (
	maxIgnore   = 1 << 20 // bytes
	maxPatterns = 10_000  // lines
)

// CheckFile returns what is wrong with the size of a file.
func CheckFile(name string, size int64) error {
	if name == IgnoreName && size > maxIgnore {
		return fmt.Errorf("%s has more than %d MiB", IgnoreName, maxIgnore>>20)
	}
	return nil
}

// isIncomplete reports whether a name is that of an incomplete file, which machines do not need.
func isIncomplete(path string) bool {
	return strings.HasPrefix(filepath.Base(path), ".") || strings.HasSuffix(path, ".tmp")
}
