// Package storetest has what tests of a store.Store need: backends, which make and damage their places, and the
// records to write. Package suite has the tests that every backend must pass.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/test/must"
)

// Backend is an implementation of a store. A place is whatever Open accepts: a folder or an address.
type Backend struct {
	Name string
	// Place creates a new, empty place.
	Place func(t testing.TB) string
	// Open opens a place for writing. The suite closes it.
	Open func(ctx context.Context, place string) (store.Store, error)
	// Exec runs SQL on a place behind the store's back, and returns the database's error.
	Exec func(t testing.TB, place, sql string) error
	// Full creates a place whose disk has room for about the given bytes.
	Full func(t testing.TB, bytes int64) string
	// Old creates a place of an earlier release that can no longer be read.
	Old func(t testing.TB) string
	// Size returns the disk usage of a place's log in bytes, including indexes.
	Size func(t testing.TB, place string) int64
}

// Writer makes records that continue a log, with the heads of its chains.
type Writer struct {
	Next  uint64
	heads map[string]ledger.Hash
	kept  uint64
}

// Opened is the market time of the first record.
var Opened = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// Make returns the next n records: of two tenants, with keys and facts on some, and 0 to 2 chained postings each.
// Every sixth, from the third on, is a sample. The same log has the same records.
func (w *Writer) Make(n int) []Record {
	if w.heads == nil {
		w.Next, w.heads = 1, map[string]ledger.Hash{}
	}
	list := make([]Record, 0, n)
	for range n {
		list = append(list, w.record())
		w.Next++
	}
	return list
}

// Record is store.Record.
type Record = store.Record

func (w *Writer) record() Record {
	seq := w.Next
	tenant := []string{"default", "lab"}[seq%3%2]
	job := fmt.Sprintf("j-%d", seq%5)
	r := Record{
		Seq: seq, Tenant: tenant, At: Opened.Add(time.Duration(seq) * time.Second),
		Kind: []string{"job_submitted", "tick"}[seq%2],
		// spaces and escapes stay unchanged
		Event: json.RawMessage(fmt.Sprintf(`{"at": "x",  "seq":%d,"text":"né\u0000\"<&>","job":%q}`, seq, job)),
	}
	if seq%4 == 0 || seq%12 == 9 {
		r.Key = fmt.Sprintf("key-%d", seq)
	}
	if seq%2 == 0 {
		r.Facts = json.RawMessage(fmt.Sprintf(`[{"decided": %d,"why":"né\u0000<&>"}]`, seq))
	}
	r.Sample, r.Kept = seq%6 == 3, w.kept
	if !r.Sample {
		w.kept = seq
	}
	for line := range int(seq % 3) {
		amount := money.Picos(int64(seq)*1_000_003 + int64(line) + 1)
		p, _ := ledger.Move(amount, ledger.Payable("local"), ledger.Cost(ledger.Compute, ledger.Open))
		p.Event, p.Line, p.At, p.Currency = seq, line, r.At, money.USD
		p.Category, p.Phase, p.Use = ledger.Compute, ledger.Accrued, ledger.Open
		p.Provider, p.Region, p.SKU = "local", "here", "local.large"
		p.Begin, p.End = r.At.Add(-time.Hour), r.At
		p.Quantity, p.Unit = ledger.Seconds(time.Hour+time.Duration(line)), ledger.SecondUnit
		p.Price, p.ListPrice = ledger.PriceOf(money.Rate(seq), seq%4 == 0), ledger.PriceOf(0, seq%5 == 0)
		p.Owner = ledger.Owner{Tenant: tenant, Team: "t", Job: job, Attempt: job + "-1",
			Tags: map[string]string{"b": "2", "a": "1"}}
		sealed, head := ledger.Seal([]ledger.Posting{p}, w.heads[tenant])
		w.heads[tenant] = head
		r.Postings = append(r.Postings, sealed...)
	}
	return r
}

// At opens a place and closes it at the end of the test.
func (b Backend) At(t testing.TB, place string) store.Store {
	t.Helper()
	s, err := b.Open(t.Context(), place)
	if err != nil {
		t.Fatalf("open %s: %v", place, err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second time if the test closed it
	return s
}

// Fresh opens a new, empty place.
func (b Backend) Fresh(t testing.TB) store.Store {
	t.Helper()
	return b.At(t, b.Place(t))
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

// Same compares written with read records byte for byte.
func Same(t testing.TB, got, want []Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := Text(got[i]), Text(want[i]); g != w {
			t.Fatalf("record %d differs\n got %s\nwant %s", want[i].Seq, g, w)
		}
	}
}

// Text formats a record with its postings.
func Text(r Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d after %d, sample %v %q %s %q %q\n event %q\n facts %q",
		r.Seq, r.Kept, r.Sample, r.Tenant, r.At.Format(time.RFC3339Nano), r.Kind, r.Key, r.Event, r.Facts)
	for _, p := range r.Postings {
		b.WriteString("\n " + Posted(p))
	}
	return b.String()
}

// Posted formats a posting with its chain.
func Posted(p ledger.Posting) string {
	return fmt.Sprintf("posting %x %x", p.AppendBinary(nil), p.Hash)
}

// Bare removes the postings.
func Bare(list []Record) []Record {
	out := make([]Record, len(list))
	for i, r := range list {
		r.Postings = nil
		out[i] = r
	}
	return out
}

// All reads the whole log in growing pages.
func All(t testing.TB, s store.Store) (list []Record) {
	t.Helper()
	after := uint64(0)
	for limit := 7; ; limit += limit / 2 {
		page, err := s.WholeRecords(context.Background(), after, limit)
		Must(t, err)
		if len(page) == 0 {
			return list
		}
		list, after = append(list, page...), page[len(page)-1].Seq
	}
}

// Verify checks the chain of each tenant.
func Verify(t testing.TB, s store.Store) {
	t.Helper()
	for _, tenant := range []string{"default", "lab"} {
		if err := ledger.Verify(s.Postings(context.Background(), tenant, "")); err != nil {
			t.Errorf("ledger of %s: %v", tenant, err)
		}
	}
}

// Blob returns the database's type for bytes.
func (b Backend) Blob() string {
	if b.Name == "postgres" {
		return "bytea"
	}
	return "BLOB"
}

// More returns SQL that increases an amount by the smallest unit.
func (b Backend) More() string {
	if b.Name == "postgres" {
		return "amount = amount + 0.000000000001"
	}
	return "picos = picos + 1"
}

// Unguard returns SQL that removes a trigger from a table.
func (b Backend) Unguard(trigger, table string) string {
	if b.Name == "postgres" {
		return "DROP TRIGGER " + trigger + " ON " + table
	}
	return "DROP TRIGGER " + trigger
}
