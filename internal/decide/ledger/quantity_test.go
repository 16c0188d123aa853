package ledger_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/test/must"
)

// A quantity round-trips exactly, and no other text is accepted.
func TestQuantity_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := ledger.Quantity{
			Whole: rapid.Int64Range(0, math.MaxInt64).Draw(t, "whole"),
			Nanos: rapid.OneOf(rapid.Just(int32(0)), rapid.Int32Range(0, 999_999_999)).Draw(t, "nanos"),
		}
		var back ledger.Quantity
		if err := back.UnmarshalText([]byte(q.String())); err != nil || back != q {
			t.Fatalf("%+v is written %q and read as %+v: %v", q, q.String(), back, err)
		}
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "span"))
		if s := ledger.Seconds(d); !s.Valid() || time.Duration(s.Whole)*time.Second+time.Duration(s.Nanos) != d {
			t.Fatalf("%v is %+v", d, s)
		}
	})
	for _, bad := range []string{"", "-1", "1.", ".5", "1.50", "01", "+1", "1e3", "1.0000000001", "9223372036854775808", "0.-1", "1.+5"} {
		if err := new(ledger.Quantity).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read as a quantity", bad)
		}
	}
}

// The JSON names are fixed, because the API and backups use them. Unknown values are omitted; a price of zero is
// known.
func TestPosting_JSONIsStable(t *testing.T) {
	p := posting(3, 1)
	p.Price.Rate = 0
	text, err := json.Marshal(p)
	must.Do(t, err)
	for _, want := range []string{
		`"provider":"local"`, `"region":"here"`, `"sku":"local.large"`, `"begin":"2026-03-01T00:00:00Z"`, `"end":"2026-03-01T00:00:03Z"`,
		`"quantity":"3.000000005"`, `"unit":"s"`, `"price":"0"`, `"list_price":"0.09"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	var back ledger.Posting
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("read again: %+v, %v; want %+v", back, err, p)
	}
	if text, err = json.Marshal(ledger.Posting{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"provider", "region", "sku", "begin", "end", "quantity", "unit", "price", "list_price"} {
		if strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("%s is written where it is not known: %s", name, text)
		}
	}
}
