package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tree makes a folder from paths and contents; content that starts with -> is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if to, ok := strings.CutPrefix(content, "->"); ok {
			err = errors.Join(err, os.Symlink(to, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(content), 0o640), os.Chtimes(path, start, start))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir, boot string, l Limits) *Cache {
	t.Helper()
	c, err := Open(dir, boot, l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var roomy = Limits{Number: 3, Bytes: 1 << 20}

func work(path, except string) []Tree { return []Tree{{Name: "work", Path: path, Except: except}} }

// names returns the paths below a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		list = append(list, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list[1:]
}

// Restore returns exactly what Keep stored: names, modes, times, links and contents. Neither
// changes what is at the excepted path.
func TestCache_RestoresWhatItKept(t *testing.T) {
	from := tree(t, map[string]string{"a": "one", "d/b": "two", "out": "->/etc", "d/ckpt/x": "no part", "d/up": "->../a"})
	if err := os.Chmod(filepath.Join(from, "d"), 0o750); err != nil {
		t.Fatal(err)
	}
	c := open(t, t.TempDir(), "boot", roomy)
	if err := c.Keep(t.Context(), Entry{Key: "k", Made: start}, work(from, "d/ckpt")); err != nil {
		t.Fatal(err)
	}
	to := tree(t, map[string]string{"old": "x", "d/older": "y", "d/ckpt/state": "kept"})
	e, err := c.Restore(t.Context(), "k", start, work(to, "d/ckpt"))
	if err != nil || !e.Made.Equal(start) || e.Bytes != 6 {
		t.Fatalf("%+v, %v", e, err)
	}
	if got := names(t, to); !slices.Equal(got, []string{"a", "d", "d/b", "d/ckpt", "d/ckpt/state", "d/up", "out"}) {
		t.Errorf("restored are %v", got)
	}
	st, err := os.Stat(filepath.Join(to, "d", "b"))
	if err != nil || st.Mode() != 0o640 || !st.ModTime().Equal(start) {
		t.Errorf("the file is %v of %v, %v", st.Mode(), st.ModTime(), err)
	}
	if st, err := os.Stat(filepath.Join(to, "d")); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("the folder: %v, %v", st, err)
	}
	if link, err := os.Readlink(filepath.Join(to, "out")); link != "/etc" {
		t.Errorf("the link leads to %q, %v", link, err)
	}
}

// The cache does not use incomplete or modified entries or those of another boot, and removes them.
func TestCache_UsesOnlyCompleteEntries(t *testing.T) {
	from := tree(t, map[string]string{"a": "one"})
	for what, spoil := range map[string]func(dir string) error{
		"content": func(dir string) error {
			a := filepath.Join(dir, "k", "work", "a")
			return errors.Join(os.WriteFile(a, []byte("two"), 0o640), os.Chtimes(a, start, start))
		},
		"mode":     func(dir string) error { return os.Chmod(filepath.Join(dir, "k", "work", "a"), 0o777) },
		"name":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "k", "work", "b"), nil, 0o600) },
		"removed":  func(dir string) error { return os.Remove(filepath.Join(dir, "k", "work", "a")) },
		"replaced": func(dir string) error { return os.Rename(filepath.Join(dir, "k"), filepath.Join(dir, "other")) },
		"cut off":  func(dir string) error { return os.Rename(filepath.Join(dir, "k"), filepath.Join(dir, partial+"1")) },
		"torn":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "k", entryFile), []byte("{"), 0o600) },
		"boot":     nil,
	} {
		dir := t.TempDir()
		c := open(t, dir, "boot", roomy)
		if err := c.Keep(t.Context(), Entry{Key: "k"}, work(from, "")); err != nil {
			t.Fatal(err)
		}
		boot := "boot"
		if spoil == nil {
			boot = "another"
			c = open(t, dir, boot, roomy)
		} else if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		to := tree(t, map[string]string{"old": "x"})
		if e, err := c.Restore(t.Context(), "k", start, work(to, "")); err == nil {
			t.Errorf("%s: %+v is used", what, e)
		}
		if got := names(t, to); !slices.Equal(got, []string{"old"}) {
			t.Errorf("%s: the folder holds %v", what, got)
		}
		if open(t, dir, boot, roomy); len(names(t, dir)) > 0 {
			t.Errorf("%s: left is %v", what, names(t, dir))
		}
	}
}

