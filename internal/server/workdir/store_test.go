package workdir

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/content/tarball"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

func openStore(t testing.TB) *Store {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t testing.TB, data string) *Store {
	t.Helper()
	s := New(data, func() (disk.Left, bool) { return disk.Free(1 << 40), true })
	must.Do(t, s.Recover())
	return s
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, text, 0o644))
}

// held counts the files in a folder, and their bytes.
func held(t testing.TB, dir string) (files int, bytes int64) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		files, bytes = files+1, bytes+info.Size()
		return err
	}))
	return files, bytes
}

// machine returns the job's folder as a machine gets it.
func machine(t testing.TB, s *Store, job string) string {
	t.Helper()
	f, err := s.Tree(job)
	must.Do(t, err)
	to := t.TempDir()
	r, w := io.Pipe()
	go func() {
		_, err := f.Write(t.Context(), w, 0)
		_ = w.CloseWithError(err)
	}()
	must.Do(t, tarball.Unpack(t.Context(), r, to))
	return to
}

// Three jobs with equal folders use the space of one, and only a changed file adds to it.
func TestStore_SharesEqualContents(t *testing.T) {
	t.Parallel()
	s, from := openStore(t), t.TempDir()
	big := make([]byte, 3<<20)
	_, _ = rand.Read(big)
	write(t, filepath.Join(from, "data", "big"), big)
	write(t, filepath.Join(from, "train.py"), []byte("one"))
	must.Do(t, os.Chmod(filepath.Join(from, "train.py"), 0o755))
	must.Do(t, os.Symlink("train.py", filepath.Join(from, "link")))
	for _, job := range []string{"a", "b"} {
		must.Do(t, s.Copy(job, from, s.Dir))
	}
	write(t, filepath.Join(from, "train.py"), []byte("two"))
	must.Do(t, s.Copy("c", from, s.Dir))
	must.Do(t, s.Again("d", "a"))
	if _, n := held(t, s.Dir); n < 3<<20 || n > 3<<20+8<<10 {
		t.Errorf("four jobs of 3 MiB take %d bytes", n)
	}
	for job, want := range map[string]string{"a": "one", "b": "one", "c": "two", "d": "one"} {
		to := machine(t, s, job)
		text, err := os.ReadFile(filepath.Join(to, "link"))
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", job, text, err)
		}
		if got, err := os.ReadFile(filepath.Join(to, "data", "big")); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%s: other data: %v", job, err)
		}
		if info, err := os.Stat(filepath.Join(to, "train.py")); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s: %v, %v", job, info, err)
		}
	}
}

// A program's changes on its machine do not affect others.
func TestStore_ProgramsCannotChangeSharedFiles(t *testing.T) {
	t.Parallel()
	s, from := openStore(t), t.TempDir()
	write(t, filepath.Join(from, "a"), []byte("as sent"))
	must.Do(t, s.Copy("one", from, s.Dir))
	f, err := os.OpenFile(filepath.Join(machine(t, s, "one"), "a"), os.O_WRONLY, 0)
	must.Do(t, err)
	_, _ = f.WriteString("CHANGED")
	must.Do(t, f.Close())
	must.Do(t, s.Again("two", "one"))
	for _, job := range []string{"one", "two"} {
		if text, _ := os.ReadFile(filepath.Join(machine(t, s, job), "a")); string(text) != "as sent" {
			t.Errorf("%s has %q now", job, text)
		}
	}
}

// packed returns a tar file in gzip.
func packed(t testing.TB, entries ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tw := tar.NewWriter(zip)
	for _, e := range entries {
		switch e := e.(type) {
		case tar.Header:
			must.Do(t, tw.WriteHeader(&e))
		case string:
			_, err := tw.Write([]byte(e))
			must.Do(t, err)
		}
	}
	must.Do(t, tw.Close())
	must.Do(t, zip.Close())
	return b.Bytes()
}

func file(name, text string) []any {
	return []any{tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644}, text}
}

