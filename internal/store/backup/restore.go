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

// ErrDamaged is returned for a backup that is cut short or whose bytes have changed.
var ErrDamaged = errors.New("the backup is damaged")

// target receives the parts of a backup.
type target interface {
	head(header) error
	snapshot(store.Snapshot) error
	records([]store.Record) error
	facts(map[string]string) error
	output(attempt string, at int64, b []byte) error
	series(attempt string, b []byte) error
	bill(name string, rows io.Reader) error // reads all rows
}

// Check reads a backup to its end and returns its sum, or ErrDamaged.
func Check(r io.Reader) (Sum, error) {
	sum, err := readBackup(r, nothing{})
	if err != nil {
		return Sum{}, fmt.Errorf("check the backup: %w", err)
	}
	return sum, nil
}

// Restore fills an empty store, which must lead, and compares its sum with the backup's. If an earlier restoration of
// the same backup was cut short, Restore completes it; it refuses any other store that is not empty.
func Restore(ctx context.Context, s store.Store, r io.Reader) (Sum, error) {
	return Whole{Store: s}.Restore(ctx, r)
}

// Restore fills the store as the function Restore does, and the folder of its bills.
func (o Whole) Restore(ctx context.Context, r io.Reader) (Sum, error) {
	s := o.Store
	want, err := readBackup(r, &filler{Whole: o, ctx: ctx, s: s})
	if err != nil {
		return Sum{}, fmt.Errorf("restore: %w", err)
	}
	got, err := o.SumOf(ctx)
	if err != nil {
		return Sum{}, fmt.Errorf("restore: %w", err)
	}
	if got != want {
		return Sum{}, fmt.Errorf("restore: the restored data differs from the backup: %d events with hash %x, not %d "+
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

// readBackup passes the backup to t and then checks the sum at its end.
func readBackup(r io.Reader, t target) (Sum, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return Sum{}, damaged("it is not a backup", err)
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
	if _, err := io.Copy(io.Discard, z); err != nil { //nolint:gosec // discards; the checksum is at the end
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

// reader reads one member after the other, in the order of Write.
type reader struct {
	members *tar.Reader
	d       digest
	t       target
	head    header
	chain   store.Chain
	begun   bool // head.json has been read
	facts   bool // facts.json has been read: no events follow it
	done    bool // sum.json has been read
	want    Sum
}

func (b *reader) member(m *tar.Header) error {
	switch {
	case !plain(m):
		return damaged(m.Name+" is not a regular file, or exceeds the size of its kind", nil)
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
		if err := b.json(&all, maxFacts); err != nil {
			return err
		}
		b.d.facts(all)
		return b.t.facts(all)
	}
	return damaged(m.Name+" has no place there", nil)
}

// Limits of the parts of a backup that are in memory at once, besides its snapshot: a file of a few megabytes can
// unpack to more than a machine's memory.
const (
	maxHead   = 1 << 20 // bytes of head.json and of sum.json
	maxFacts  = 1 << 30 // of facts.json, which has a line for each job from which something was removed
	maxEvents = 2 << 30 // of a file of events, which holds one page
)

// errLarge is returned for a part that is larger than any that scrimp writes.
var errLarge = errors.New("it is larger than any that scrimp writes")

// limited reads up to a limit of a member and then fails.
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

// snapshot reads the snapshot. Check ignores it.
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

// plain reports whether a member is a regular file as Write writes it, without holes, which would read as endless
// zeros.
func plain(m *tar.Header) bool {
	for name := range m.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return false
		}
	}
	return m.Typeflag == tar.TypeReg && (!strings.HasSuffix(m.Name, ".json") || m.Size <= maxFacts ||
		strings.Contains(m.Name, "/"))
}

// readHead reads the header and refuses an unknown format.
func (b *reader) readHead() error {
	b.begun = true
	if err := b.json(&b.head, maxHead); err != nil {
		return err
	}
	if b.head.Snapshot != nil {
		b.chain.Dropped = b.head.Snapshot.Seq
	}
	if b.head.Format <= 0 {
		return damaged("its head has no format", nil)
	}
	if b.head.Format < format {
		return fmt.Errorf("an older release of scrimp wrote this backup (format %d), and this release cannot read it: "+
			"restore it with that release", b.head.Format)
	}
	if b.head.Format > formatOfBills {
		return fmt.Errorf("the backup has format %d, this program knows only %d: use a newer program", b.head.Format,
			formatOfBills)
	}
	return b.t.head(b.head)
}

// readSum compares what was read with the sum at the end of the backup.
func (b *reader) readSum() error {
	b.done = true
	if err := b.json(&b.want, maxHead); err != nil {
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
	for lines := json.NewDecoder(&limited{b.members, maxEvents}); ; {
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

// nothing is a target that discards all parts.
type nothing struct{}

func (nothing) head(header) error                  { return nil }
func (nothing) snapshot(store.Snapshot) error      { return nil }
func (nothing) records([]store.Record) error       { return nil }
func (nothing) facts(map[string]string) error      { return nil }
func (nothing) output(string, int64, []byte) error { return nil }
func (nothing) series(string, []byte) error        { return nil }

// filler is a target that writes into a store.
type filler struct {
	Whole
	ctx  context.Context // of the one call of Restore
	s    store.Store
	have uint64          // events in the store before the restoration
	snap *store.Snapshot // written once the store has its event
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
	bills, err := f.billsThere()
	if err != nil {
		return err
	}
	if (!ok || begun == "") && (f.have > 0 || len(facts)+len(logs)+len(series)+len(bills) > 0) {
		return fmt.Errorf("the target is not empty: it holds %d events: give an empty one", f.have)
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
			return fmt.Errorf("the target holds events of another backup: give an empty one")
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

// facts come after the last event, so the store now has the snapshot's event.
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
		err = fmt.Errorf("the target holds other output of %s: give an empty one", attempt)
	}
	return err
}

func (f *filler) series(attempt string, b []byte) error { return f.s.PutSeries(f.ctx, attempt, b) }