// The cache keeps a few entries: it removes those unused for longest, and does not keep one that is too large.
func TestCache_EvictsLeastRecentlyUsed(t *testing.T) {
	dir, now := t.TempDir(), start
	c := open(t, dir, "boot", Limits{Number: 3, Bytes: 100})
	keep := func(key string, size int) error {
		from := tree(t, map[string]string{"a": strings.Repeat("x", size)})
		err := c.Keep(t.Context(), Entry{Key: key}, work(from, ""))
		now = now.Add(time.Hour)
		_ = os.Chtimes(filepath.Join(dir, key, entryFile), now, now) // fails if the entry is not kept
		return err
	}
	kept := func() string { l, _ := os.ReadDir(dir); return fmt.Sprint(l) }
	for _, step := range []struct {
		key  string
		size int
		want string
		err  error
	}{
		{"a", 10, "[d a/]", nil}, {"b", 10, "[d a/ d b/]", nil}, {"c", 10, "[d a/ d b/ d c/]", nil},
		{"d", 10, "[d b/ d c/ d d/]", nil}, {"b", 10, "[d b/ d c/ d d/]", nil},
		{"e", 85, "[d b/ d e/]", nil}, {"f", 101, "[d b/ d e/]", ErrRoom},
	} {
		if err := keep(step.key, step.size); !errors.Is(err, step.err) || kept() != step.want {
			t.Errorf("after %s of %d: %v, kept %s, want %s", step.key, step.size, err, kept(), step.want)
		}
	}
	if _, err := c.Restore(t.Context(), "b", now.Add(time.Hour), work(t.TempDir(), "")); err != nil {
		t.Fatal(err)
	}
	if err := keep("g", 10); err != nil || kept() != "[d b/ d g/]" {
		t.Errorf("the one that was used went: %v, %s", err, kept())
	}
	full := open(t, t.TempDir(), "boot", Limits{Number: 3, Bytes: 100, Reserve: 1})
	if err := full.Keep(t.Context(), Entry{Key: "k"}, work(dir, "")); !errors.Is(err, ErrRoom) {
		t.Errorf("with no disk to spare: %v", err)
	}
}

// The share of the disk that stays free can be set, within its bounds.
func TestLeaving_TakesShareFromZeroToOne(t *testing.T) {
	for text, want := range map[string]float64{"": 0.1, "0": 0, "0.25": 0.25, "1": 1} {
		if l, err := Leaving(text); err != nil || l.Reserve != want || l.Number != Default().Number {
			t.Errorf("%q gives %+v, %v", text, l, err)
		}
	}
	for _, text := range []string{"-0.1", "1.1", "NaN", "Inf", "10%", "x"} {
		if _, err := Leaving(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// An interrupted copy leaves nothing behind.
func TestCache_RemovesInterruptedCopy(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, "boot", roomy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Keep(ctx, Entry{Key: "k"}, work(tree(t, map[string]string{"a": "x"}), "")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// The digest of Content covers names, modes, contents and links, but not times.
func TestContent_IgnoresTimes(t *testing.T) {
	files := map[string]string{"a": "one", "d/b": "two", "l": "->a"}
	sum := func(dir string) string {
		s, err := Content(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	same := tree(t, files)
	if err := os.Chtimes(filepath.Join(same, "a"), start, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want := sum(tree(t, files))
	if sum(same) != want {
		t.Error("another time is another content")
	}
	for what, change := range map[string]func(dir string) error{
		"content": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o640) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o600) },
		"name":    func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		"link": func(dir string) error {
			l := filepath.Join(dir, "l")
			return errors.Join(os.Remove(l), os.Symlink("b", l))
		},
		"folder": func(dir string) error { return os.Mkdir(filepath.Join(dir, "e"), 0o755) },
	} {
		dir := tree(t, files)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if sum(dir) == want {
			t.Errorf("another %s is the same content", what)
		}
	}
}
