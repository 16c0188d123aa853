package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
	"scrimp/internal/content/checkpoint/output"
)

// sharing names what a rank has stored of a step, under the claim of rank 0.
type sharing struct {
	token token
	rank  int
	step  int64
}

func (h sharing) String() string { return fmt.Sprintf("%s-%06d-%012d", h.token, h.rank, h.step) }

// parseShare parses such a name.
func parseShare(name string) (h sharing, ok bool) {
	f := strings.Split(name, "-")
	if len(f) != 4 {
		return h, false
	}
	epoch, session, ok := format.ParseName(f[0] + "-" + f[1])
	rank, errR := strconv.Atoi(f[2])
	step, errS := strconv.ParseInt(f[3], 10, 64)
	h = sharing{token{epoch, session}, rank, step}
	return h, ok && errR == nil && errS == nil && h.String() == name
}

// Writes reports whether a machine of a gang with a rank above 0 writes a key below the job's prefix: its outputs
// and, if each rank has its own part of a checkpoint, its shares of steps. Rank 0 writes everything else.
func Writes(rank int, outputs, key string, allRanks bool) bool {
	folder, rest, ok := strings.Cut(key, "/")
	first, last, parts := strings.Cut(rest, "/")
	switch {
	case !ok || rank < 1:
		return false
	case folder == "outputs":
		return parts && first == outputs
	case folder == "objects" && first == output.Home:
		return parts && last != ""
	case folder == "objects" && parts || folder == "shares" && !parts:
		h, named := parseShare(first)
		return named && h.rank == rank && allRanks
	}
	return false
}

// share is a rank's stored part of a step, read back.
type share struct {
	Rank     int           `json:"rank"`
	Step     int64         `json:"step"`
	Captured time.Time     `json:"captured"`
	Files    []format.File `json:"files"`
}

// putShare makes a share visible. Only its rank writes it, so a later share of the same step replaces it.
func (s *Store) putShare(ctx context.Context, h sharing, v share) error {
	data, err := format.Seal(v)
	if err == nil {
		err = s.objects.Put(ctx, "shares/"+h.String(), data)
	}
	if err != nil {
		return fmt.Errorf("say that step %d of rank %d is stored: %w", h.step, h.rank, err)
	}
	return nil
}

// sharesOf returns the steps that each rank has stored under a claim and that are not published yet.
func (s *Store) sharesOf(ctx context.Context, t token) (map[int][]int64, error) {
	names, err := s.objects.Names(ctx, "shares")
	if err != nil {
		return nil, err
	}
	steps := map[int][]int64{}
	for _, name := range names {
		if h, ok := parseShare(name); ok && h.token == t {
			steps[h.rank] = append(steps[h.rank], h.step)
		}
	}
	return steps, nil
}

// Share stores this machine's part of a checkpoint, reads it back, and tells rank 0, which publishes the step once
// all ranks have shared it. Share returns when rank 0 has published the step, has left it for a newer one, or has
// taken too long. It returns ErrFenced if a newer attempt has claimed.
func (f *Follower) Share(ctx context.Context, c *folder.Capture, meta format.Meta) (object.Stats, error) {
	begin := time.Now()
	stats, err := f.share(ctx, c, meta)
	if err != nil {
		return object.Stats{}, fmt.Errorf("store step %d of rank %d: %w", meta.Step, f.store.rank, err)
	}
	stats.Captured, stats.Took = c.Took, time.Since(begin)
	return stats, nil
}

func (f *Follower) share(ctx context.Context, c *folder.Capture, meta format.Meta) (object.Stats, error) {
	if err := f.unfenced(ctx); err != nil {
		return object.Stats{}, err
	}
	h := sharing{f.token, f.store.rank, meta.Step}
	// Every part is stored again, because rank 0 may be dropping those of earlier steps.
	files, stats, err := f.store.objects.Upload(ctx, h.String(), map[string]format.Part{}, c.Files)
	if err == nil {
		err = f.store.objects.ReadBack(ctx, format.Manifest{Files: files}.Parts(), nil)
	}
	if err == nil {
		err = f.store.putShare(ctx, h, share{Rank: h.rank, Step: h.step, Captured: meta.Captured.UTC(), Files: files})
	}
	if err != nil {
		return object.Stats{}, err
	}
	return stats, f.settled(ctx, h)
}

// settled waits until a share is published or no longer useful. The share is rank 0's in either case, so the wait
// only keeps the ranks at the same step, and its end is no error.
func (f *Follower) settled(ctx context.Context, h sharing) error {
	waiting, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	err := until(waiting, func() (bool, error) {
		if err := f.unfenced(waiting); err != nil {
			return false, err
		}
		steps, err := f.store.sharesOf(waiting, f.token)
		return !slices.Contains(steps[h.rank], h.step) || slices.ContainsFunc(steps[0], h.before), err
	})
	if waiting.Err() != nil {
		return nil
	}
	return err
}

