package ledger_test

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// posting returns a posting with every field set.
func posting(event uint64, line int) ledger.Posting {
	return ledger.Posting{
		Event: event, Line: line, At: start.Add(time.Duration(event) * time.Second), Amount: money.Picos(int64(event)*1000 + int64(line) + 1), Currency: "USD",
		From: ledger.Payable("local"), To: ledger.Cost(ledger.Compute, ledger.Open), Category: ledger.Compute, Phase: ledger.Accrued, Use: ledger.Open, Rule: "minimum",
		Provider: "local", Region: "here", SKU: "local.large", Begin: start, End: start.Add(time.Duration(event) * time.Second),
		Quantity: ledger.Quantity{Whole: int64(event), Nanos: 5}, Unit: ledger.SecondUnit,
		Price: ledger.PriceOf(30_000_000_000, true), ListPrice: ledger.PriceOf(90_000_000_000, true),
		Owner: ledger.Owner{Tenant: "default", Team: "t", Project: "p", Environment: "e", ModelVersion: "m", Job: "j", Attempt: "j-1", Task: "j-1/0", Instance: "i", Tags: map[string]string{"a": "1", "b": "2"}},
	}
}

func seq(list []ledger.Posting) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// chain returns n sealed postings, two per event.
func chain(n int) []ledger.Posting {
	var list []ledger.Posting
	for i := range n {
		list = append(list, posting(uint64(1+i/2), i%2))
	}
	list, _ = ledger.Seal(list, ledger.Hash{})
	return list
}

// Verify fails if any field of a sealed posting changes, at any depth. Reflection finds the fields, so the hash
// must cover a new field or this test fails.
func TestHash_CoversEveryField(t *testing.T) {
	must.Do(t, ledger.Verify(seq(chain(3))))
	changed := 0
	var walk func(name string, of func(*ledger.Posting) reflect.Value)
	walk = func(name string, of func(*ledger.Posting) reflect.Value) {
		list := chain(3)
		v := of(&list[1])
		switch x := v.Addr().Interface().(type) {
		case *money.Amount:
			*x = x.Add(money.Picos(1))
		case *time.Time:
			*x = x.Add(1)
		case *ledger.Hash:
			x[31] ^= 1
		case *map[string]string:
			for what, tags := range map[string]map[string]string{
				"value": {"a": "1", "b": "3"}, "name": {"a": "1", "c": "2"}, "one less": {"a": "1"}, "one more": {"a": "1", "b": "2", "c": ""}, "swapped": {"a": "2", "b": "1"}, "none": nil,
			} {
				list := chain(3)
				of(&list[1]).Set(reflect.ValueOf(tags))
				if ledger.Verify(seq(list)) == nil {
					t.Errorf("%s: another %s goes unseen", name, what)
				}
			}
			*x = map[string]string{"z": "1"}
		default:
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					walk(name+"."+v.Type().Field(i).Name, func(p *ledger.Posting) reflect.Value { return of(p).Field(i) })
				}
				return
			case reflect.String:
				v.SetString(v.String() + "x")
			case reflect.Int, reflect.Int32, reflect.Int64:
				v.SetInt(v.Int() + 1)
			case reflect.Bool:
				v.SetBool(!v.Bool())
			case reflect.Uint64:
				v.SetUint(v.Uint() + 1)
			default:
				t.Fatalf("%s is a %s: teach this test to change it", name, v.Type())
			}
		}
		changed++
		if err := ledger.Verify(seq(list)); err == nil {
			t.Errorf("another %s goes unseen", name)
		}
	}
	walk("Posting", func(p *ledger.Posting) reflect.Value { return reflect.ValueOf(p).Elem() })
	if changed < 35 {
		t.Errorf("only %d fields were changed: the walk does not reach them", changed)
	}
}

