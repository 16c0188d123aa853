package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"scrimp/internal/store"
)

// ErrDamaged is returned for a backup that is cut short or whose bytes are not
// those that were written.
var ErrDamaged = errors.New("the backup is damaged")

// target is where the parts of a backup go.
type target interface {
	head(header) error
	snapshot(store.Snapshot) error
	records([]store.Record) error
	facts(map[string]string) error
	output(attempt string, at int64, b []byte) error
	series(attempt string, b []byte) error
}

// Check reads a backup to its end and returns what it holds, or ErrDamaged.
func Check(r io.Reader) (Sum, error) {
	sum, err := readBackup(r, nothing{})
	if err != nil {
		return Sum{}, fmt.Errorf("check the backup: %w", err)
	}
	return sum, nil
}

// Restore fills an empty store, which must lead, and compares what it then holds
// with what the backup was made of. A store that a restoration of the same backup
// was cut short in is filled up; any other that holds something is refused.
func Restore(ctx context.Context, s store.Store, r io.Reader) (Sum, error) {
	want, err := readBackup(r, &filler{ctx: ctx, s: s})
	if err != nil {
		return Sum{}, fmt.Errorf("restore: %w", err)
	}
	got, err := SumOf(ctx, s)
	if err != nil {
		return Sum{}, fmt.Errorf("restore: %w", err)
	}
	if got != want {
		return Sum{}, fmt.Errorf("restore: what is there now is not what the backup says: %d events with hash %x, not %d "+
			"with %x", got.End, got.Hash, want.End, want.Hash)
	}
	if f, ok := s.(interface{ SyncLogs() error }); ok { // no agent has another copy of this output
		if err := f.SyncLogs(); err != nil {
			return Sum{}, fmt.Errorf("restore: %w", err)
		}
	}
	if err := s.PutMeta(ctx, restoring, ""); err != nil {
		return Sum{}, fmt.Errorf("restore: %w", err)
	}
	return got, nil
}

// readBackup checks the sum that the backup ends with; by then all has gone to t.
func readBackup(r io.Reader, t target) (Sum, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return Sum{}, damaged("it does not begin as one", err)
	}
	b := reader{members: tar.NewReader(z), d: digest{h: sha256.New()}, t: t}
	for !b.done {
		m, err := b.members.Next()
		if err != nil {
			return Sum{}, damaged("it is cut short", err)
		}
		if err := b.member(m); err != nil {
			return Sum{}, err
		}
	}
	if _, err := b.members.Next(); !errors.Is(err, io.EOF) {
		return Sum{}, damaged("something follows its end", err)
	}
	if _, err := io.Copy(io.Discard, z); err != nil { //nolint:gosec // nothing is kept: to the checksum at its end
		return Sum{}, damaged("its end is missing", err)
	}
	return b.want, nil
}

func damaged(what string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s", ErrDamaged, what)
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, what, err)
}

// reader takes one member after the other, in the order that Write has.
type reader struct {
	members *tar.Reader
	d       digest
	t       target
	head    header
	chain   store.Chain
	begun   bool // head.json was there
	facts   bool // so was facts.json: no events after it
	done    bool // and sum.json
	want    Sum
}

func (b *reader) member(m *tar.Header) error {
	switch {
	case !plain(m):
		return damaged(m.Name+" is no plain file, or is longer than its kind may be", nil)
	case !b.begun && m.Name != "head.json":
		return damaged("it begins with "+m.Name, nil)
	case m.Name == "head.json" && !b.begun:
		return b.readHead()
	case b.facts:
		return b.besides(m)
	case m.Name == "snapshot" && b.head.Snapshot != nil && b.d.s.End == 0:
		return b.snapshot()
	case strings.HasPrefix(m.Name, "events/"):
		return b.events(m.Name)
	case m.Name == "facts.json":
		b.facts = true
		var all map[string]string
		if err := b.json(&all, mostFacts); err != nil {
			return err
		}
		b.d.facts(all)
		return b.t.facts(all)
	}
	return damaged(m.Name+" has no place there", nil)
}

// Limits of what a backup has in memory at once, besides its snapshot: one of a few megabytes can unpack to more than
// a machine has.
const (
	mostHead   = 1 << 20 // bytes of head.json and of sum.json
	mostFacts  = 1 << 30 // of facts.json, which has a line for each job of which something was removed
	mostEvents = 2 << 30 // of a file of events, which has a page of them
)

// errLarge is a part of a backup that no server writes.
var errLarge = errors.New("it is larger than any that scrimp writes")

// limited reads so much of a member and then fails.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLarge
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// snapshot reads the snapshot. Who only checks a backup has no use for it.
func (b *reader) snapshot() error {
	var state []byte
	var err error
	if _, checks := b.t.(nothing); checks {
		_, err = io.Copy(io.Discard, b.members)
	} else {
		state, err = io.ReadAll(b.members)
	}
	if err != nil {
		return damaged("its snapshot cannot be read", err)
	}
	return b.t.snapshot(store.Snapshot{Seq: b.head.Snapshot.Seq, Version: b.head.Snapshot.Version, State: state})
}

