package retention

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/server/disk"
)

// taking is one round of removal.
type taking struct {
	d       *Service
	ctx     context.Context //nolint:containedctx // lives as long as the call that makes it
	rules   rules
	now     time.Time
	done    client.GCDone
	jobs    map[string]*owner
	read    map[string]bool // jobs whose outputs pipelines may still read; nil: not loaded yet
	folders []string        // jobs whose work folders are removed
}

// item removes a thing and records it. It holds the job's lock, so that the job is not resumed meanwhile, and checks
// again.
func (t *taking) item(i client.GCItem, note func(*client.Removed, *time.Time), remove func() error) {
	if !t.rules.dry {
		if err := t.alone(i.Job, note, remove); err != nil {
			if errors.Is(err, errLives) {
				return
			}
			i.Error = err.Error()
		}
	}
	if t.done.Items = append(t.done.Items, i); i.Error == "" && i.Kind != client.GCWork {
		t.done.Bytes += i.Bytes
	}
}

// errLives means that the job was resumed meanwhile.
var errLives = errors.New("the job goes on")

func (t *taking) alone(job string, note func(*client.Removed, *time.Time), remove func() error) error {
	if job == "" {
		return remove()
	}
	defer t.d.Turns.Alone("terms " + job)()
	over := true
	if t.d.Control.Job(job, func(_ *core.Machine, j *core.Job) { over = j.State().Over() && !j.Costs() }) {
		if !over {
			return errLives
		}
		if err := t.d.Kept.Remove(t.ctx, job, note); err != nil {
			return err
		}
	}
	return remove()
}

// workFolders removes the work folders of jobs and their copies in buckets. The sweep removes contents that no other
// job has.
func (t *taking) workFolders() error {
	jobs, err := t.d.Folders.Jobs()
	copies, wrong := t.d.Blobs.Jobs()
	err = errors.Join(err, wrong)
	for job, ref := range jobs {
		why, old, wrong := t.old(job, client.GCWork, ref.Kept)
		if err = errors.Join(err, wrong); wrong != nil || !old {
			continue
		}
		t.folders = append(t.folders, job)
		t.item(client.GCItem{Kind: client.GCWork, Job: job, Bytes: ref.Bytes, Why: why},
			func(r *client.Removed, at *time.Time) { r.Work = at },
			func() error { return errors.Join(t.d.Folders.Drop(job), t.d.Blobs.Drop(t.ctx, job)) })
	}
	for _, job := range copies {
		if _, has := jobs[job]; has { // it is removed with the folder
			continue
		}
		why, old, wrong := t.old(job, client.GCWork, t.now.Add(-machineSpan))
		if err = errors.Join(err, wrong); wrong != nil || !old {
			continue
		}
		t.item(client.GCItem{Kind: client.GCWork, Job: job, Why: why + "; its copy in the bucket was left"},
			func(r *client.Removed, at *time.Time) { r.Work = cmp.Or(r.Work, at) },
			func() error { return t.d.Blobs.Drop(t.ctx, job) })
	}
	return err
}

// sweep removes contents that no folder needs.
func (t *taking) sweep() error {
	swept, err := t.d.Folders.Sweep(t.rules.dry, t.folders...)
	t.done.Bytes += swept.Bytes
	if swept.Objects > 0 && len(t.folders) == 0 {
		t.done.Items = append(t.done.Items, client.GCItem{Kind: client.GCUnused, Bytes: swept.Bytes,
			Why: "no work folder needs it"})
	}
	return err
}

// logs removes output of programs and telemetry.
func (t *taking) logs() error {
	names, err := t.d.Logs.Logs(t.ctx)
	measured, wrong := t.d.Logs.AllSeries(t.ctx)
	err = errors.Join(err, wrong)
	byJob, sizes := map[string][]string{}, map[string]int64{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(measured))))) {
		job := jobOfLog(name)
		if job == "" {
			continue
		}
		size, wrong := t.d.Logs.LogEnd(t.ctx, name)
		err = errors.Join(err, wrong)
		byJob[job], sizes[job] = append(byJob[job], name), sizes[job]+size+measured[name]
	}
	for job, names := range byJob {
		why, old, wrong := t.old(job, client.GCLogs, t.now.Add(-machineSpan))
		if err = errors.Join(err, wrong); wrong != nil || !old {
			continue
		}
		t.item(client.GCItem{Kind: client.GCLogs, Job: job, Bytes: sizes[job], Why: why},
			func(r *client.Removed, at *time.Time) { r.Logs = at }, func() (err error) {
				for _, name := range names {
					err = errors.Join(err, t.d.Logs.DropLog(t.ctx, name))
				}
				return err
			})
	}
	return err
}