// Different postings have different bytes: no text runs into its neighbour, and the zero time differs from 1970.
func TestHash_DifferentPostingsHaveDifferentBytes(t *testing.T) {
	short := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 2, -1)
	price := rapid.Custom(func(t *rapid.T) ledger.Price {
		return ledger.PriceOf(money.Rate(rapid.Int64Range(0, 1).Draw(t, "rate")), rapid.Bool().Draw(t, "known"))
	})
	draw := rapid.Custom(func(t *rapid.T) ledger.Posting {
		text := func(name string) string { return short.Draw(t, name) }
		p := ledger.Posting{
			Event: rapid.Uint64Range(0, 1).Draw(t, "event"), Line: rapid.IntRange(0, 1).Draw(t, "line"), Amount: money.Picos(rapid.Int64Range(-1, 1).Draw(t, "amount")),
			Currency: money.Currency(text("currency")), From: ledger.Account(text("from")), To: ledger.Account(text("to")), Category: ledger.Category(text("category")),
			Phase: ledger.Phase(text("phase")), Use: ledger.Use(text("use")), Rule: text("rule"),
			Provider: text("provider"), Region: text("region"), SKU: text("sku"), Unit: ledger.Unit(text("unit")),
			Quantity: ledger.Quantity{Whole: rapid.Int64Range(0, 1).Draw(t, "whole"), Nanos: rapid.Int32Range(0, 1).Draw(t, "nanos")},
			Price:    price.Draw(t, "price"), ListPrice: price.Draw(t, "list price"),
			Owner: ledger.Owner{Tenant: text("tenant"), Team: text("team"), Instance: text("instance"), Tags: rapid.MapOfN(short, short, 0, 2).Draw(t, "tags")},
		}
		for i, at := range []*time.Time{&p.At, &p.Begin, &p.End} {
			if rapid.Bool().Draw(t, fmt.Sprint("dated ", i)) {
				*at = time.Unix(0, rapid.Int64Range(0, 1).Draw(t, fmt.Sprint("time ", i))).UTC()
			}
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if equal, bytes := reflect.DeepEqual(a, b), slices.Equal(a.AppendBinary(nil), b.AppendBinary(nil)); equal != bytes {
			t.Fatalf("equal: %v, the same bytes: %v", equal, bytes)
		}
	})
}

// Verify detects any damage to a chain and names the first bad posting.
func TestVerify_NamesTheFirstDamagedPosting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := chain(rapid.IntRange(4, 20).Draw(t, "postings"))
		n := len(whole)
		i := rapid.IntRange(0, n-2).Draw(t, "at")
		list := slices.Clone(whole)
		var named ledger.Posting
		var want string
		switch what := rapid.SampledFrom([]string{"amount", "resealed", "deleted", "swapped", "inserted", "copied", "moved"}).Draw(t, "damage"); what {
		case "amount":
			list[i].Amount = list[i].Amount.Add(money.Picos(1))
			named, want = list[i], "changed after it was sealed"
		case "resealed": // with a matching hash, so that the next posting no longer follows it
			list[i].Amount = list[i].Amount.Add(money.Picos(1))
			ledger.Seal(list[i:i+1], list[i].Prev)
			named, want = list[i+1], "does not follow"
		case "deleted":
			list = slices.Delete(list, i, i+1)
			named, want = whole[i+1], "does not follow"
		case "swapped":
			list[i], list[i+1] = list[i+1], list[i]
			named, want = whole[i+1], "does not follow"
		case "inserted":
			fresh, _ := ledger.Seal([]ledger.Posting{posting(whole[i].Event, whole[i].Line)}, whole[i].Prev)
			fresh[0].Owner.Job = "other"
			fresh, _ = ledger.Seal(fresh, whole[i].Prev)
			list = slices.Insert(list, i, fresh[0])
			named, want = whole[i], "stands after a later one"
		case "copied":
			list = slices.Insert(list, i, whole[i])
			named, want = whole[i], "stands after a later one"
		case "moved":
			list = append(slices.Delete(list, i, i+1), whole[i])
			named, want = whole[i+1], "does not follow"
		}
		err := ledger.Verify(seq(list))
		if err == nil {
			t.Fatal("not found")
		}
		if name := fmt.Sprintf("posting %d of event %d: ", named.Line, named.Event); !strings.HasPrefix(err.Error(), name) || !strings.Contains(err.Error(), want) {
			t.Fatalf("found as %q, want %q and %q", err, name, want)
		}
	})
}

