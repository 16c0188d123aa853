package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
)

// A backup is a tar file compressed with gzip, which any tool opens:
//
//	head.json          format, the end of the log, the snapshot
//	snapshot           the state, as the core wrote it; only if there is one
//	events/NNN.jsonl   one event per line, with its facts and postings; samples that were dropped are missing
//	facts.json         the metadata, by name
//	output/ATTEMPT     what the attempt printed
//	series/ATTEMPT     the measurements of its machine
//	bills/DIGEST       the rows of an import of bills, as the server keeps them
//	sum.json           the Sum of all of it; last, so that a file without it is cut short
//
// The format does not depend on the database: a backup of SQLite restores into PostgreSQL.
//
// Without a list of bills the format is 2, which earlier releases read, too.
const (
	format        = 2
	formatOfBills = 3
)

// header is head.json.
type header struct {
	Format   int           `json:"format"`
	End      uint64        `json:"end"`
	Snapshot *snapshotHead `json:"snapshot,omitempty"`
}

type snapshotHead struct {
	Seq     uint64 `json:"seq"`
	Version int    `json:"version"`
}

// entry is a line of an events file. Texts are JSON strings, so they are restored byte by byte.
type entry struct {
	Seq      uint64           `json:"seq"`
	Kept     uint64           `json:"kept,omitempty"` // the event before it that is not a sample
	Sample   bool             `json:"sample,omitempty"`
	Tenant   string           `json:"tenant"`
	At       int64            `json:"at"` // nanoseconds since 1970
	Kind     string           `json:"kind"`
	Key      string           `json:"key,omitempty"`
	Event    string           `json:"event"`
	Facts    string           `json:"facts,omitempty"`
	Postings []ledger.Posting `json:"postings,omitempty"`
}

func (r entry) record() store.Record {
	out := store.Record{
		Seq: r.Seq, Kept: r.Kept, Sample: r.Sample, Tenant: r.Tenant, At: time.Unix(0, r.At).UTC(), Kind: r.Kind, Key: r.Key,
		Event: json.RawMessage(r.Event), Postings: r.Postings,
	}
	if r.Facts != "" {
		out.Facts = json.RawMessage(r.Facts)
	}
	return out
}

// restoring is the metadata name that marks a store during its restoration.
const restoring = "store/restoring"

// Ready returns an error for a store whose restoration was cut short. A server calls it before it starts.
func Ready(ctx context.Context, s store.Store) error {
	hash, ok, err := s.Meta(ctx, restoring)
	if err != nil {
		return err
	}
	if ok && hash != "" {
		return fmt.Errorf("the restoration of this data was interrupted: restore the same backup again; it continues " +
			"where it stopped")
	}
	return nil
}

// factsOf returns the metadata without the backup's own mark.
func factsOf(ctx context.Context, s store.Store) (map[string]string, error) {
	all, err := s.AllMeta(ctx)
	delete(all, restoring)
	return all, err
}

// addPersons adds the persons of all users up to the end of the log, which is read before it.
func addPersons(ctx context.Context, s store.Store, facts map[string]string) error {
	all, err := s.AllMeta(ctx)
	for key, value := range all {
		if strings.HasPrefix(key, store.PersonMeta) {
			facts[key] = value
		}
	}
	return err
}

// archive writes the members of a backup.
type archive struct {
	w *tar.Writer
}

func (a archive) begin(name string, size int64) error {
	return a.w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, Format: tar.FormatPAX})
}

func (a archive) add(name string, b []byte) error {
	if err := a.begin(name, int64(len(b))); err != nil {
		return err
	}
	_, err := a.w.Write(b)
	return err
}

func (a archive) addJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.add(name, append(b, '\n'))
}

// Write writes everything in the store while it is in use: the log up to its current end, and each output up to its
// end when it is read. It delays nothing. The store need not lead.
func Write(ctx context.Context, s store.Store, w io.Writer) (Sum, error) {
	return Whole{Store: s}.Write(ctx, w)
}