// jobOfLog returns the job of an output with the name JOB.ATTEMPT or JOB.ATTEMPT~RANK; "": not such a name.
func jobOfLog(name string) string {
	attempt, _, _ := strings.Cut(name, "~")
	return attempt[:max(0, strings.LastIndexByte(attempt, '.'))]
}

// blobs removes outputs and checkpoints from the server's own store. Files in other stores belong to their owners.
func (t *taking) blobs() error {
	top := filepath.Join(t.d.Dir, "blobs", "jobs")
	jobs, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, j := range jobs {
		dir := filepath.Join(top, j.Name())
		info, wrong := os.Stat(dir)
		if wrong == nil && j.IsDir() {
			wrong = errors.Join(t.outputs(j.Name(), dir, info.ModTime()), t.checkpoints(j.Name(), info.ModTime()))
		}
		if wrong != nil && !errors.Is(wrong, fs.ErrNotExist) {
			err = errors.Join(err, wrong)
		}
	}
	return err
}

func (t *taking) outputs(job, dir string, changed time.Time) error {
	if t.mayBeRead(job) {
		return nil
	}
	why, old, err := t.old(job, client.GCOutputs, changed)
	size := disk.Used(filepath.Join(dir, "outputs")) + disk.Used(filepath.Join(dir, "objects", "kept"))
	if err != nil || !old || size == 0 {
		return err
	}
	t.dropOutputs(job, dir, size, why)
	return nil
}

// dropOutputs removes the outputs of a job, which are in the folder dir.
func (t *taking) dropOutputs(job, dir string, size int64, why string) {
	t.item(client.GCItem{Kind: client.GCOutputs, Job: job, Bytes: size, Why: why},
		func(r *client.Removed, at *time.Time) { r.Outputs = at }, func() error {
			root, err := os.OpenRoot(dir) // confines the removal: a program may have made objects a link
			if err != nil {
				return err
			}
			return errors.Join(root.RemoveAll("outputs"), // first, so that no output is left without its parts
				root.RemoveAll(filepath.Join("objects", "kept")), root.Close())
		})
}

// mayBeRead reports whether an unfinished pipeline may still read the outputs of a job.
func (t *taking) mayBeRead(job string) bool {
	if t.read == nil {
		t.d.Control.Read(func(m *core.Machine) { t.read = m.State().StageJobs() })
	}
	return t.read[job]
}

func (t *taking) checkpoints(job string, changed time.Time) error {
	why, old, err := t.old(job, client.GCCheckpoints, changed)
	if err != nil || !old {
		return err
	}
	o, err := t.owner(job)
	if err != nil {
		return err
	}
	newest := !o.known || t.rules.newest > 0 && t.now.Sub(o.ended) > t.rules.newest
	return t.d.Kept.Own(t.ctx, job, func(store *checkpoint.Store) error {
		is, err := store.Old(t.ctx, newest)
		if err != nil || len(is.Names) == 0 && is.Bytes == 0 {
			return err
		}
		if !newest {
			why += "; the newest stays"
		}
		t.item(client.GCItem{Kind: client.GCCheckpoints, Job: job, Bytes: is.Bytes, Why: why},
			func(r *client.Removed, at *time.Time) { r.Checkpoints = at },
			func() error { return store.DropOld(t.ctx, is) })
		return nil
	})
}

// machines removes the files of terminated machines on this host.
func (t *taking) machines() (err error) {
	span, wanted := t.rules.spans[client.GCMachines]
	if !wanted {
		return nil
	}
	for _, e := range t.d.Engines {
		l, ok := e.Driver.(engine.Leaver)
		if !ok {
			continue
		}
		left, wrong := l.Left(t.ctx)
		err = errors.Join(err, wrong)
		for _, f := range left {
			if age := t.now.Sub(f.Changed); age > span {
				t.item(client.GCItem{Kind: client.GCMachines, Name: f.Instance, Bytes: disk.Used(f.Path),
					Why: "the machine ended " + formatSpan(age) + " ago"}, nil, func() error { return removeAll(f.Path) })
			}
		}
	}
	return err
}

// removeAll removes a folder, even if it contains folders without write permission.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder must be entered to be emptied
		}
		return err
	})
	return os.RemoveAll(dir)
}
