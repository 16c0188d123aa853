package stages

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/workdir"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// warmed puts what the deployed version has made into the work folder of a stage with a warm start. While no version is
// deployed, the folder stays as it is. It returns nil without a warm start.
func (f *Files) warmed(ctx context.Context, s groups.Snapshot, n int, items []workdir.Item) ([]workdir.Item,
	*pipeline.Warmed, error) {
	w := s.Pipeline.Stages[n].Warm
	if w == nil {
		return items, nil, nil
	}
	is, job := f.lastGood(s.Group, *w)
	if is.Version == 0 {
		is.Digest, _ = NewTree(items).digest(w.To, 0)
		return items, is, nil
	}
	fail := func(err error) ([]workdir.Item, *pipeline.Warmed, error) {
		return nil, nil, fmt.Errorf("its warm start has no %s of version %d, which is deployed: %w: leave warm_start out "+
			"for one run", w.From, is.Version, err)
	}
	if job == "" {
		return fail(fmt.Errorf("no stage of %s has made it", is.Run))
	}
	made, err := f.made(ctx, job, []string{w.From}, nil)
	if err != nil {
		return fail(err)
	}
	items = slices.DeleteFunc(slices.Clone(items), func(i workdir.Item) bool { return inside(w.To, i.Path) })
	items = slices.Concat(items, parents(items, w.To))
	there := false
	for _, i := range made {
		if inside(w.From, i.Path) {
			there, i.Path = true, w.To+strings.TrimPrefix(i.Path, w.From)
			items = append(items, i)
		}
	}
	if !there {
		return fail(fmt.Errorf("%s did not make it", job))
	}
	slices.SortStableFunc(items, byPath)
	is.Digest, _ = NewTree(items).digest(w.To, 0)
	return items, is, nil
}

// lastGood is the version that a run would begin with, and the job that has made its output; version 0: none is
// deployed, and job "": no stage of the version made it.
func (f *Files) lastGood(run string, w pipeline.Warm) (is *pipeline.Warmed, job string) {
	is = &pipeline.Warmed{Warm: w}
	f.Control.Read(func(m *core.Machine) {
		var g *state.Group
		if job, g = m.State().WarmOf(m.State().Group(run), w); g != nil {
			is.Version, is.Run = g.Version, g.Name
		}
	})
	return is, job
}

// inside reports whether a path is another one, or lies below it.
func inside(at, p string) bool { return p == at || strings.HasPrefix(p, at+"/") }

// parents returns the folders above a path that a work folder lacks.
func parents(items []workdir.Item, p string) (list []workdir.Item) {
	for up := path.Dir(p); up != "."; up = path.Dir(up) {
		if !slices.ContainsFunc(items, func(i workdir.Item) bool { return i.Path == up }) {
			list = append(list, workdir.Item{Path: up, Mode: fs.ModeDir | 0o755})
		}
	}
	return list
}