// Write writes the store as the function Write does, and the rows of its bills.
func (o Whole) Write(ctx context.Context, w io.Writer) (Sum, error) {
	if err := Ready(ctx, o.Store); err != nil {
		return Sum{}, fmt.Errorf("back up: %w", err)
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	a := archive{tar.NewWriter(z)}
	sum, err := o.write(ctx, a)
	if err == nil {
		err = a.w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return Sum{}, fmt.Errorf("back up: %w", err)
	}
	return sum, nil
}

func (o Whole) write(ctx context.Context, a archive) (Sum, error) {
	s := o.Store
	head := header{Format: format}
	snap, ok, err := store.Whole(ctx, s) // before the end is read, so that the snapshot is not newer
	if err != nil {
		return Sum{}, err
	}
	there, err := o.billsThere()
	if err != nil {
		return Sum{}, err
	}
	facts, err := factsOf(ctx, s)
	if err != nil {
		return Sum{}, err
	}
	if _, listed := facts[billsFact]; listed && o.Bills != "" {
		head.Format = formatOfBills
	}
	if head.End, err = s.End(ctx); err != nil {
		return Sum{}, err
	}
	if err := addPersons(ctx, s, facts); err != nil {
		return Sum{}, err
	}
	if ok {
		head.Snapshot = &snapshotHead{Seq: snap.Seq, Version: snap.Version}
	}
	if err := a.addJSON("head.json", head); err != nil {
		return Sum{}, err
	}
	if ok {
		if err := a.add("snapshot", snap.State); err != nil {
			return Sum{}, err
		}
	}
	d := digest{h: sha256.New()}
	err = eachPage(ctx, s, head.End, snap.Seq, func(page []store.Record) error {
		d.records(page)
		b, err := lines(page)
		if err != nil {
			return err
		}
		return a.add(fmt.Sprintf("events/%012d.jsonl", page[0].Seq), b)
	})
	if err != nil {
		return Sum{}, err
	}
	d.facts(facts)
	if err := a.addJSON("facts.json", facts); err != nil {
		return Sum{}, err
	}
	if err := o.writeBesides(ctx, a, &d, facts, there); err != nil {
		return Sum{}, err
	}
	return d.sum(), a.addJSON("sum.json", d.sum())
}

// writeBesides writes the members that follow the metadata, up to the sum.
func (o Whole) writeBesides(ctx context.Context, a archive, d *digest, facts map[string]string,
	there map[string]bool) error {
	if err := writeOutput(ctx, o.Store, a, d); err != nil {
		return err
	}
	if err := eachSeries(ctx, o.Store, func(name string, b []byte) error {
		d.series(name, b)
		return a.add("series/"+name, b)
	}); err != nil {
		return err
	}
	return o.eachBill(ctx, facts, there, func(name string, size int64, rows io.Reader) error {
		d.bill(name, size)
		if err := a.begin("bills/"+name, size); err != nil {
			return err
		}
		_, err := io.Copy(io.MultiWriter(a.w, d.h), rows)
		return err
	})
}

// writeOutput writes the output of programs, one member per name.
func writeOutput(ctx context.Context, s store.Store, a archive, d *digest) error {
	names, err := s.Logs(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		size, err := s.LogEnd(ctx, name)
		if err != nil {
			return err
		}
		d.output(name, size)
		if err := a.begin("output/"+name, size); err != nil {
			return err
		}
		if err := eachChunk(ctx, s, name, size, func(b []byte) error {
			d.h.Write(b)
			_, err := a.w.Write(b)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// lines encodes a page of records for the backup.
func lines(page []store.Record) ([]byte, error) {
	var out []byte
	for _, r := range page {
		line := entry{
			Seq: r.Seq, Kept: r.Kept, Sample: r.Sample, Tenant: r.Tenant, At: r.At.UnixNano(), Kind: r.Kind, Key: r.Key,
			Event: string(r.Event), Facts: string(r.Facts), Postings: r.Postings,
		}
		for _, s := range []string{line.Tenant, line.Kind, line.Key, line.Event, line.Facts} {
			if !utf8.ValidString(s) {
				return nil, fmt.Errorf("event %d is not text", r.Seq)
			}
		}
		b, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		out = append(append(out, b...), '\n')
	}
	return out, nil
}
