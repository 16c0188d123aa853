package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/api"
)

// maxWritten bounds the bytes of written files to keep if the job names no output folders.
const maxWritten = 1 << 30

// ignoredFolders lists folders that never hold output of the program.
var ignoredFolders = []string{".git", "__pycache__", ".venv", "venv", "node_modules", ".cache", ".ipynb_checkpoints"}

// version identifies the content of a file by size and time.
type version struct {
	size int64
	at   time.Time
}

// written is a file or a link that the program made or changed.
type written struct {
	name string // path relative to the work folder
	version
}

// keepsWritten reports whether the job asks to keep all files that the program writes.
func (g *Attempt) keepsWritten() bool {
	return g.Task.OutputsURL != "" && slices.Contains(g.Task.Outputs, api.OutputsWritten)
}

// recordWork records the files of the work folder before the program starts.
func (g *Attempt) recordWork() error {
	if !g.keepsWritten() {
		return nil
	}
	list, err := g.listWork()
	g.before = map[string]version{}
	for _, f := range list {
		g.before[f.name] = f.version
	}
	return err
}

// listWork lists the files of the work folder, except those that scrimp keeps elsewhere.
func (g *Attempt) listWork() (list []written, err error) {
	tree, err := g.reading(g.Folders.Work).Open()
	if err != nil {
		return nil, fmt.Errorf("list the work folder: %w", err)
	}
	own := map[string]bool{}
	for _, p := range []string{g.Folders.Checkpoint, g.Folders.Progress} {
		if rel, err := filepath.Rel(g.Folders.Work, p); err == nil {
			own[filepath.ToSlash(rel)] = true
		}
	}
	err = tree.Walk(".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil
		case rel == ".":
			return err
		case d.IsDir() && (own[rel] || slices.Contains(ignoredFolders, path.Base(rel))):
			return fs.SkipDir
		case err != nil: // unreadable folder: list it, so that Keep reports why
			list = append(list, written{name: rel})
			return fs.SkipDir
		case own[rel] || !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
			return nil
		}
		info, err := d.Info()
		if err != nil { // as above, unless it was removed
			if !errors.Is(err, fs.ErrNotExist) {
				list = append(list, written{name: rel})
			}
			return nil
		}
		list = append(list, written{rel, version{info.Size(), info.ModTime()}})
		return nil
	})
	if err = errors.Join(err, tree.Close()); err != nil {
		return nil, fmt.Errorf("list the work folder: %w", err)
	}
	return list, nil
}

// pickWritten returns the newest files that the program made or changed, up to most bytes in total,
// with the number and size of those left out.
func pickWritten(list []written, before map[string]version, most int64) (names []string, left int, leftBytes int64) {
	list = slices.DeleteFunc(slices.Clone(list), func(f written) bool {
		old, was := before[f.name]
		return was && old.size == f.size && old.at.Equal(f.at)
	})
	slices.SortFunc(list, func(a, b written) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name))
	})
	room := most
	for _, f := range list {
		if f.size > room {
			left, leftBytes = left+1, leftBytes+f.size
			continue
		}
		room -= f.size
		names = append(names, f.name)
	}
	return names, left, leftBytes
}

// keepOutputs keeps the outputs of the job on this machine. It returns their location and a
// description of what failed.
func (g *Attempt) keepOutputs(ctx context.Context) (where, wrong string) {
	if len(g.Task.Outputs) == 0 || g.Task.OutputsURL == "" {
		return "", ""
	}
	names := g.Task.Outputs
	if g.keepsWritten() {
		list, err := g.listWork()
		if err != nil {
			g.Log.Error("keep outputs", "error", err)
			return "", fmt.Sprintf("outputs could not be kept: %v", err)
		}
		picked, left, bytes := pickWritten(list, g.before, maxWritten)
		if left > 0 {
			wrong = fmt.Sprintf("%d of the files that the program wrote (%.1f GiB) are not kept, as all are more than %v: name "+
				"folders in outputs of a job file", left, float64(bytes)/float64(size.GiB), size.Bytes(maxWritten))
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == api.OutputsWritten })
		if names = append(names, picked...); len(names) == 0 {
			return "", wrong
		}
	}
	where, lacks, err := g.keeper.Keep(ctx, g.reading(g.Folders.Work), names)
	if err != nil && !errors.Is(err, wire.ErrFenced) {
		g.Log.Error("keep outputs", "error", err)
		wrong = joinText(wrong, fmt.Sprintf("outputs could not be kept: %v", err))
	}
	if len(lacks) > 0 {
		g.Log.Warn("some outputs cannot be kept", "what", lacks.String())
		wrong = joinText(wrong, "outputs that are not kept: "+lacks.String())
	}
	return where, wrong
}
