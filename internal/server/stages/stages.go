// Package stages reads the files of pipelines: the inputs of a stage, which determine its key; whether a stage with
// that key has run before; and whether a stage has made its outputs. The log has its answers, with the moves of the
// planner.
package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/workdir"
	"scrimp/internal/server/workdir/missing"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/sample"
)

// Files gives access to the files of pipelines, for one proposal of a planner: it reads what many stages share once.
type Files struct {
	Control *control.Control
	Folders *workdir.Store
	Kept    *artifacts.Kept
	// Quota reserves space for the work folder of a team's job, or returns why there is none.
	Quota  func(ctx context.Context, team, job string) error
	Errors *slog.Logger

	sentTo    string                     // the group whose folder is in own
	all       []workdir.Item             // its files
	own       *part                      // those that no stage makes
	manifests map[string]format.Manifest // by job: its outputs
}

// maxManifests bounds the outputs of jobs that a proposal remembers.
const maxManifests = 1024

// Resolve answers a planner that wants to start or complete a stage: it returns the move with the stage's key or
// outputs, or another move. It makes the work folder of a stage that starts. The same files give the same answer.
func (f *Files) Resolve(ctx context.Context, s groups.Snapshot, v groups.Move) (groups.Move, error) {
	if v.Of == nil {
		return v, nil
	}
	var err error
	switch v.Do {
	case groups.Start:
		var pass bool
		if pass, err = f.judge(ctx, s, &v); pass && err == nil {
			pass, err = f.drifted(ctx, s, &v)
		}
		if pass && err == nil {
			err = f.start(ctx, s, &v)
		}
	case groups.Keep:
		err = f.keep(ctx, s, &v)
	case groups.Pause, groups.Resume, groups.Stop, groups.Finish, groups.Reuse, groups.Fail, groups.Skip, groups.Await:
	}
	if v.Do == groups.Skip && v.Of.Gated {
		f.spares(s, &v)
	}
	if err != nil && ctx.Err() == nil {
		f.Errors.Warn("stage fails", "group", s.Group, "stage", s.Pipeline.Stages[v.Of.Stage].Name, "error", err)
		v = failed(v, f.Kept.Plain(err).Error())
		err = nil
	}
	return v, err
}

func failed(v groups.Move, why string) groups.Move {
	const most = 1000
	if len(why) > most {
		why = why[:most] + " …"
	}
	return groups.Move{Do: groups.Fail, Why: why, Of: &groups.StageMove{Stage: v.Of.Stage, Judged: v.Of.Judged}}
}

// start computes the key of a stage, and either reuses an earlier run or makes the work folder.
func (f *Files) start(ctx context.Context, s groups.Snapshot, v *groups.Move) error {
	n := v.Of.Stage
	stage := &s.Pipeline.Stages[n]
	tree, share, err := f.folder(ctx, s, n)
	if err != nil {
		return err
	}
	v.Of.Taken, v.Of.TakenOf = share.Taken, share.Of
	inputs, missing, beyond := tree.contents(stage.Deps)
	if missing != "" && stage.Warm == nil {
		return f.lacks(v, missing)
	}
	v.Of.Key, v.Of.Inputs = stage.Key(inputs), inputs
	if !stage.Always && beyond == "" {
		found, err := f.reuseEarlier(ctx, s, v)
		if found || err != nil {
			return err
		}
	}
	items, warm, err := f.warmed(ctx, s, n, tree.items()) // it is no part of the key: an unchanged stage is reused
	if err != nil {
		return err
	}
	if missing := NewTree(items).Absent(stage.Deps); missing != "" {
		return f.lacks(v, missing)
	}
	v.Of.Warm = warm
	job, team := state.StageJob(s.Group, stage), ""
	if err := f.Folders.Compose(job, items); err != nil {
		return err
	}
	f.Control.Read(func(m *core.Machine) { team = m.State().Group(s.Group).Terms.Owner.Team })
	if err := f.Quota(ctx, team, job); err != nil {
		return errors.Join(fmt.Errorf("the team has used its disk, make room with scrimp gc: %w", err), f.Folders.Drop(job))
	}
	return nil
}