// before reports whether step is later than h's.
func (h sharing) before(step int64) bool { return step > h.step }

// PublishRanks publishes one checkpoint of all machines of the gang: this machine's capture, and what the others have
// stored of the same step, for which it waits. Nothing of it counts before all of them have. ErrSkipped: one of them
// has moved on to a later step, or lost its part. The other errors are those of PublishCapture.
func (w *Writer) PublishRanks(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest, object.Stats,
	error) {
	return w.timed(c, meta, func() (format.Manifest, object.Stats, error) { return w.publishRanks(ctx, c, meta) })
}

func (w *Writer) publishRanks(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest, object.Stats,
	error) {
	if err := w.unfenced(ctx); err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	files, stats, err := w.store.objects.Upload(ctx, w.token.String(), w.known, c.Files)
	own := sharing{w.token, 0, meta.Step}
	if err == nil {
		err = w.store.putShare(ctx, own, share{Step: meta.Step, Captured: meta.Captured.UTC(), Files: files})
	}
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	others, err := w.gather(ctx, meta.Step)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	all := append([]share{{Files: files, Captured: meta.Captured}}, others...)
	m := merged(all)
	m.Meta, m.Session, m.Writer, m.Published = meta, w.token.session, w.name, time.Now().UTC()
	m.Epoch, m.Metrics, m.Captured = w.token.epoch, format.Finite(meta.Metrics), captured(all)
	if err := w.store.Verify(ctx, m, Sizes); errors.Is(err, ErrDamaged) {
		return format.Manifest{}, object.Stats{}, fmt.Errorf("%w: %w", ErrSkipped, err)
	} else if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	if err := w.create(ctx, &m); err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	w.shared = max(w.shared, meta.Step)
	for _, s := range others { // the rank that stored it has read it back
		for _, p := range (format.Manifest{Files: s.Files}).Parts() {
			w.verified[p.Key()] = true
		}
	}
	stats.Bytes = m.Bytes
	w.settle(ctx, meta.Step)
	return m, stats, nil
}

// settle drops the shares of a published step. A prune drops what remains.
func (w *Writer) settle(ctx context.Context, step int64) {
	for rank := range max(1, w.store.nodes) {
		_ = w.store.objects.Remove(ctx, "shares/"+sharing{w.token, rank, step}.String()) // a prune drops it otherwise
	}
}

// gather waits for the shares of the other ranks of a step, in order of rank.
func (w *Writer) gather(ctx context.Context, step int64) ([]share, error) {
	var all []share
	err := until(ctx, func() (bool, error) {
		if err := w.unfenced(ctx); err != nil {
			return false, err
		}
		steps, err := w.store.sharesOf(ctx, w.token)
		if err != nil {
			return false, err
		}
		there := 1
		for rank := 1; rank < w.store.nodes; rank++ {
			h := sharing{w.token, rank, step}
			if slices.Contains(steps[rank], step) {
				there++
			} else if slices.ContainsFunc(steps[rank], h.before) { // ranks store steps in order
				return false, fmt.Errorf("%w: rank %d", ErrSkipped, rank)
			}
		}
		return there >= w.store.nodes, nil
	})
	for rank := 1; rank < w.store.nodes && err == nil; rank++ {
		var s share
		s, err = w.store.readShare(ctx, sharing{w.token, rank, step})
		all = append(all, s)
	}
	return all, err
}

func (s *Store) readShare(ctx context.Context, h sharing) (share, error) {
	var v share
	data, err := s.objects.Read(ctx, "shares/"+h.String())
	if err == nil {
		err = format.Unseal(data, &v)
	}
	if err == nil && (v.Rank != h.rank || v.Step != h.step) {
		err = fmt.Errorf("%w: it says that it is of rank %d, step %d", ErrDamaged, v.Rank, v.Step)
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrSkipped, err)
	}
	if err != nil {
		return v, fmt.Errorf("share %s: %w", h, err)
	}
	return v, nil
}

// captured returns the time up to which the checkpoint contains the work of every rank.
func captured(all []share) time.Time {
	return slices.MinFunc(all, func(a, b share) int { return a.Captured.Compare(b.Captured) }).Captured.UTC()
}

// merged puts the files of each rank into a folder named by its number.
func merged(all []share) format.Manifest {
	m := format.Manifest{Form: format.VersionRanks, Ranks: len(all)}
	for rank, s := range all {
		folder := strconv.Itoa(rank)
		m.Files = append(m.Files, format.File{Path: folder, Mode: fs.ModeDir | 0o755, Modified: s.Captured.UTC()})
		for _, f := range s.Files {
			f.Path = path.Join(folder, f.Path)
			m.Files = append(m.Files, f)
			m.Bytes += f.Size
		}
	}
	slices.SortFunc(m.Files, func(a, b format.File) int { return cmp.Compare(a.Path, b.Path) })
	return m
}