// A refused folder leaves nothing behind, whatever is wrong with it and wherever.
func TestStore_RefusedFolderLeavesNothing(t *testing.T) {
	t.Parallel()
	first := file("a/b/first", "some text that nobody else has")
	header := func(h tar.Header) []any { return append(first[:2:2], h) }
	many := func(n int, name string) []any {
		list := first[:2:2]
		for i := range n {
			list = append(list, tar.Header{Name: fmt.Sprintf(name, i), Typeflag: tar.TypeDir})
		}
		return list
	}
	for name, c := range map[string]struct {
		entries []any
		words   string
		before  count // contents of the folder so far
	}{
		"a path upwards":          {append(first[:2:2], file("../out", "x")...), "leads out", count{}},
		"an absolute path":        {append(first[:2:2], file("/tmp/x", "x")...), "leads out", count{}},
		"a link out":              {header(tar.Header{Name: "l", Linkname: "../x", Typeflag: tar.TypeSymlink}), "leads out", count{}},
		"an absolute link":        {append(first[:2:2], link("l", "/etc/passwd")), "leads out", count{}},
		"a link out through one":  {append(append(first[:2:2], link("s/t", "..")), link("l", "s/t/../../etc/passwd")), "leads out", count{}},
		"a link out through two":  {append(append(first[:2:2], link("a/up", "..")), link("b", "a/up/a/up"), link("c/l", "../b/..")), "leads out", count{}},
		"links without end":       {windings(), "lead through too many others", count{}},
		"the ignore file a link":  {header(tar.Header{Name: ".scrimpignore", Linkname: "/dev/zero", Typeflag: tar.TypeSymlink}), "leads out", count{}},
		"a large ignore file":     {append(first[:2:2], file(".scrimpignore", strings.Repeat("a\n", 1<<20))...), "more than 1 MiB", count{}},
		"a hard link":             {header(tar.Header{Name: "l", Linkname: "a/b/first", Typeflag: tar.TypeLink}), "neither", count{}},
		"the same content again":  {append(append(first[:2:2], file("again", "some text that nobody else has")...), file("../x", "")...), "leads out", count{}},
		"a device":                {header(tar.Header{Name: "d", Typeflag: tar.TypeChar}), "neither", count{}},
		"a file twice":            {append(first[:2:2], file("a/b/first", "x")...), "twice", count{}},
		"a file below a link":     {append(header(tar.Header{Name: "l", Linkname: "a", Typeflag: tar.TypeSymlink}), file("l/x", "x")...), "not a folder", count{}},
		"a folder below a file":   {append(first[:2:2], file("a/b/first/c", "x")...), "not a folder", count{}},
		"a deep path":             {header(tar.Header{Name: strings.Repeat("a/", 65) + "a", Typeflag: tar.TypeDir}), "deeper than 64", count{}},
		"a long path":             {header(tar.Header{Name: strings.Repeat("a", 1<<19), Typeflag: tar.TypeDir}), "longer than", count{}},
		"a long name":             {header(tar.Header{Name: strings.Repeat("a", 256), Typeflag: tar.TypeDir}), "longer than 255", count{}},
		"200,001 folders":         {many(10, "f%d"), "more than 200000", count{files: maxFiles - 9}},
		"folders that go unnamed": {many(10, "%d/b/c/d/e"), "more than 200000", count{files: maxFiles - 40}},
		"names of 32 MiB": {many(10, "%d"+strings.Repeat("/"+strings.Repeat("n", 250), 15)), "more than 32 MiB",
			count{names: maxNames - 32_000}},
		"tiny files":               {append(file("t/1", "1"), file("t/2", "2")...), "2 GiB of disk", count{bytes: 2, disk: pack.MaxWork - 2*disk.Block}},
		"a file larger than 2 GiB": {[]any{first[0], first[1]}, "2 GiB", count{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			text := packed(t, c.entries...)
			if strings.HasPrefix(name, "a file larger") {
				text = endless(t)
			}
			err := s.writeTo(s.job("j"), func(w *writer) error {
				w.tree.count = c.before
				return w.unpack(bytes.NewReader(text))
			})
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v; want %q", err, c.words)
			}
			if n, size := held(t, s.Dir); n > 0 {
				t.Errorf("%d files of %d bytes are left", n, size)
			}
		})
	}
}

