package checkpoint

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/wait"
)

// Of returns the store as one machine of a gang sees it: from a checkpoint of all ranks it restores its own part.
func (s *Store) Of(rank, nodes int) *Store {
	u := *s
	u.rank, u.nodes = rank, nodes
	return &u
}

// own returns this machine's part of a checkpoint.
func (s *Store) own(m format.Manifest) (format.Manifest, error) {
	switch {
	case m.Ranks == 0 || s.nodes == 0:
		return m, nil
	case m.Ranks != s.nodes:
		return m, fmt.Errorf("%w: %s has the parts of %d, and %d start: use as many as before, or save what any number "+
			"can read on rank 0 alone", ErrRanks, m.Name, m.Ranks, s.nodes)
	}
	part := m
	part.Files, part.Bytes = nil, 0
	for _, f := range m.Files {
		if path, ok := strings.CutPrefix(f.Path, strconv.Itoa(s.rank)+"/"); ok {
			f.Path = path
			part.Files = append(part.Files, f)
			part.Bytes += f.Size
		}
	}
	return part, nil
}

func (s *Store) fetchOwn(ctx context.Context, m format.Manifest, dir string) error {
	part, err := s.own(m)
	if err != nil {
		return err
	}
	return s.objects.Fetch(ctx, part, dir)
}

// start tells the machines of a gang which checkpoint rank 0 has restored.
type start struct {
	Writer   string `json:"writer"`
	Manifest string `json:"manifest"` // empty: none
}

// Lead tells the other machines of a gang what rank 0 has restored, so that they restore the same.
func (w *Writer) Lead(ctx context.Context, r Restored) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := start{Writer: w.name}
	if r.Manifest != nil {
		s.Manifest = r.Manifest.Name
	}
	data, err := format.Seal(s)
	if err == nil {
		err = w.store.objects.Create(ctx, "starts/"+w.token.String(), data)
	}
	if err != nil {
		return fmt.Errorf("tell the gang which checkpoint to start from: %w", err)
	}
	return nil
}

// Follower is a machine of a gang other than rank 0's. It reads, stores its part of checkpoints under the claim of
// rank 0, and publishes nothing.
type Follower struct {
	store   *Store
	token   token
	attempt string

	patience time.Duration // how long to wait for rank 0 to publish a shared step
}

// How often the machines of a gang poll each other's progress, and how long a machine with a stored part waits for
// rank 0 before it continues.
const (
	firstLook     = 100 * time.Millisecond
	slowestLook   = 2 * time.Second
	sharePatience = 30 * time.Second
)

// until calls done again and again, less and less often, until it returns true or an error, or ctx is done.
func until(ctx context.Context, done func() (bool, error)) error {
	for pause := firstLook; ; pause = min(pause*3/2, slowestLook) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// Follow waits for rank 0's claim of this epoch and attempt. It returns ErrFenced if a newer attempt has claimed.
func (s *Store) Follow(ctx context.Context, epoch int, attempt string) (*Follower, error) {
	f := &Follower{store: s, attempt: attempt, patience: sharePatience}
	err := until(ctx, func() (bool, error) {
		names, err := s.objects.Names(ctx, "fences") // the fence fixes what counts for this epoch
		if err != nil {
			return false, err
		}
		f.token = newest(names)
		if f.token.epoch > epoch {
			return false, fmt.Errorf("%w: epoch %d", ErrFenced, f.token.epoch)
		}
		return f.token.epoch == epoch, nil
	})
	if err == nil {
		err = f.same(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("follow epoch %d for %s: %w", epoch, attempt, err)
	}
	return f, nil
}

// same checks that the claim belongs to this attempt.
func (f *Follower) same(ctx context.Context) error {
	data, err := f.store.objects.Read(ctx, "claims/"+f.token.String())
	if err != nil {
		return err
	}
	var c claim
	if err := format.Unseal(data, &c); err != nil {
		return fmt.Errorf("read claims/%s: %w", f.token, err)
	}
	if c.Attempt != f.attempt {
		return fmt.Errorf("%w: attempt %s has the same epoch", ErrFenced, c.Attempt)
	}
	return nil
}

// unfenced returns ErrFenced if a newer attempt has claimed. A newer session of this attempt's rank 0 fences nobody:
// its program has ended, and so has the attempt.
func (f *Follower) unfenced(ctx context.Context) error {
	newest, err := f.store.newestClaim(ctx)
	if err == nil && newest.epoch > f.token.epoch {
		err = fmt.Errorf("%w: claim %s is newer than %s", ErrFenced, newest, f.token)
	}
	return err
}

// Restore puts into folder dir what rank 0 has restored, or this machine's part of it. It fetches rank 0's probable
// choice while rank 0 does the same, and waits for its decision.
func (f *Follower) Restore(ctx context.Context, dir string) (Restored, error) {
	r, v, err := f.store.restore(ctx, f.token.epoch, dir)
	if err != nil {
		return r, err
	}
	var s start
	if err := until(ctx, func() (bool, error) { return f.started(ctx, &s) }); err != nil {
		return r, fmt.Errorf("restore to %s: %w", dir, err)
	}
	switch {
	case r.Manifest != nil && r.Manifest.Name == s.Manifest, r.Manifest == nil && s.Manifest == "":
		return r, nil
	case s.Manifest == "": // discard what was fetched
		r.Manifest = nil
		return r, f.store.objects.Fetch(ctx, format.Manifest{}, dir)
	}
	m, err := f.store.manifest(ctx, v, s.Manifest)
	if err == nil {
		err = f.store.fetchOwn(ctx, m, dir)
	}
	if err != nil {
		return r, fmt.Errorf("restore to %s the checkpoint of rank 0: %w", dir, err)
	}
	r.Manifest = &m
	return r, nil
}

// started reports whether rank 0 has announced the checkpoint from which the gang starts.
func (f *Follower) started(ctx context.Context, s *start) (bool, error) {
	if err := f.unfenced(ctx); err != nil {
		return false, err
	}
	names, err := f.store.objects.Names(ctx, "starts")
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if name != f.token.String() {
			continue
		}
		data, err := f.store.objects.Read(ctx, "starts/"+name)
		if err == nil {
			err = format.Unseal(data, s)
		}
		return true, err
	}
	return false, nil
}
