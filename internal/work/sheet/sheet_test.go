package sheet_test

import (
	"math/big"
	"strings"
	"testing"

	"scrimp/internal/work/sheet"
)

// Each invalid file is refused with file, line, field and fix.
func TestSheet_NamesFileLineFieldAndFix(t *testing.T) {
	for text, says := range map[string]string{
		"":                                     "costs.yaml: the file is empty",
		"- a":                                  "costs.yaml:1: has no fields: write its fields below it",
		"a: 1\nb: 1":                           "costs.yaml:2: `b` is not known here: write one of a, c",
		"a: 1\na: 2":                           "is there twice",
		"a: .nan":                              "`a` is \".nan\": write a decimal",
		"a: .inf":                              "`a` is \".inf\"",
		"a: 1e300":                             "`a` is \"1e300\"",
		"a: -1":                                "from 0 to 10^12",
		"a: 1099511627777":                     "from 0 to 10^12",
		"a: 0.0000000000001":                   "with at most 12 decimals",
		"a: &x 1\nc: *x":                       "`c` is no text",
		"a: [1]":                               "`a` is \"\"",
		"a: 1\nc: " + strings.Repeat("x", 201): "`c` is no text of at most 200 bytes",
		"a: {":                                 "correct the YAML",
		strings.Repeat("#", 1<<20+1):           "larger than 1 MiB",
	} {
		r, n := sheet.Open("folder/costs.yaml", []byte(text))
		f := n.Fields("a", "c")
		f["a"].Decimal()
		f["c"].Text()
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "costs.yaml:") {
			t.Errorf("%.60q: %v, want %q", text, err, says)
		}
	}
}

// Decimals are exact, and an amount is rounded once, half away from zero.
func TestSheet_IsExact(t *testing.T) {
	r, n := sheet.Open("costs.yaml", []byte("a: 0.1\nb: 28%\n"))
	f := n.Fields("a", "b")
	a, okA := f["a"].Decimal()
	b, okB := f["b"].Decimal()
	if r.Err() != nil || !okA || !okB || a.Cmp(big.NewRat(1, 10)) != 0 || b.Cmp(big.NewRat(28, 100)) != 0 {
		t.Errorf("%v, %v, %v", a, b, r.Err())
	}
	for _, c := range []struct {
		v    *big.Rat
		want string
	}{{big.NewRat(1, 3), "0.333333333333"}, {big.NewRat(2, 3), "0.666666666667"}, {big.NewRat(-2, 3), "-0.666666666667"},
		{big.NewRat(5, 1), "5"}, {big.NewRat(1, 2e12), "0.000000000001"}, {big.NewRat(-1, 2e12), "-0.000000000001"}} {
		if got, ok := sheet.Amount(c.v); !ok || got.String() != c.want {
			t.Errorf("%v: %v, want %s", c.v, got, c.want)
		}
	}
	if _, ok := sheet.Amount(new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))); ok {
		t.Error("10^30 is an amount")
	}
}

func FuzzSheet(f *testing.F) {
	f.Add([]byte("a: [1, 2]\nb: {c: 3%}\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		r, n := sheet.Open("costs.yaml", text)
		for _, one := range n.All() {
			one.Decimal()
			one.List()
			one.Whole(0, 9, 1)
			one.Fields("c")["c"].Word("d")
		}
		_ = r.Err()
	})
}