// lacks makes the move one that fails the stage for an input that does not exist.
func (f *Files) lacks(v *groups.Move, input string) error {
	*v = failed(*v, fmt.Sprintf("its input %s does not exist", input))
	return nil
}

// folder returns the work folder of a stage: the files sent with the pipeline, except outputs of stages, and the
// outputs of the stages that it reads. It also returns the share of the data that the stage of a sample gets.
func (f *Files) folder(ctx context.Context, s groups.Snapshot, n int) (t *Tree, share sample.Share, err error) {
	if err := f.shared(s); err != nil {
		return nil, share, err
	}
	t = &Tree{parts: []*part{f.own}}
	var read []workdir.Item
	for _, from := range s.Pipeline.Reads(n) {
		job := s.Stages[from].Job
		takes := s.Pipeline.Stages[n].Takes
		made, err := f.made(ctx, job, s.Pipeline.Stages[from].Outs, nil)
		if err != nil {
			return nil, share, fmt.Errorf("read what %s has made: %w", s.Pipeline.Stages[from].Name, err)
		}
		read = append(read, slices.DeleteFunc(made, func(i workdir.Item) bool { return !takes(i.Path) })...)
	}
	if len(read) > 0 {
		t.parts = append(t.parts, newPart(read))
	}
	if stage := &s.Pipeline.Stages[n]; stage.Sample != "" {
		items, share, err := f.part(ctx, s.Pipeline, stage, f.all, t.items())
		return NewTree(items), share, err
	}
	return t, share, nil
}

// shared reads the files that were sent with a pipeline, unless it has.
func (f *Files) shared(s groups.Snapshot) (err error) {
	if f.own != nil && f.sentTo == s.Folder {
		return nil
	}
	if f.all, err = f.sent(s.Folder); err != nil {
		return err
	}
	made := madeBy(s.Pipeline)
	f.sentTo = s.Folder
	f.own = newPart(slices.DeleteFunc(slices.Clone(f.all), func(i workdir.Item) bool { return inOuts(made, i.Path) }))
	return nil
}

// sent returns the files that the submission of a group stored; none if it stored none.
func (f *Files) sent(group string) ([]workdir.Item, error) {
	var is *state.Stored
	f.Control.Read(func(m *core.Machine) { is = m.State().StoredOf(group) })
	if is != nil && is.Work == "" {
		return nil, nil
	}
	if is != nil { // older releases stored it under the name only
		if err := missing.Check(f.Folders, group, is.Work); err != nil {
			return nil, err
		}
	}
	return f.Folders.Items(group)
}

// made returns the stored files of a job's outputs, sorted by path. check, if set, validates the manifest.
func (f *Files) made(ctx context.Context, job string, outs []string,
	check func(*checkpoint.Store, format.Manifest) error) (items []workdir.Item, err error) {
	err = f.Kept.Own(ctx, job, func(store *checkpoint.Store) error {
		m, err := f.manifest(ctx, store, job)
		if err != nil {
			return err
		}
		m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(file format.File) bool { return !below(outs, file.Path) })
		for _, file := range m.Files {
			items = append(items, f.itemOf(ctx, job, file))
		}
		if check != nil {
			return check(store, m)
		}
		return nil
	})
	slices.SortFunc(items, byPath)
	return items, err
}

// manifest returns the list of a job's outputs.
func (f *Files) manifest(ctx context.Context, store *checkpoint.Store, job string) (format.Manifest, error) {
	if m, read := f.manifests[job]; read {
		return m, nil
	}
	m, err := store.Outputs(ctx, api.OutputsName(job, 0))
	if err != nil {
		return m, err
	}
	if want := f.digestOf(job); want != "" && m.Digest() != want {
		return m, fmt.Errorf("%w: the kept outputs of %s are not those that it reported at its end", format.ErrDamaged, job)
	}
	if f.manifests == nil || len(f.manifests) == maxManifests {
		f.manifests = map[string]format.Manifest{}
	}
	f.manifests[job] = m
	return m, nil
}

// digestOf returns the digest of the outputs that a job reported at its end; "": unknown.
func (f *Files) digestOf(job string) (digest string) {
	f.Control.Job(job, func(_ *core.Machine, j *core.Job) { digest = j.OutputsDigest() })
	return digest
}

