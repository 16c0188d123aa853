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

// At its start, a server makes the calls that earlier servers have not made. Of a million finished jobs, nearly all
// calls were made; so the server lists the folders once instead of opening a file for each job.

// toldAtOnce bounds the concurrent calls at the start.
const toldAtOnce = 64

// TellOld makes the given calls, and returns when it has made all or ctx ends.
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

// listed returns the set of names in a folder; a missing folder has none.
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

// Unsent returns the calls about finished jobs that earlier servers have not made. If the folder is new, it marks
// all of them as made.
func (o *Outbox) Unsent() (list []core.Notify, err error) {
	dir := filepath.Join(o.Dir, toldFolder)
	made := os.Mkdir(dir, 0o700)
	if made != nil && !errors.Is(made, os.ErrExist) {
		return nil, fmt.Errorf("create the folder of calls made: %w", made)
	}
	told, err := listed(dir)
	if err != nil {
		return nil, fmt.Errorf("read the calls made: %w", err)
	}
	sealed, err := o.Vault.Jobs()
	if err != nil {
		return nil, fmt.Errorf("list the secrets: %w", err)
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
	return nil, markMade(dir, list)
}

// markMade records the calls in the list as made.
func markMade(dir string, list []core.Notify) error {
	for _, n := range list {
		if err := os.WriteFile(filepath.Join(dir, n.Told()), nil, 0o600); err != nil {
			return fmt.Errorf("read the calls made: %w", err)
		}
	}
	return nil
}

// Unasked returns the requests for approval that earlier servers have not made.
func (o *Outbox) Unasked() (list []core.Notify, err error) {
	dir := filepath.Join(o.Dir, askedFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of requested approvals: %w", err)
	}
	asked, err := listed(dir)
	if err != nil {
		return nil, fmt.Errorf("read the requested approvals: %w", err)
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
	for id := range asked { // the job was reviewed
		_ = os.Remove(filepath.Join(dir, id))
	}
	return list, nil
}
