package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/isolate"
)

// What a server before this one has not told anybody is told at the start. Of a
// million jobs that are over nearly all are told: so the folders are listed once,
// and no file is asked for by the name of its job.

// toldAtOnce is how many words of before are told at once.
const toldAtOnce = 64

// TellOld tells them, and returns when all are told or ctx ends.
func (o *Outbox) TellOld(ctx context.Context, words []core.Notify) {
	next := make(chan core.Notify)
	var all sync.WaitGroup
	for range min(toldAtOnce, len(words)) {
		all.Go(func() {
			for n := range next {
				isolate.Retry(ctx, o.Log, "webhook of job "+n.Job, func() { o.Notify(ctx, n) })
			}
		})
	}
	defer all.Wait()
	defer close(next)
	for _, n := range words {
		select {
		case next <- n:
		case <-ctx.Done():
			return
		}
	}
}

// listed is the set of the names in a folder; one that is not there has none.
func listed(dir string) (map[string]bool, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set, nil
}

// Unsent are the words of jobs that are over whose webhook a server before this
// one has not told. In a folder that no server has noted anything in, all are told.
func (o *Outbox) Unsent() (list []core.Notify, err error) {
	dir := filepath.Join(o.Dir, toldFolder)
	made := os.Mkdir(dir, 0o700)
	if made != nil && !errors.Is(made, os.ErrExist) {
		return nil, fmt.Errorf("make the folder of what was told: %w", made)
	}
	told, err := listed(dir)
	if err != nil {
		return nil, fmt.Errorf("look at what was told: %w", err)
	}
	sealed, err := o.Vault.Jobs()
	if err != nil {
		return nil, fmt.Errorf("look at the secrets: %w", err)
	}
	due := func(j *core.Job) bool { return j.Terms().Notify && !told[core.ToldOf(j.ID(), j.Reopened())] }
	o.Control.Read(func(m *core.Machine) {
		for j := range m.Jobs() {
			if j.State().Over() && due(j) {
				list = append(list, core.NotifyOf(j))
			}
		}
		maps.DeleteFunc(sealed, func(job string, _ bool) bool {
			if g := m.State().Group(job); g != nil && g.Phase != state.GroupOver {
				return true
			}
			j, ok := m.Job(job)
			return ok && (!j.State().Over() || due(j))
		})
	})
	for job := range sealed { // a server that was killed may not have come to it
		o.Forget(job)
	}
	if made != nil {
		return list, nil
	}
	return nil, noted(dir, list)
}

// noted notes that all of the list were told.
func noted(dir string, list []core.Notify) error {
	for _, n := range list {
		if err := os.WriteFile(filepath.Join(dir, n.Told()), nil, 0o600); err != nil {
			return fmt.Errorf("look at what was told: %w", err)
		}
	}
	return nil
}

// Unasked are the approvals that a server before this one has not asked for.
func (o *Outbox) Unasked() (list []core.Notify, err error) {
	dir := filepath.Join(o.Dir, askedFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of what was asked for: %w", err)
	}
	asked, err := listed(dir)
	if err != nil {
		return nil, fmt.Errorf("look at what was asked for: %w", err)
	}
	o.Control.Read(func(m *core.Machine) {
		for j := range m.Jobs() {
			if j.State() == core.Held && !asked[j.ID()] {
				list = append(list, core.NotifyOf(j))
			}
		}
		for id := range asked {
			if j, ok := m.Job(id); ok && j.State() == core.Held {
				delete(asked, id)
			}
		}
	})
	for id := range asked { // it was reviewed
		_ = os.Remove(filepath.Join(dir, id))
	}
	return list, nil
}