// A chain truncated at its end is consistent in itself. A remembered head detects it, in either direction.
func TestVerify_DetectsATruncatedChain(t *testing.T) {
	list := chain(6)
	heads, err := ledger.Heads(seq(list))
	must.Do(t, err)
	if heads["default"] != list[5].Hash {
		t.Fatalf("head %x", heads["default"])
	}
	if err := ledger.VerifyTo(seq(list), heads); err != nil {
		t.Errorf("the whole chain: %v", err)
	}
	for cut := range 6 {
		if err := ledger.VerifyTo(seq(list[:cut]), heads); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("cut to %d: %v", cut, err)
		}
	}
	if err := ledger.VerifyTo(seq(list), map[string]ledger.Hash{"default": list[3].Hash}); err == nil {
		t.Error("two postings more than the head knows go unseen")
	}
	if err := ledger.VerifyTo(seq(list), nil); err == nil {
		t.Error("a tenant that nobody knows goes unseen")
	}
}

// The chains of tenants are interleaved and independent: damage to one is not attributed to another.
func TestVerify_ChecksTenantsSeparately(t *testing.T) {
	a, b := chain(4), chain(4)
	for i := range b {
		b[i].Owner.Tenant = "other"
	}
	b, _ = ledger.Seal(b, ledger.Hash{})
	mixed := []ledger.Posting{a[0], b[0], b[1], a[1], a[2], b[2], b[3], a[3]}
	must.Do(t, ledger.Verify(seq(mixed)))
	stolen := slices.Clone(mixed)
	stolen[1].Owner.Tenant = "default"
	if err := ledger.Verify(seq(stolen)); err == nil {
		t.Error("a posting that changed its tenant goes unseen")
	}
}

func TestVerify_RefusesMalformedPostings(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*ledger.Posting)
	}{
		{"its amount is not positive", func(p *ledger.Posting) { p.Amount = money.Amount{} }},
		{"its amount is not positive", func(p *ledger.Posting) { p.Amount = p.Amount.Neg() }},
		{"does not move from one account to another", func(p *ledger.Posting) { p.To = p.From }},
		{"does not move from one account to another", func(p *ledger.Posting) { p.From = "" }},
		{"does not move from one account to another", func(p *ledger.Posting) { p.To = "" }},
		{"has no currency", func(p *ledger.Posting) { p.Currency = "" }},
		{"its quantity is", func(p *ledger.Posting) { p.Quantity.Whole = -1 }},
		{"its quantity is", func(p *ledger.Posting) { p.Quantity.Nanos = 1e9 }},
		{"ends before it begins", func(p *ledger.Posting) { p.End = p.Begin.Add(-1) }},
	} {
		p := posting(1, 0)
		c.change(&p)
		list, _ := ledger.Seal([]ledger.Posting{p}, ledger.Hash{}) // sealed without a check
		if err := ledger.Verify(seq(list)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	broken := errors.New("the disk")
	if err := ledger.Verify(func(yield func(ledger.Posting, error) bool) { yield(ledger.Posting{}, broken) }); !errors.Is(err, broken) {
		t.Errorf("an error of the store: %v", err)
	}
}

func TestHash_RoundTrips(t *testing.T) {
	h := chain(1)[0].Hash
	text, _ := h.MarshalText()
	var back ledger.Hash
	if err := back.UnmarshalText(text); err != nil || back != h || len(text) != 64 {
		t.Errorf("%s: %v", text, err)
	}
	for _, bad := range []string{"", "00", string(text[:63]), string(text) + "00", strings.Repeat("g", 64)} {
		if back.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read as a hash", bad)
		}
	}
}

// The name of a cost account contains its category and use, and IsCost reads them back.
func TestAccount_NamesItsCategoryAndUse(t *testing.T) {
	for _, c := range []ledger.Category{ledger.Compute, ledger.Storage, ledger.Transfer, ledger.Image, ledger.Overhead, ledger.Fixed} {
		for _, u := range []ledger.Use{ledger.Open, ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle, "another"} {
			if a, want := ledger.Cost(c, u), "cost/"+string(c)+"/"+string(u); string(a) != want {
				t.Errorf("the account of %s that is %s is %q, want %q", c, u, a, want)
			}
			if category, use, ok := ledger.Cost(c, u).IsCost(); category != c || use != u || !ok {
				t.Errorf("%s says %s and %s (%v)", ledger.Cost(c, u), category, use, ok)
			}
		}
	}
}
