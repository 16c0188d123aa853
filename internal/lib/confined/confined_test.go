package confined_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"scrimp/internal/lib/confined"
	"scrimp/internal/test/must"
)

// folders returns a folder to read, within another one, and a folder beside it that must not be reached. Both hold a
// file and a folder with the same names.
func folders(t *testing.T) (f confined.Folder, outside string) {
	t.Helper()
	top := t.TempDir()
	f = confined.Folder{Path: filepath.Join(top, "task", "dir"), Within: filepath.Join(top, "task")}
	outside = filepath.Join(top, "outside")
	for dir, content := range map[string]string{f.Path: "mine", outside: "secret"} {
		for _, name := range []string{"file", "sub/file"} {
			at := filepath.Join(dir, name)
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(content), 0o600)))
		}
	}
	return f, outside
}

// seen lists all names and contents that a reader finds in a folder.
func seen(f confined.Folder) (list []string) {
	tree, err := f.Open()
	if err != nil {
		return nil
	}
	defer tree.Close()
	_ = tree.Walk(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it is being replaced
		}
		if file, err := tree.File(name); err == nil {
			b, _ := io.ReadAll(file)
			list = append(list, name+" "+string(b))
			_ = file.Close()
		}
		return nil
	})
	if file, err := f.File(filepath.Join(f.Path, "sub", "file")); err == nil {
		b, _ := io.ReadAll(file)
		list = append(list, "sub/file "+string(b))
		_ = file.Close()
	}
	return list
}

// A link that leads out is an error, even as the folder itself, and so is a path that is not below. A link that stays
// inside is followed.
func TestOpen_RefusesFoldersOutside(t *testing.T) {
	f, outside := folders(t)
	away, home := f, f
	away.Path, home.Path = filepath.Join(f.Within, "away"), filepath.Join(f.Within, "home")
	err := errors.Join(os.Symlink(outside, away.Path), os.Symlink("dir", home.Path))
	must.Do(t, err)
	if tree, err := away.Open(); err == nil {
		t.Errorf("%v was opened", tree)
	}
	if err := (confined.Folder{Path: filepath.Join(away.Path, "new"), Within: f.Within}).Make(); err == nil {
		t.Error("a folder was made through a link")
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("a folder was made outside")
	}
	for _, path := range []string{outside, filepath.Dir(f.Within), f.Within + "/../outside"} {
		if _, err := (confined.Folder{Path: path, Within: f.Within}).Open(); !errors.Is(err, confined.ErrOutside) {
			t.Errorf("%s: %v", path, err)
		}
	}
	want := []string{"file mine", "sub/file mine", "sub/file mine"}
	if got := seen(home); !slices.Equal(got, want) {
		t.Errorf("through a link that stays inside %v", got)
	}
	made := confined.Folder{Path: filepath.Join(f.Within, "a", "b"), Within: f.Within}
	if err := made.Make(); err != nil {
		t.Error(err)
	}
}

// File does not read files of others, pipes and folders, and never waits for a pipe.
func TestFile_ReadsOnlyFilesOfTheOwner(t *testing.T) {
	f, _ := folders(t)
	must.Do(t, syscall.Mkfifo(filepath.Join(f.Path, "pipe"), 0o600))
	for _, f := range []confined.Folder{f, {Path: f.Path}} {
		for _, name := range []string{"pipe", "sub", "missing"} {
			if file, err := f.File(filepath.Join(f.Path, name)); err == nil || file != nil {
				t.Errorf("%s was opened", name)
			}
		}
		if got := seen(f); len(got) != 3 {
			t.Errorf("read is %v", got)
		}
		f.Owner = os.Getuid() + 1
		if got := seen(f); len(got) > 0 {
			t.Errorf("of another user %v", got)
		}
	}
}