func link(name, target string) tar.Header {
	return tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}
}

// windings returns links that each lead through the next, a long way round.
func windings() (list []any) {
	for i := range 150 { // each leads through 40 others: 150 exceed mostSteps
		list = append(list, link(fmt.Sprint("l", i), strings.Repeat("d/../", 700)+fmt.Sprint("l", i+1)))
	}
	return list
}

// Links within the folder are accepted, even through others, in circles or to nothing.
func TestStore_AcceptsLinksWithinTheFolder(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	text := packed(t, append(file("a/b/f", "x"), link("a/up", ".."), link("in", "a/up/a/b/f"), link("deep/er/l", "../../in"),
		link("here", "."), link("round", "round"), link("nowhere", "a/none/x"))...)
	must.Do(t, s.writeTo(s.job("j"), func(w *writer) error { return w.unpack(bytes.NewReader(text)) }))
}

// An absolute link into the uploaded folder leads to the same place in the folder elsewhere; one that leads out is
// sent unchanged, and refused by name.
func TestStore_AbsoluteLinksIntoTheFolderBecomeRelative(t *testing.T) {
	t.Parallel()
	from, s := t.TempDir(), openStore(t)
	must.Do(t, os.MkdirAll(filepath.Join(from, "data", "sub"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(from, "data", "f"), []byte("x"), 0o600))
	must.Do(t, os.Symlink(filepath.Join(from, "data", "f"), filepath.Join(from, "data", "sub", "l")))
	var b bytes.Buffer
	must.Do(t, pack.Pack(&b, from, ""))
	must.Do(t, s.writeTo(s.job("j"), func(w *writer) error { return w.unpack(&b) }))
	to := t.TempDir()
	tree, err := s.Tree("j")
	must.Do(t, err)
	var sent bytes.Buffer
	_, err = tree.Write(t.Context(), &sent, 0)
	must.Do(t, err)
	must.Do(t, tarball.Unpack(t.Context(), &sent, to))
	if at, err := os.Readlink(filepath.Join(to, "data", "sub", "l")); err != nil || at != "../f" {
		t.Errorf("it leads to %q, %v", at, err)
	}
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(from, "out")))
	must.Do(t, pack.Pack(&b, from, ""))
	err = s.writeTo(s.job("k"), func(w *writer) error { return w.unpack(&b) })
	if err == nil || !strings.Contains(err.Error(), "out is a link to /etc/passwd") {
		t.Errorf("%v", err)
	}
	must.Do(t, s.Copy("own", from, "")) // on the same host: the link keeps its target
}

// endless returns a tar file that claims a file of 3 GiB.
func endless(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tw := tar.NewWriter(zip)
	must.Do(t, tw.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: 3 << 30, Mode: 0o600}))
	_, err := tw.Write(make([]byte, 1<<20))
	must.Do(t, err)
	_ = zip.Close()
	return b.Bytes()
}

// Unpacking a folder of zeros stops when only the log's reserve is left.
func TestStore_UnpackLeavesTheLogItsReserve(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	left := int64(disk.LogReserve + 5<<20)
	s.Room = func() (disk.Left, bool) { left -= 1 << 20; return disk.Free(left), true }
	err := s.writeTo(s.job("j"), func(w *writer) error {
		return w.unpack(bytes.NewReader(packed(t, file("zeros", strings.Repeat("\x00", 10<<20))...)))
	})
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	if n, _ := held(t, s.Dir); n > 0 {
		t.Errorf("%d files are left", n)
	}
}

