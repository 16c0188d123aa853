package confined

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// A program creates nested folders, or files, without end. A walk still ends, in a time that does not grow with the
// square of the depth.
func TestWalk_OfAnEndlessTreeEnds(t *testing.T) {
	count := func(dir string) (n int, err error) {
		tree, err := Folder{Path: dir}.Open()
		must.Do(t, err)
		defer tree.Close()
		err = tree.Walk(".", func(_ string, _ fs.DirEntry, err error) error { n++; return err })
		return n, err
	}
	for _, deep := range []int{50, lane.Pick(mostDeep+50, 2000)} {
		root, err := os.OpenRoot(fast.Dir(t))
		must.Do(t, err)
		dir, at := root.Name(), root
		for range deep { // longer than the limit of a path
			must.Do(t, at.Mkdir("d", 0o700))
			below, err := at.OpenRoot("d")
			if err = errors.Join(err, at.Close()); err != nil {
				t.Fatal(err)
			}
			at = below
		}
		_ = at.Close()
		if n, err := count(dir); errors.Is(err, ErrBounds) != (deep > mostDeep) || n > mostDeep+3 {
			t.Errorf("%d deep: %d were visited, %v", deep, n, err)
		}
	}
	defer func(n int) { mostEntries = n }(mostEntries)
	mostEntries = 100
	dir := fast.Dir(t)
	for i := range 101 {
		if n, err := count(dir); err != nil || n != i+1 {
			t.Errorf("%d files: %d were visited, %v", i, n, err)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	if _, err := count(dir); !errors.Is(err, ErrBounds) {
		t.Errorf("more than the bound: %v", err)
	}
}
