// Package layout has the form of records, postings and snapshots in the rows of both databases.
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
)

// A posting is a row: columns for what is queried and summed, the hash, and all other fields in "rest" in a binary
// form, because JSON would be ten times as long. The form begins with its version. Integers are varints; texts are
// preceded by their length, except for the words below, which take one byte each.

// Form 2 has a zone at the end.
const (
	restForm = 1
	zoneForm = 2
)

// words must not change or move; new ones go to the end.
var words = []string{
	"", "compute", "storage", "transfer", "image", "overhead", "fixed", "estimated", "accrued", "billed",
	"open", "useful", "lost", "start-up", "idle", "s", "B", "address",
}

// wordRoom is the number of words that may exist: any other text of n bytes begins with wordRoom+n.
const wordRoom = 64

// Optional fields present in rest.
const (
	hasAt = 1 << iota
	hasBegin
	hasEnd
	hasQuantity
	hasPrice
	hasListPrice
	hasTags
	hasGroup
)

// Pack encodes the fields of a posting that have no column.
func Pack(p *ledger.Posting) []byte {
	b := make([]byte, 0, 160)
	has := byte(0)
	for _, f := range []struct {
		flag byte
		is   bool
	}{
		{hasAt, !p.At.IsZero()},
		{hasBegin, !p.Begin.IsZero()},
		{hasEnd, !p.End.IsZero()},
		{hasQuantity, !p.Quantity.IsZero()},
		{hasPrice, p.Price.Known},
		{hasListPrice, p.ListPrice.Known},
		{hasTags, len(p.Owner.Tags) > 0},
		{hasGroup, p.Owner.Group != "" || p.Owner.Part != ""},
	} {
		if f.is {
			has |= f.flag
		}
	}
	form := byte(restForm)
	if p.Zone != "" {
		form = zoneForm
	}
	b = append(b, form, has)
	last := int64(0) // times are close to each other
	for _, t := range []time.Time{p.At, p.Begin, p.End} {
		if !t.IsZero() {
			b = binary.AppendVarint(b, t.UnixNano()-last)
			last = t.UnixNano()
		}
	}
	if has&hasQuantity != 0 {
		b = binary.AppendVarint(binary.AppendVarint(b, p.Quantity.Whole), int64(p.Quantity.Nanos))
	}
	for _, price := range []ledger.Price{p.Price, p.ListPrice} {
		if price.Known {
			b = binary.AppendVarint(b, int64(price.Rate))
		}
	}
	o := &p.Owner
	for _, s := range [...]string{
		string(p.Category), string(p.Phase), string(p.Use), string(p.Unit), p.Rule, p.Provider, p.Region, p.SKU,
		o.Team, o.Project, o.Environment, o.ModelVersion, o.Instance,
	} {
		b = packText(b, s)
	}
	b = packAfter(packAfter(b, o.Job, o.Attempt), o.Attempt, o.Task) // an attempt's name begins with its job's
	if len(o.Tags) > 0 {
		b = binary.AppendUvarint(b, uint64(len(o.Tags)))
		for _, k := range slices.Sorted(maps.Keys(o.Tags)) {
			b = packText(packText(b, k), o.Tags[k])
		}
	}
	if has&hasGroup != 0 {
		b = packText(packText(b, o.Group), o.Part)
	}
	if p.Zone != "" {
		b = packText(b, p.Zone)
	}
	return b
}

func packText(b []byte, s string) []byte {
	if n := slices.Index(words, s); n >= 0 {
		return append(b, byte(n))
	}
	return append(binary.AppendUvarint(b, uint64(wordRoom+len(s))), s...)
}

// packAfter writes the length of the common prefix of s and before, and then the rest of s.
func packAfter(b []byte, before, s string) []byte {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	return packText(binary.AppendUvarint(b, uint64(n)), s[n:])
}

