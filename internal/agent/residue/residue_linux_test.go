package residue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
)

// EndUser removes a task user's files on every local disk that all users may write to, wherever it
// is mounted. It skips network file systems and touches nobody else's files.
func TestEndUser_RemovesFilesOnScratchDisk(t *testing.T) {
	lane.Component(t, "host")
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root makes files of other users")
	}
	const user = 1<<30 + 7
	top, mounts := t.TempDir(), strings.Builder{}
	kept := map[string]bool{} // path to whether it stays
	for kind, stays := range map[string]bool{"ext4": false, "xfs": false, "tmpfs": false, "nfs4": true, "lustre": true} {
		dir := filepath.Join(top, "a "+kind)
		fmt.Fprintf(&mounts, "24 1 8:1 / %s rw - %s /dev/x rw\n", strings.ReplaceAll(dir, " ", `\040`), kind)
		for name, owner := range map[string]int{"mine": user, "open/mine": user, "theirs": user + 1, "roots": 0} {
			path := filepath.Join(dir, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o666), os.Chown(path, owner, owner),
				os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky), os.Chmod(dir, 0o777|os.ModeSticky))
			if err != nil {
				t.Fatal(err)
			}
			kept[path] = stays || owner != user
		}
	}
	file := filepath.Join(top, "mountinfo")
	if err := os.WriteFile(file, []byte(mounts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(old string) { mountsFile = old }(mountsFile)
	mountsFile = file
	if err := NoneShared(user, top); err == nil {
		t.Error("nothing is found to be left")
	}
	if err := EndUser(user, top); err != nil {
		t.Error(err)
	}
	for path, stays := range kept {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v, and it is to stay: %v", path, err, stays)
		}
	}
}

// A folder that someone removes during the search is not an error.
func TestEachShared_IgnoresRemovedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := (&shared{user: 1 << 30}).each(root, dir); err != nil {
		t.Error(err)
	}
}

// The search reaches the end of folders that are nested deeper than a path may be long. Anyone can make
// them, and they must not stop the clean-up after other users' tasks.
func TestEachShared_SearchesAnyDepth(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root makes files of other users")
	}
	const depth, user = 1100, 1<<30 + 7 // names of 4 bytes: longer than PATH_MAX, 4,096
	top, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = top.Close() }()
	dir := top
	for range depth {
		if err := errors.Join(dir.Mkdir("dir", 0o755), dir.Mkdir("two", 0o755), dir.Chmod("dir", 0o777)); err != nil {
			t.Fatal(err)
		}
		next, err := dir.OpenRoot("dir")
		if err != nil {
			t.Fatal(err)
		}
		if dir != top {
			_ = dir.Close()
		}
		dir = next
	}
	if err := errors.Join(dir.WriteFile("mine", nil, 0o600), dir.Chown("mine", user, user), dir.Close()); err != nil {
		t.Fatal(err)
	}
	found := 0
	s := shared{user: user, open: 0o001, do: func(dir *os.Root, name, at string) error {
		found++
		if want := strings.Repeat("/dir", depth); name != "mine" || at != "/x"+want {
			t.Errorf("it found %s in a folder of %d bytes, not of %d", name, len(at), len(want))
		}
		return dir.RemoveAll(name)
	}}
	if err := s.each(top, "/x"); err != nil || found != 1 {
		t.Errorf("it found %d files, not 1 (%v)", found, err)
	}
}
