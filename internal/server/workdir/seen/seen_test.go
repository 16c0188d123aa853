package seen

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// later is a clock on which files that were just written have settled.
func later() time.Time { return time.Now().Add(time.Hour) }

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	must.Do(t, err)
	return info
}

// A file is known after a restart until anything has changed it, even if its size and time of modification are those of
// before.
func TestFiles_KnowOnlyUnchangedFiles(t *testing.T) {
	dir := t.TempDir()
	at, index := filepath.Join(dir, "file"), filepath.Join(dir, "seen", "index")
	must.Do(t, os.WriteFile(at, []byte("one"), 0o600))
	before := stat(t, at)
	f := Load(index, later)
	if _, known := f.Of(before); known {
		t.Error("a file is known before it was read")
	}
	f.Add(before, stat(t, at), "sum")
	f.Save()
	f = Load(index, later)
	if sum, known := f.Of(stat(t, at)); !known || sum != "sum" {
		t.Errorf("an unchanged file is %q, %v", sum, known)
	}
	f.Save()
	must.Do(t, os.WriteFile(at, []byte("two"), 0o600))
	must.Do(t, os.Chtimes(at, before.ModTime(), before.ModTime()))
	if after := stat(t, at); after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		t.Fatal("the test changes more than the content")
	} else if _, known := f.Of(after); known && stamp(after) != stamp(before) {
		t.Error("a changed file is known")
	}
	f.Add(before, stat(t, at), "mixed") // changed while it was read
	if stamp(before) != stamp(stat(t, at)) && f.now[stamp(stat(t, at))] != "" {
		t.Error("a file that changed while it was read is remembered")
	}
	text, err := os.ReadFile(index)
	must.Do(t, err)
	text[len(text)-2] ^= 1
	must.Do(t, os.WriteFile(index, text, 0o600))
	if _, known := Load(index, later).Of(before); known {
		t.Error("a damaged index is read")
	}
}

// A file that changed a moment ago could change again within the resolution of its times, so it is not remembered.
func TestFiles_ForgetFilesThatHaveNotSettled(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(at, []byte("one"), 0o600))
	changed := stat(t, at).ModTime()
	for age, want := range map[time.Duration]bool{0: false, settled - time.Second: false, settled + time.Second: true} {
		f := Load(filepath.Join(dir, "none"), func() time.Time { return changed.Add(age) })
		f.Add(stat(t, at), stat(t, at), "sum")
		if got := len(f.now) > 0; got != want {
			t.Errorf("a file that changed %v ago is remembered: %v", age, got)
		}
	}
}

// Folders that nobody copied for 30 days are forgotten.
func TestFiles_ForgetOldFolders(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"old": keep + time.Hour, "new": keep - time.Hour} {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, nil, 0o600))
		must.Do(t, os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)))
	}
	f := Load(filepath.Join(dir, "mine"), time.Now)
	f.now["stamp"] = "sum"
	f.Save()
	var left []string
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if len(left) != 2 || left[0] != "mine" || left[1] != "new" {
		t.Errorf("%q are left", left)
	}
}
