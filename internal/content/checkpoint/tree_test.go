package checkpoint_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// tree maps the paths in a folder to mode, time, link and content.
type tree map[string]string

func read(t testing.TB, dir string) tree {
	t.Helper()
	all := tree{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		stat, err := d.Info()
		if err != nil {
			return err
		}
		v := stat.Mode().String()
		switch {
		case stat.Mode().IsRegular():
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			v += stat.ModTime().UTC().Format(time.RFC3339Nano) + string(data)
		case stat.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			v += target
		}
		all[rel] = v
		return nil
	})
	must.Do(t, err)
	return all
}

func (a tree) equal(b tree) bool { return maps.Equal(a, b) }

// diff names the paths that differ.
func (a tree) diff(b tree) string {
	s := ""
	for _, p := range slices.Sorted(maps.Keys(a)) {
		if v, ok := b[p]; !ok {
			s += " -" + p
		} else if v != a[p] {
			s += fmt.Sprintf(" ~%s(%.40q, %.40q)", p, a[p], v)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[p]; !ok {
			s += " +" + p
		}
	}
	return s
}

func put(t testing.TB, dir, path, content string) {
	t.Helper()
	at := filepath.Join(dir, path)
	must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must.Do(t, os.WriteFile(at, []byte(content), 0o644))
	settle(t, at)
}

// settle makes a file look as if it had been written a while ago, each time at another moment, so that it is linked
// and its next change is visible.
func settle(t testing.TB, at string) {
	t.Helper()
	when := time.Unix(1_700_000_000, moment.Add(1)*1_000_000)
	must.Do(t, os.Chtimes(at, when, when))
}

var moment atomic.Int64

// edit changes the folder as a program might: it writes in place, replaces, appends, removes, and creates folders and
// links.
func edit(t testing.TB, r *rand.Rand, dir string) {
	t.Helper()
	names := []string{"model.bin", "opt.bin", "a/b/c.bin", "a/state.json", "empty"}
	at := filepath.Join(dir, names[r.IntN(len(names))])
	content := make([]byte, r.IntN(40))
	for i := range content {
		content[i] = byte('a' + r.IntN(3)) // few letters, so that parts repeat
	}
	must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
	switch r.IntN(7) {
	case 0, 1: // in place
		must.Do(t, os.WriteFile(at, content, 0o640))
		settle(t, at)
	case 2: // write a temporary file and rename it
		must.Do(t, os.WriteFile(at+".tmp", content, 0o600))
		settle(t, at+".tmp")
		must.Do(t, os.Rename(at+".tmp", at))
	case 3: // append
		f, err := os.OpenFile(at, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		must.Do(t, err)
		_, err = f.Write(content)
		must.Do(t, err)
		must.Do(t, f.Close())
		settle(t, at)
	case 4:
		must.Do(t, os.RemoveAll(at))
	case 5:
		must.Do(t, os.MkdirAll(filepath.Join(dir, "hollow", fmt.Sprint(r.IntN(3))), 0o750))
	case 6:
		link := filepath.Join(dir, "last")
		_ = os.Remove(link)
		must.Do(t, os.Symlink("a/state.json", link))
	}
}