// The ignore file is read within its folder and its limits, and a pipe in its place does not block.
func TestIgnoreFile_IsReadWithinLimits(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(path string) error{
		"a device":       func(path string) error { return os.Symlink("/dev/zero", path) },
		"outside":        func(path string) error { return os.Symlink("../../../etc/passwd", path) },
		"a folder":       func(path string) error { return os.Mkdir(path, 0o700) },
		"400 MiB of a":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"too many lines": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("\n"), 10_001), 0o600) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, pack.IgnoreName)
		must.Do(t, place(path))
		if strings.HasPrefix(name, "400") {
			must.Do(t, os.Truncate(path, 400<<20))
		}
		if err := pack.Pack(io.Discard, dir, ""); err == nil || !strings.Contains(err.Error(), pack.IgnoreName) {
			t.Errorf("%s is sent: %v", name, err)
		}
		s := openStore(t)
		if err := s.Copy("j", dir, s.Dir); err == nil {
			t.Errorf("%s is copied", name)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".gitignore"), []byte("*.pt\n"))
	must.Do(t, os.Symlink(".gitignore", filepath.Join(dir, pack.IgnoreName)))
	if out, err := pack.Ignored(dir); err != nil || !out("a.pt", false) {
		t.Errorf("a link within the folder: %v", err)
	}
}

// A sweep removes unneeded contents, and keeps those that a folder needs or that are being written.
func TestSweep_RemovesUnneededContents(t *testing.T) {
	t.Parallel()
	s, from := openStore(t), t.TempDir()
	write(t, filepath.Join(from, "shared"), []byte("shared"))
	write(t, filepath.Join(from, "own"), []byte("of a"))
	must.Do(t, s.Copy("a", from, s.Dir))
	write(t, filepath.Join(from, "own"), []byte("of b"))
	must.Do(t, s.Copy("b", from, s.Dir))
	must.Do(t, s.Drop("a"))
	aged(t, s)
	if is, err := s.Sweep(true); err != nil || is.Objects != 2 {
		t.Errorf("a dry sweep says %+v, %v", is, err)
	}
	must.Do(t, s.writeTo(s.job("c"), func(w *writer) error {
		must.Do(t, w.unpack(bytes.NewReader(packed(t, file("own", "of a")...))))
		aged(t, s) // as if it took an hour
		return nil
	}))
	if is, err := s.Sweep(false); err != nil || is.Objects != 1 {
		t.Errorf("a sweep removes %+v, %v; want the list of a alone", is, err)
	}
	for job, want := range map[string]string{"b": "of b", "c": "of a"} {
		if text, err := os.ReadFile(filepath.Join(machine(t, s, job), "own")); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", job, text, err)
		}
	}
}