// plain reports whether a member is a file as Write writes it, with no holes that would be read as zeros without end.
func plain(m *tar.Header) bool {
	for name := range m.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return false
		}
	}
	return m.Typeflag == tar.TypeReg && (!strings.HasSuffix(m.Name, ".json") || m.Size <= mostFacts ||
		strings.Contains(m.Name, "/"))
}

// readHead reads what the backup is of, and refuses a format that is not this program's.
func (b *reader) readHead() error {
	b.begun = true
	if err := b.json(&b.head, mostHead); err != nil {
		return err
	}
	if b.head.Snapshot != nil {
		b.chain.Dropped = b.head.Snapshot.Seq
	}
	if b.head.Format <= 0 {
		return damaged("its head says no format", nil)
	}
	if b.head.Format < format {
		return fmt.Errorf("an older release of scrimp wrote this backup (format %d), and this release cannot read it: "+
			"restore it with that release", b.head.Format)
	}
	if b.head.Format != format {
		return fmt.Errorf("the backup has format %d, this program knows only %d: use a newer program", b.head.Format, format)
	}
	return b.t.head(b.head)
}

// readSum compares what was read with what the end of the backup says.
func (b *reader) readSum() error {
	b.done = true
	if err := b.json(&b.want, mostHead); err != nil {
		return err
	}
	if got := b.d.sum(); got != b.want || got.End != b.head.End {
		return damaged(fmt.Sprintf("%d events with hash %x, its end says %d with %x", got.End, got.Hash, b.want.End,
			b.want.Hash), nil)
	}
	return nil
}

func (b *reader) json(to any, most int64) error {
	text, err := io.ReadAll(&limited{b.members, most})
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return damaged("it cannot be read", err)
	}
	return nil
}

func (b *reader) events(name string) error {
	var page []store.Record
	for lines := json.NewDecoder(&limited{b.members, mostEvents}); ; {
		var line entry
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(name+" cannot be read", err)
		}
		page = append(page, line.record())
	}
	if err := b.chain.AddAll(page); err != nil {
		return damaged("in "+name, err)
	}
	b.d.records(page)
	return b.t.records(page)
}

// nothing keeps nothing.
type nothing struct{}

func (nothing) head(header) error                  { return nil }
func (nothing) snapshot(store.Snapshot) error      { return nil }
func (nothing) records([]store.Record) error       { return nil }
func (nothing) facts(map[string]string) error      { return nil }
func (nothing) output(string, int64, []byte) error { return nil }
func (nothing) series(string, []byte) error        { return nil }

// filler puts what is read into a store.
type filler struct {
	ctx  context.Context // that of the one call of Restore
	s    store.Store
	have uint64          // events that were there
	snap *store.Snapshot // written when its event is there
}

func (f *filler) head(h header) error {
	begun, ok, err := f.s.Meta(f.ctx, restoring)
	if err != nil {
		return err
	}
	if f.have, err = f.s.End(f.ctx); err != nil {
		return err
	}
	facts, err := factsOf(f.ctx, f.s)
	if err != nil {
		return err
	}
	logs, err := f.s.Logs(f.ctx)
	if err != nil {
		return err
	}
	series, err := f.s.AllSeries(f.ctx)
	if err != nil {
		return err
	}
	if (!ok || begun == "") && (f.have > 0 || len(facts) > 0 || len(logs) > 0 || len(series) > 0) {
		return fmt.Errorf("the place is not empty: it holds %d events: give an empty one", f.have)
	}
	return f.s.PutMeta(f.ctx, restoring, fmt.Sprint("of ", h.End, " events"))
}

func (f *filler) snapshot(s store.Snapshot) error {
	f.snap = &s
	return nil
}

func (f *filler) records(page []store.Record) error {
	n := 0
	for n < len(page) && page[n].Seq <= f.have {
		n++
	}
	if n > 0 {
		there, err := f.s.WholeRecords(f.ctx, page[0].Seq-1, n)
		if err != nil {
			return err
		}
		if !sameRecords(there, page[:n]) {
			return fmt.Errorf("the place holds events of another backup: give an empty one")
		}
	}
	return f.s.Copy(f.ctx, page[n:])
}

func sameRecords(a, b []store.Record) bool {
	x, y := digest{h: sha256.New()}, digest{h: sha256.New()}
	x.records(a)
	y.records(b)
	return x.sum() == y.sum()
}

// facts come after the last event, so the snapshot has its event now.
func (f *filler) facts(all map[string]string) error {
	if f.snap != nil {
		if err := f.s.SaveSnapshot(f.ctx, *f.snap); err != nil {
			return err
		}
		f.snap = nil
	}
	for k, v := range all {
		if err := f.s.PutMeta(f.ctx, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) output(attempt string, at int64, b []byte) error {
	end, err := f.s.AppendLog(f.ctx, attempt, at, b)
	if err != nil {
		return err
	}
	if end < at+int64(len(b)) {
		return fmt.Errorf("write log of %s: it ends at %d", attempt, end)
	}
	there, err := f.s.ReadLog(f.ctx, attempt, at, len(b))
	if err == nil && !bytes.Equal(there, b) {
		err = fmt.Errorf("the place holds other output of %s: give an empty one", attempt)
	}
	return err
}

func (f *filler) series(attempt string, b []byte) error { return f.s.PutSeries(f.ctx, attempt, b) }
