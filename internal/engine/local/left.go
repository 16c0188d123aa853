package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/engine"
)

// Left implements engine.Leaver. It reads the folders before the list, so that a machine launched
// in between is in neither.
func (d *Driver) Left(ctx context.Context) ([]engine.LeftFolder, error) {
	at := cmp.Or(d.at, filepath.Join(d.dir, "machines"))
	folders, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	runs := map[string]bool{}
	for _, i := range list {
		runs[i.ID] = i.State != engine.Ended
	}
	var left []engine.LeftFolder
	for _, f := range folders {
		if !f.IsDir() || !strings.HasPrefix(f.Name(), "i-") || runs[f.Name()] {
			continue
		}
		l := engine.LeftFolder{Instance: f.Name(), Path: filepath.Join(at, f.Name())}
		for _, name := range []string{"", "console.log", "agent", "tasks"} {
			if info, err := os.Stat(filepath.Join(l.Path, name)); err == nil && info.ModTime().After(l.Changed) {
				l.Changed = info.ModTime()
			}
		}
		left = append(left, l)
	}
	return left, nil
}
