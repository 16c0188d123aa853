package layout

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// columned returns a posting with only the fields that have columns.
func columned(p ledger.Posting) ledger.Posting {
	return ledger.Posting{
		Event: p.Event, Line: p.Line, Amount: p.Amount, Currency: p.Currency, From: p.From, To: p.To,
		Owner: ledger.Owner{Tenant: p.Owner.Tenant, Job: p.Owner.Job}, Prev: p.Prev, Hash: p.Hash,
	}
}

func drawPosting(t *rapid.T) ledger.Posting {
	text := func() string {
		return rapid.OneOf(
			rapid.SampledFrom(words), rapid.StringN(0, 5, -1), rapid.Just("j-1"), rapid.Just("j-1-1"), rapid.Just("j-1-1/0"),
			rapid.StringMatching(`[a-z]{30,90}`),
		).Draw(t, "text")
	}
	moment := rapid.OneOf(
		rapid.Just(time.Time{}), rapid.Just(time.Unix(0, 0).UTC()),
		rapid.Custom(func(t *rapid.T) time.Time { return time.Unix(0, rapid.Int64().Draw(t, "ns")).UTC() }),
	)
	price := rapid.Custom(func(t *rapid.T) ledger.Price {
		return ledger.PriceOf(money.Rate(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate")), rapid.Bool().Draw(t, "known"))
	})
	p := ledger.Posting{
		Event: rapid.Uint64().Draw(t, "event"), Line: rapid.IntRange(0, 9).Draw(t, "line"), At: moment.Draw(t, "at"), Amount: money.Picos(1),
		Currency: money.USD, From: ledger.Account(text()), To: ledger.Account(text()),
		Category: ledger.Category(text()), Phase: ledger.Phase(text()), Use: ledger.Use(text()), Rule: text(),
		Provider: text(), Region: text(), Zone: text(), SKU: text(), Begin: moment.Draw(t, "begin"), End: moment.Draw(t, "end"), Unit: ledger.Unit(text()),
		Quantity: ledger.Quantity{Whole: rapid.Int64Range(0, math.MaxInt64).Draw(t, "whole"), Nanos: rapid.Int32Range(0, 999_999_999).Draw(t, "nanos")},
		Price:    price.Draw(t, "price"), ListPrice: price.Draw(t, "list price"),
		Owner: ledger.Owner{
			Tenant: text(), Team: text(), Project: text(), Environment: text(), ModelVersion: text(),
			Job: text(), Attempt: text(), Task: text(), Instance: text(),
		},
	}
	for range rapid.IntRange(0, 3).Draw(t, "tags") {
		if p.Owner.Tags == nil {
			p.Owner.Tags = map[string]string{}
		}
		p.Owner.Tags[text()] = text()
	}
	return p
}

// unpack restores whatever pack wrote, and refuses input that was cut or extended.
func TestUnpack_InvertsPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPosting(t)
		rest := Pack(&p)
		got := columned(p)
		if err := unpack(rest, &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("packed %+v, unpacked %+v: %v", p, got, err)
		}
		if again := Pack(&got); !bytes.Equal(again, rest) {
			t.Fatalf("packed again it is %x, not %x", again, rest)
		}
		for _, bad := range [][]byte{rest[:rapid.IntRange(0, len(rest)-1).Draw(t, "cut")], append(slices.Clone(rest), 0)} {
			got = columned(p)
			if err := unpack(bad, &got); err == nil {
				t.Fatalf("%x is read as %+v", bad, got)
			}
		}
	})
}

// Arbitrary bytes yield an error or a posting, never a panic.
func FuzzUnpack(f *testing.F) {
	p := ledger.Posting{At: time.Unix(1, 0), Owner: ledger.Owner{Job: "j", Attempt: "j-1", Tags: map[string]string{"a": "b"}}}
	f.Add(Pack(&p), "j")
	f.Add([]byte{1, 255, 1}, "")
	f.Fuzz(func(t *testing.T, rest []byte, job string) {
		p := ledger.Posting{Owner: ledger.Owner{Job: job}}
		_ = unpack(rest, &p)
	})
}

// Words keep their places for ever: a database refers to them by number.
func TestWords_KeepTheirPlaces(t *testing.T) {
	if len(words) > wordRoom {
		t.Errorf("%d words, room for %d", len(words), wordRoom)
	}
	first := []string{
		"", "compute", "storage", "transfer", "image", "overhead", "fixed", "estimated", "accrued", "billed",
		"open", "useful", "lost", "start-up", "idle", "s", "B",
	}
	if !slices.Equal(words[:len(first)], first) {
		t.Errorf("the words are %q, and databases have %q", words, first)
	}
}