// unpack fills in the fields that pack wrote; the columns are already set.
func unpack(rest []byte, p *ledger.Posting) error {
	r := rowReader{rest: rest}
	form, has := r.byte(), r.byte()
	if form != restForm && form != zoneForm {
		return fmt.Errorf("posting %d of event %d has form %d, this program knows up to %d: use a newer program", p.Line,
			p.Event, form, zoneForm)
	}
	last := int64(0)
	for i, t := range []*time.Time{&p.At, &p.Begin, &p.End} {
		if has&(hasAt<<i) != 0 {
			last += r.varint()
			*t = time.Unix(0, last).UTC()
		}
	}
	if has&hasQuantity != 0 {
		p.Quantity = ledger.Quantity{Whole: r.varint(), Nanos: int32(r.varint())}
	}
	for i, price := range []*ledger.Price{&p.Price, &p.ListPrice} {
		if has&(hasPrice<<i) != 0 {
			*price = ledger.PriceOf(money.Rate(r.varint()), true)
		}
	}
	o := &p.Owner
	p.Category, p.Phase = ledger.Category(r.text()), ledger.Phase(r.text())
	p.Use, p.Unit = ledger.Use(r.text()), ledger.Unit(r.text())
	for _, s := range [...]*string{&p.Rule, &p.Provider, &p.Region, &p.SKU, &o.Team, &o.Project, &o.Environment,
		&o.ModelVersion, &o.Instance} {
		*s = r.text()
	}
	o.Attempt = r.after(o.Job)
	o.Task = r.after(o.Attempt)
	if has&hasTags != 0 {
		o.Tags = map[string]string{}
		for n := r.uvarint(); n > 0 && !r.broken; n-- {
			k := r.text()
			o.Tags[k] = r.text()
		}
	}
	if has&hasGroup != 0 {
		o.Group, o.Part = r.text(), r.text()
	}
	if form == zoneForm {
		p.Zone = r.text()
	}
	if r.broken || len(r.rest) > 0 {
		return fmt.Errorf("posting %d of event %d cannot be read: it was changed after it was written", p.Line, p.Event)
	}
	return nil
}

// rowReader reads what pack wrote; after an error it returns zeros.
type rowReader struct {
	rest   []byte
	broken bool
}

func (r *rowReader) take(n int) (b []byte) {
	if n < 0 || n > len(r.rest) {
		r.broken, r.rest = true, nil
		return nil
	}
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

func (r *rowReader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *rowReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *rowReader) text() string {
	n := r.uvarint()
	switch {
	case n < uint64(len(words)):
		return words[n]
	case n < wordRoom || n > wordRoom+uint64(len(r.rest)):
		r.take(-1)
		return ""
	}
	return string(r.take(int(n - wordRoom)))
}

func (r *rowReader) after(before string) string {
	n := r.uvarint()
	if n > uint64(len(before)) {
		r.take(-1)
		return ""
	}
	return before[:n] + r.text()
}

// Attach gives each record its postings, which come in the same order, and each posting the hash of the previous one;
// head returns the hash for the first posting of a tenant.
func Attach(list []store.Record, postings iter.Seq2[ledger.Posting, error],
	head func(tenant string, event uint64) (ledger.Hash, error)) error {
	heads := map[string]ledger.Hash{}
	type place struct{ record, line int }
	first := map[string]place{}
	i := 0
	for p, err := range postings {
		if err != nil {
			return err
		}
		for i < len(list) && list[i].Seq < p.Event {
			i++
		}
		if i == len(list) || list[i].Seq != p.Event {
			return fmt.Errorf("read postings: event %d has some, and is not in the log", p.Event)
		}
		tenant := p.Owner.Tenant
		if _, known := heads[tenant]; !known {
			first[tenant] = place{i, len(list[i].Postings)}
		}
		p.Prev, heads[tenant] = heads[tenant], p.Hash
		list[i].Postings = append(list[i].Postings, p)
	}
	for tenant, at := range first { // the rows are closed: a second query would wait for the first one's connection
		p := &list[at.record].Postings[at.line]
		var err error
		if p.Prev, err = head(tenant, p.Event); err != nil {
			return err
		}
	}
	return nil
}

// Linked fills in the hash before each posting of one tenant: that of the previous posting, and head for the first.
func Linked(
	head func() (ledger.Hash, error), postings iter.Seq2[ledger.Posting, error],
) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		prev, err := head()
		if err != nil {
			yield(ledger.Posting{}, err)
			return
		}
		for p, err := range postings {
			p.Prev, prev = prev, p.Hash
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// NoHead is the hash before a tenant's first posting.
func NoHead() (ledger.Hash, error) { return ledger.Hash{}, nil }

// Finish fills in the fields of a row that have no column.
func Finish(p *ledger.Posting, hash, rest, prev []byte) (err error) {
	if p.Hash, err = HashOf(hash, nil, nil); err != nil {
		return fmt.Errorf("posting %d of event %d: %w", p.Line, p.Event, err)
	}
	copy(p.Prev[:], prev)
	return unpack(rest, p)
}

// HashOf reads a hash from a query; it is zero if there is no row.
func HashOf(b []byte, err, none error) (h ledger.Hash, _ error) {
	switch {
	case err != nil && errors.Is(err, none):
		return h, nil
	case err != nil:
		return h, fmt.Errorf("read postings: %w", err)
	case len(b) != len(h):
		return h, fmt.Errorf("its hash has %d bytes", len(b))
	}
	copy(h[:], b)
	return h, nil
}