// aged makes all contents an hour old.
func aged(t testing.TB, s *Store) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	must.Do(t, filepath.WalkDir(filepath.Join(s.Dir, "objects"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
}

// With concurrent writes, drops and sweeps, each job keeps its whole folder.
func TestSweep_RunsBesideWrites(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var users, sweeps sync.WaitGroup
	stop := make(chan struct{})
	sweeps.Go(func() {
		for {
			if _, err := s.Sweep(false); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for user := range 4 {
		users.Go(func() {
			for n := range lane.Pick(10, 100) {
				job := fmt.Sprintf("j%d-%d", user, n)
				text := packed(t, append(file("same", fmt.Sprint(n%3)), file("other", fmt.Sprint(n%5))...)...)
				if err := s.writeTo(s.job(job), func(w *writer) error { return w.unpack(bytes.NewReader(text)) }); err != nil {
					t.Error(err)
				}
				if err := s.Again(job+"-again", job); err != nil {
					t.Error(err)
				}
				if err := s.Drop(job); err != nil {
					t.Error(err)
				}
				f, err := s.Tree(job + "-again")
				if err == nil {
					_, err = f.Write(t.Context(), io.Discard, 0)
				}
				if err != nil {
					t.Errorf("%s: %v", job, err)
				}
				if err := s.Drop(job + "-again"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	close(stop)
	sweeps.Wait()
	aged(t, s)
	if _, err := s.Sweep(false); err != nil {
		t.Error(err)
	}
	if n, _ := held(t, s.Dir); n > 0 {
		t.Errorf("%d files are left of no job", n)
	}
}

// Opening and sweeping the store removes what a crash has left; existing folders stay whole.
func TestStore_CleansUpAfterACrash(t *testing.T) {
	t.Parallel()
	data, from := t.TempDir(), t.TempDir()
	s := openIn(t, data)
	write(t, filepath.Join(from, "a"), []byte("whole"))
	must.Do(t, s.Copy("whole", from, data))
	w := &writer{s: s} // and nothing after it
	must.Do(t, w.unpack(bytes.NewReader(packed(t, file("b", "half")...))))
	half, err := s.aside()
	must.Do(t, err)
	_, _ = half.WriteString("half of a file")
	must.Do(t, half.Close())
	s = openIn(t, data)
	aged(t, s)
	_, err = s.Sweep(false)
	must.Do(t, err)
	if n, _ := held(t, s.Dir); n != 3 { // the name, the list and the file
		t.Errorf("%d files are there", n)
	}
	if text, err := os.ReadFile(filepath.Join(machine(t, s, "whole"), "a")); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
}

// Machines get a folder's names and times unchanged.
func TestStore_KeepsNamesAndTimes(t *testing.T) {
	t.Parallel()
	s, from := openStore(t), t.TempDir()
	at := time.Unix(1_700_000_000, 123)
	for _, name := range []string{"a b", "line\nbreak", "quote\"", "\xff\xfe", "-", "ä"} {
		write(t, filepath.Join(from, name), []byte(name))
		must.Do(t, os.Chtimes(filepath.Join(from, name), at, at))
	}
	must.Do(t, s.Copy("j", from, s.Dir))
	to := machine(t, s, "j")
	for _, name := range []string{"a b", "line\nbreak", "quote\"", "\xff\xfe", "-", "ä"} {
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil || !info.ModTime().Equal(at) {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
}

// The store imports the folders of an earlier release's jobs.
func TestRecover_ImportsPlainFolders(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	write(t, filepath.Join(data, "work", "old", "a.txt"), []byte("still here"))
	write(t, filepath.Join(data, "work", "old", ".git", "x"), []byte("sent as it was"))
	s := openIn(t, data)
	to := machine(t, s, "old")
	for name, want := range map[string]string{"a.txt": "still here", ".git/x": "sent as it was"} {
		if text, _ := os.ReadFile(filepath.Join(to, name)); string(text) != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "work")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plain folders are there: %v", err)
	}
}

// Folders keep their modes on the machine, whatever the umask is, even without write permission; so do fetched ones.
func TestStore_KeepsModesOfFolders(t *testing.T) {
	t.Parallel()
	s, from, fetched := openStore(t), t.TempDir(), t.TempDir()
	modes := map[string]fs.FileMode{"group": 0o775, "own": 0o700, "read/only": 0o555, "read": 0o555, "most": 0o751}
	for name := range modes {
		write(t, filepath.Join(from, name, "f"), []byte("x"))
	}
	for name, mode := range modes {
		must.Do(t, os.Chmod(filepath.Join(from, name), mode))
	}
	t.Cleanup(func() { // otherwise the test's folders could not be removed
		for _, dir := range []string{from, fetched} {
			for name := range modes {
				_ = os.Chmod(filepath.Join(dir, name), 0o700)
			}
		}
	})
	must.Do(t, s.Copy("a", from, s.Dir))
	var b bytes.Buffer
	must.Do(t, pack.Pack(&b, from, ""))
	must.Do(t, Unpack(&b, fetched))
	for how, to := range map[string]string{"sent": machine(t, s, "a"), "fetched": fetched} {
		for name, want := range modes {
			if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %s is %v, want %v; %v", how, name, info.Mode(), want, err)
			}
			if how == "sent" {
				_ = os.Chmod(filepath.Join(to, name), 0o700)
			}
		}
	}
}