// itemOf converts a stored file of a job for a work folder.
func (f *Files) itemOf(ctx context.Context, job string, file format.File) workdir.Item {
	i := workdir.Item{Path: file.Path, Mode: file.Mode, Modified: file.Modified, Size: file.Size, Link: file.Target}
	if file.Mode.IsRegular() {
		i.Name = file.Content()
		i.Content = func(to io.Writer) error {
			return f.Kept.Own(ctx, job, func(store *checkpoint.Store) error { return store.Content(ctx, file, to) })
		}
	}
	return i
}

// reuseEarlier changes the move to a reuse of an earlier run, if all its outputs still exist.
func (f *Files) reuseEarlier(ctx context.Context, s groups.Snapshot, v *groups.Move) (found bool, err error) {
	var was groups.Stage
	var owner ledger.Owner
	deploys := s.Pipeline.Stages[v.Of.Stage].MayDeploy() && v.Of.Stage == s.Pipeline.Deploys()
	f.Control.Read(func(m *core.Machine) {
		g := m.State().Group(s.Group)
		owner = g.Terms.Owner
		ref, ok := m.State().MadeOf(g, v.Of.Key)
		if deploys { // what another version has replaced is deployed again
			if ref, _, ok = m.State().Deployed(g); ok {
				_, _, broken := m.State().Broken(g)
				ok = !broken
			}
		}
		if ok {
			was = m.State().Group(ref.Group).Stages[ref.Stage]
			found = was.Key == v.Of.Key
		}
	})
	if !found && !deploys {
		run, ref, err := f.Control.MadeBefore(ctx, owner.Team, owner.Project, v.Of.Key)
		if err != nil {
			return false, err
		}
		if found = run != nil; found {
			was = run.Stages[ref.Stage]
		}
	}
	if !found {
		return false, nil
	}
	if outs := s.Pipeline.Stages[v.Of.Stage].Outs; !f.kept(ctx, was, outs) {
		return false, ctx.Err() // removed or damaged: run the stage again
	}
	v.Do, v.Why = groups.Reuse, ""
	v.Of.From, v.Of.Product = was.Job, was.Product
	v.Of.Wrong = lacking(s.Pipeline, v.Of.Stage, was.Metrics, was.Wrong) // another gate may judge it now
	return true, nil
}

// kept reports whether all outputs of a stage that ran earlier still exist with the recorded contents.
func (f *Files) kept(ctx context.Context, was groups.Stage, outs []string) bool {
	if len(outs) == 0 { // it has run, and that is all
		return len(was.Outs) == 0
	}
	items, err := f.made(ctx, was.Job, outs, func(store *checkpoint.Store, m format.Manifest) error {
		return store.Verify(ctx, m, checkpoint.Sizes)
	})
	if err != nil {
		return false
	}
	now, missing, _ := contents(items, outs)
	return missing == "" && slices.Equal(now, was.Outs)
}

// keep computes the outputs of a stage.
func (f *Files) keep(ctx context.Context, s groups.Snapshot, v *groups.Move) error {
	stage := &s.Pipeline.Stages[v.Of.Stage]
	if len(stage.Outs) == 0 {
		return nil
	}
	items, err := f.made(ctx, s.Stages[v.Of.Stage].Job, stage.Outs, nil)
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	outs, missing, _ := contents(items, stage.Outs)
	if missing != "" {
		*v = failed(*v, fmt.Sprintf("its job succeeded and did not make %s: let its command write that, or correct outs",
			missing))
		return nil
	}
	v.Of.Outs = outs
	v.Of.Metrics, v.Of.Wrong = figures(items, stage.Metrics)
	v.Of.Wrong = lacking(s.Pipeline, v.Of.Stage, v.Of.Metrics, v.Of.Wrong)
	if len(v.Of.Wrong) > 0 && stage.Sample != "" {
		m := slices.Min(slices.Collect(maps.Keys(v.Of.Wrong)))
		*v = failed(*v, fmt.Sprintf("a gate judges %s, and the sample has not reported it: %s", m, v.Of.Wrong[m]))
		return nil
	}
	for _, i := range items {
		v.Of.Bytes += i.Size
	}
	return nil
}
