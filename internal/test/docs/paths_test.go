package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted finds the words between backticks that could be a path: letters, digits, "_", "-", "/" and ".".
var quoted = regexp.MustCompile("`([a-z][a-z0-9_./-]*)`")

// goFolders returns the folders of Go packages, and their files, by path from the repository's folder.
func goFolders(t *testing.T) (folders, files []string) {
	t.Helper()
	for _, top := range []string{"internal", "client", "money", "hack", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			switch {
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir():
				folders = append(folders, filepath.ToSlash(rel))
			case filepath.Ext(path) == ".go":
				files = append(files, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return folders, files
}

// endsIn reports whether a path is name, or ends in it.
func endsIn(paths []string, name string) bool {
	for _, p := range paths {
		if p == name || strings.HasSuffix(p, "/"+name) {
			return true
		}
	}
	return false
}

// A document that names a Go file, a path of internal or, in a row of the list of packages, a package names one that
// exists.
func TestDocs_NamedFilesAndPackagesExist(t *testing.T) {
	t.Parallel()
	folders, files := goFolders(t)
	n := 0
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" { // it also names what is gone
			continue
		}
		for _, line := range strings.Split(text, "\n") {
			packages := name == "docs/design/packages.md" && strings.HasPrefix(line, "| `")
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				word := strings.TrimSuffix(m[1], "/")
				switch {
				case strings.HasSuffix(word, ".go"):
					if n++; !endsIn(files, word) {
						t.Errorf("%s: no file %s", name, word)
					}
				case strings.HasPrefix(word, "internal/") && !strings.Contains(word, "..."):
					_, err := os.Stat(filepath.Join(root, word))
					if n++; err != nil {
						t.Errorf("%s: no %s", name, word)
					}
				case packages:
					if n++; !endsIn(folders, word) {
						t.Errorf("%s: no package %s", name, word)
					}
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d names were checked: the documents were not read", n)
	}
}

// The list of packages names every package right below these folders.
func TestPackages_ListsThePackagesOfAFolder(t *testing.T) {
	t.Parallel()
	text := documents(t)["docs/design/packages.md"]
	listed := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		for _, part := range strings.Split(m[1], "/") {
			listed[part] = true
		}
	}
	for _, folder := range []string{".", "content", "control", "decide", "decide/core", "job", "market", "server", "work", "wire"} {
		list, err := os.ReadDir(filepath.Join(root, "internal", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.IsDir() && d.Name() != "testdata" && !listed[d.Name()] {
				t.Errorf("docs/design/packages.md does not list internal/%s", filepath.ToSlash(filepath.Join(folder, d.Name())))
			}
		}
	}
}
