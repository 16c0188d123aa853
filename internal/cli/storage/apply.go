package storage

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/lib/inode"
	"scrimp/internal/work/storage"
)

// A file differs from the plan.
var (
	errChanged = errors.New("it has changed since the plan was made")
	errGone    = errors.New("it is gone")
)

// A target deletes the files of one place.
type target interface {
	// check returns an error unless the file is as the plan has it.
	check(ctx context.Context, d storage.Deletion) error
	remove(ctx context.Context, path string) error
	// census returns which files lie in a checkpoint folder now, and tidy removes the folder if none does.
	census(ctx context.Context, f storage.Folder) (storage.Census, error)
	tidy(f storage.Folder)
	Close() error
}

// open opens a place of a plan.
func open(ctx context.Context, g *guard, p storage.Place) (target, error) {
	if p.Store != storage.Local {
		b, err := blob.OpenExisting(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		_, prefix, _ := bucketOf(p.Name)
		if prefix != "" {
			p.Prefix = prefix + "/"
		}
		return &bucketTarget{b, g, p, map[string]bool{}}, nil
	}
	root, err := os.OpenRoot(p.Name)
	if err != nil {
		return nil, err
	}
	return &folderTarget{root, g, p.Name, map[string]storage.Reason{}}, nil
}

type folderTarget struct {
	*os.Root
	guard *guard
	top   string
	held  map[string]storage.Reason // by folder
}

// heldBy returns why a folder of the place must stay now.
func (t *folderTarget) heldBy(dir string) storage.Reason {
	if r, ok := t.held[dir]; ok {
		return r
	}
	r, _ := t.guard.folder(t.Root, t.top, dir)
	if r == "" && dir == "." {
		r, _ = t.guard.above(t.top)
	} else if r == "" {
		r = t.heldBy(path.Dir(dir))
	}
	t.held[dir] = r
	return r
}

func (t *folderTarget) check(_ context.Context, d storage.Deletion) error {
	if r := t.heldBy(path.Dir(d.Path)); r != "" {
		return fmt.Errorf("it must stay: %s", r)
	}
	if t.guard.needed(filepath.Join(t.top, d.Path)) {
		return fmt.Errorf("it must stay: %s", storage.Needed)
	}
	info, err := t.Lstat(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return t.inWords(d.Path, err)
	}
	id := inode.Of(info)
	if !info.Mode().IsRegular() || info.Size() != d.Bytes || !info.ModTime().Equal(d.Changed) || id.String() != d.ID ||
		id.Links > 1 {
		return errChanged
	}
	if d.Newer == "" {
		return nil
	}
	newer, err := t.Lstat(d.Newer)
	if err != nil || !newer.Mode().IsRegular() || newer.ModTime().Before(d.Changed) {
		return fmt.Errorf("the newer checkpoint %s is gone or has changed", d.Newer)
	}
	return nil
}

func (t *folderTarget) remove(_ context.Context, name string) error { return t.Remove(name) }

type bucketTarget struct {
	*gocloud.Bucket
	guard  *guard
	place  storage.Place
	stores map[string]bool
}

func (t *bucketTarget) check(ctx context.Context, d storage.Deletion) error {
	own, err := inStore(ctx, t.Bucket, t.stores, d.Path)
	if err != nil {
		return err
	}
	if own || t.guard.object(t.place, d.Path) {
		return errors.New("it must stay: a store of scrimp, a live job or --keep has it")
	}
	at, err := t.Attributes(ctx, d.Path)
	if blob.Missing(err) {
		return errGone
	}
	if err != nil {
		return err
	}
	same := at.Size == d.Bytes && at.ModTime.Truncate(time.Second).Equal(d.Changed.Truncate(time.Second))
	if !same || len(at.MD5) > 0 && d.ID != "" && hex.EncodeToString(at.MD5) != d.ID {
		return errChanged
	}
	if d.Newer == "" {
		return nil
	}
	newer, err := t.Attributes(ctx, d.Newer)
	if err != nil || newer.ModTime.Before(d.Changed.Truncate(time.Second)) {
		return fmt.Errorf("the newer checkpoint %s is gone or has changed", d.Newer)
	}
	return nil
}

func (t *bucketTarget) remove(ctx context.Context, name string) error { return t.Delete(ctx, name) }

// maxFaults bounds the changed files that an error names.
const maxFaults = 10

// checkAll opens the targets of a plan and returns what has changed since it was made, at most maxFaults changes.
func checkAll(ctx context.Context, g *guard, p storage.Plan, targets []target,
	tick func(files, bytes int64)) (faults []error, err error) {
	for i, d := range p.Delete {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if targets[d.Place] == nil {
			if targets[d.Place], err = open(ctx, g, p.Places[d.Place]); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Places[d.Place].Name, err)
			}
		}
		if err := targets[d.Place].check(ctx, d); err != nil {
			if faults = append(faults, fmt.Errorf("%s: %w", d.Path, err)); len(faults) == maxFaults {
				return faults, nil
			}
		}
		tick(int64(i), 0)
	}
	return faults, nil
}

// apply deletes the files of a plan. It checks all of them first, and each once more before it deletes it.
func apply(ctx context.Context, g *guard, p storage.Plan,
	tick func(files, bytes int64)) (files, bytes int64, err error) {
	targets := make([]target, len(p.Places))
	defer func() {
		for _, t := range targets {
			if t != nil {
				_ = t.Close()
			}
		}
	}()
	faults, err := checkAll(ctx, g, p, targets, tick)
	if err != nil {
		return 0, 0, err
	}
	if len(faults) == 0 {
		faults = grown(ctx, targets, p.Folders)
	}
	if len(faults) > 0 {
		return 0, 0, fmt.Errorf("nothing is deleted, because the plan is out of date: make a new one: %w",
			errors.Join(faults...))
	}
	for _, d := range p.Delete {
		if ctx.Err() != nil {
			return files, bytes, context.Cause(ctx)
		}
		t := targets[d.Place]
		err := t.check(ctx, d)
		if err == nil {
			err = t.remove(ctx, d.Path)
		}
		if err != nil {
			return files, bytes, fmt.Errorf("delete %s: %w", d.Path, err)
		}
		files, bytes = files+1, bytes+d.Disk()
		tick(files, bytes)
	}
	for _, f := range p.Folders {
		if t := targets[f.Place]; t != nil {
			t.tidy(f)
		}
	}
	return files, bytes, nil
}
