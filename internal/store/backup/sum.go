// Package backup writes everything in a store into one file while the store is in use, and fills an empty store from
// it. The two may use different databases.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
)

// Sum summarises the contents of a store. Two stores with equal sums hold the same bytes, whatever their databases.
// Snapshots do not count: they follow from the log.
type Sum struct {
	End      uint64      `json:"end"`      // last event
	Postings uint64      `json:"postings"` // postings of these events
	Facts    int         `json:"facts"`
	Outputs  int         `json:"outputs"` // attempts with output
	Bytes    int64       `json:"bytes"`   // of output
	Series   int         `json:"series"`  // attempts with measurements
	Bills    int         `json:"bills"`   // imports of bills whose rows it holds
	Hash     ledger.Hash `json:"hash"`    // SHA-256 of everything
}

// SumOf reads the whole store. It is exact if nobody writes meanwhile.
func SumOf(ctx context.Context, s store.Store) (Sum, error) { return Whole{Store: s}.SumOf(ctx) }

// SumOf reads the whole store and the rows of its bills.
func (o Whole) SumOf(ctx context.Context) (Sum, error) {
	s := o.Store
	d := digest{h: sha256.New()}
	snap, _, err := s.LatestSnapshot(ctx) // 0 if there is none
	if err != nil {
		return Sum{}, err
	}
	end, err := s.End(ctx)
	if err != nil {
		return Sum{}, err
	}
	err = eachPage(ctx, s, end, snap.Seq, func(page []store.Record) error {
		d.records(page)
		return nil
	})
	if err != nil {
		return Sum{}, err
	}
	facts, err := factsOf(ctx, s)
	if err != nil {
		return Sum{}, err
	}
	d.facts(facts)
	names, err := s.Logs(ctx)
	if err != nil {
		return Sum{}, err
	}
	for _, name := range names {
		size, err := s.LogEnd(ctx, name)
		if err != nil {
			return Sum{}, err
		}
		d.output(name, size)
		if err := eachChunk(ctx, s, name, size, func(b []byte) error { _, err := d.h.Write(b); return err }); err != nil {
			return Sum{}, err
		}
	}
	if err := eachSeries(ctx, s, func(name string, b []byte) error { d.series(name, b); return nil }); err != nil {
		return Sum{}, err
	}
	if err := o.eachBill(ctx, facts, nil, func(name string, size int64, rows io.Reader) error {
		d.bill(name, size)
		_, err := io.Copy(d.h, rows)
		return err
	}); err != nil {
		return Sum{}, err
	}
	return d.sum(), nil
}

// pageSize is the number of events in memory at a time.
const pageSize = 1000

// eachPage reads the log up to end. Samples up to dropped may be missing.
func eachPage(ctx context.Context, s store.Store, end, dropped uint64, do func([]store.Record) error) error {
	chain := store.Chain{Dropped: dropped}
	for chain.After < end {
		page, err := s.WholeRecords(ctx, chain.After, int(min(pageSize, end-chain.After)))
		if err != nil {
			return err
		}
		for len(page) > 0 && page[len(page)-1].Seq > end {
			page = page[:len(page)-1]
		}
		if len(page) == 0 {
			return whileRead(chain.Ends(end))
		}
		if err := chain.AddAll(page); err != nil {
			return whileRead(err)
		}
		if err := do(page); err != nil {
			return err
		}
	}
	return nil
}

// whileRead adds another possible cause of a gap in the log: the server dropped samples during the read.
func whileRead(err error) error {
	return fmt.Errorf("%w, or they are samples that the server dropped meanwhile: in that case try again", err)
}

// eachSeries reads the measurements of machines, by name. It skips those that are removed meanwhile.
func eachSeries(ctx context.Context, s store.Store, do func(name string, b []byte) error) error {
	sizes, err := s.AllSeries(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		b, err := s.Series(ctx, name)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		if err := do(name, b); err != nil {
			return err
		}
	}
	return nil
}

// eachChunk reads the first size bytes of an attempt's output.
func eachChunk(ctx context.Context, s store.Store, attempt string, size int64, do func([]byte) error) error {
	for at := int64(0); at < size; {
		b, err := s.ReadLog(ctx, attempt, at, int(min(1<<20, size-at)))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return fmt.Errorf("read log of %s: it ends at %d, and had %d bytes", attempt, at, size)
		}
		if err := do(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// digest accumulates a Sum. Each part is preceded by its length, so that no two stores produce the same bytes.
type digest struct {
	h hash.Hash
	s Sum
	b []byte
}

func (d *digest) number(n uint64) { d.b = binary.AppendUvarint(d.b, n) }

func (d *digest) text(s string) {
	d.number(uint64(len(s)))
	d.b = append(d.b, s...)
}

func (d *digest) flush() {
	d.h.Write(d.b)
	d.b = d.b[:0]
}

func (d *digest) records(list []store.Record) {
	for _, r := range list {
		d.number(r.Seq)
		d.number(r.Kept)
		d.number(map[bool]uint64{true: 1}[r.Sample])
		d.number(uint64(r.At.UnixNano()))
		for _, s := range []string{r.Tenant, r.Kind, r.Key, string(r.Event), string(r.Facts)} {
			d.text(s)
		}
		d.number(uint64(len(r.Postings)))
		for _, p := range r.Postings {
			d.text(string(p.AppendBinary(nil)))
			d.b = append(d.b, p.Hash[:]...)
		}
		d.flush()
		d.s.End, d.s.Postings = r.Seq, d.s.Postings+uint64(len(r.Postings))
	}
}

func (d *digest) facts(all map[string]string) {
	d.s.Facts = len(all)
	d.text("facts")
	d.number(uint64(len(all)))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		d.text(k)
		d.text(all[k])
	}
	d.flush()
}

// output starts an attempt's output; the caller writes its bytes to h.
func (d *digest) output(attempt string, size int64) {
	d.s.Outputs, d.s.Bytes = d.s.Outputs+1, d.s.Bytes+size
	d.text("output")
	d.text(attempt)
	d.number(uint64(size))
	d.flush()
}

func (d *digest) series(attempt string, b []byte) {
	d.s.Series++
	d.text("series")
	d.text(attempt)
	d.number(uint64(len(b)))
	d.flush()
	d.h.Write(b)
}

// bill starts the rows of a bill; the caller writes them to h.
func (d *digest) bill(name string, size int64) {
	d.s.Bills++
	d.text("bill")
	d.text(name)
	d.number(uint64(size))
	d.flush()
}

func (d *digest) sum() Sum {
	s := d.s
	d.h.Sum(s.Hash[:0])
	return s
}
