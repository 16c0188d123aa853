package commit_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"scrimp/internal/job/spec"
	"scrimp/internal/work/commit"
)

const list = "on_demand: {price: 4, source: list}\nterms:\n"

func TestReadTerms_SpreadsTheUpfront(t *testing.T) {
	got, err := commit.ReadTerms("terms.yaml", []byte(list+
		"  - {name: a, kind: reserved, years: 1, upfront: 8760, hourly: 1.88, source: list}\n"+
		"  - {name: b, kind: savings-plan, years: 3, hourly: 2, source: list}\n"))
	if err != nil || len(got.Offers) != 2 || got.Offers[0].Price.Cmp(commit.Share(7200)) != 0 || got.Offers[1].Price.Cmp(commit.Share(5000)) != 0 || got.Currency != "USD" {
		t.Fatalf("%+v, %v", got, err)
	}
	// 10 × (8,760 + 1.88 × 8,760): the hourly payment does not include the upfront one.
	all, upfront, hourly := got.Offers[0].Owed(10)
	if all.FloatString(2) != "252288.00" || upfront.FloatString(2) != "87600.00" || hourly.FloatString(2) != "18.80" {
		t.Errorf("owed %s, %s of it at once, %s an hour", all.FloatString(2), upfront.FloatString(2), hourly.FloatString(2))
	}
	if all, _, _ := got.Offers[1].Owed(1); all.FloatString(2) != "52560.00" {
		t.Errorf("owed %s", all.FloatString(2))
	}
}

// A price is exact however small it is compared to the on-demand price, and may have a dollar sign as in job files.
func TestReadTerms_KeepsPricesExact(t *testing.T) {
	got, err := commit.ReadTerms("terms.yaml", []byte("on_demand: {price: $100000, source: list}\nterms:\n"+
		"  - {name: a, kind: reserved, years: 1, hourly: $0.5, source: list}\n"+
		"  - {name: b, kind: reserved, years: 3, upfront: 1, source: list}\n"))
	if err != nil || got.Offers[0].Price.Cmp(big.NewRat(1, 200_000)) != 0 || got.Offers[1].Price.Cmp(big.NewRat(1, 3*8760*100_000)) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each mistake is reported once.
func TestReadTerms_NamesEachMistakeOnce(t *testing.T) {
	for _, text := range []string{
		"on_demand: {price: -3, source: x}\nterms:\n  - {name: a, kind: reserved, hourly: 2, source: x}",
		"on_demand: {price: 0, source: x}\nterms:\n  - {name: a, kind: reserved, hourly: 2, source: x}",
		"on_demand: {",
		"on_demand: 3\nterms:\n  - {name: a, kind: reserved, hourly: 2, source: x}",
		list + "  - 3",
		list + "  - {name: a, kind: reserved, hourly: x, source: x}",
		list + "  - {name: a, kind: [a], hourly: 2, source: x}",
		"on_demand: {price: 4, source: x}\nterms: 3",
	} {
		_, err := commit.ReadTerms("terms.yaml", []byte(text))
		if list, is := errors.AsType[spec.Problems](err); !is || len(list) != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each invalid file is refused with file, line, field and fix. Every price needs a source.
func TestReadTerms_NamesWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"terms: []": "`on_demand.price` is missing: write what an hour",
		"on_demand: {price: 0, source: x}\nterms: []":                                        "`on_demand.price` is zero: write what an hour",
		"on_demand: {price: 4}\nterms: []":                                                   "`on_demand.source` is missing: write where the price is from",
		"on_demand: {price: 1e300, source: x}":                                               "`on_demand.price` is \"1e300\"",
		list + "  []":                                                                        "`terms` lists 0 terms: list 1 to 50",
		list + "  - {name: a, kind: reserved, hourly: 2}":                                    "terms.yaml:3: `terms[0].source` is missing",
		list + "  - {name: a, kind: gift, hourly: 2, source: x}":                             "`terms[0].kind` is \"gift\": write one of reserved",
		list + "  - {name: a, kind: reserved, hourly: 4, source: x}":                         "`terms[0]` costs 100% of on-demand",
		list + "  - {name: a, kind: reserved, hourly: 500, source: x}":                       "`terms[0]` costs more than 100 times of on-demand",
		list + "  - {name: a, kind: reserved, hourly: 0, source: x}":                         "`terms[0]` costs nothing",
		list + "  - {name: a, kind: reserved, hourly: 28%, source: x}":                       "`terms[0].hourly` is \"28%\", and a percentage is no price: write the amount",
		list + "  - {name: a, kind: reserved, upfront: $-2, source: x}":                      "`terms[0].upfront` is \"$-2\"",
		"currency: EUR\non_demand: {price: $4, source: list}\nterms: []":                     "`on_demand.price` is \"$4\", and the currency is EUR",
		list + "  - {name: a, kind: reserved, source: x}":                                    "`terms[0]` has no price",
		list + "  - {name: a, kind: reserved, years: 2, hourly: 2, source: x}":               "`terms[0].years` is 2: write 1 or 3",
		list + "  - {name: a, kind: reserved, hourly: -2, source: x}":                        "`terms[0].hourly` is \"-2\"",
		"currency: dollars\n" + list + "  - {name: a, kind: reserved, hourly: 2, source: x}": "`currency` is \"dollars\"",
		list + strings.Repeat("  - {name: a, kind: reserved, hourly: 2, source: x}\n", 2):    "has the same name as another term: \"a\"",
	} {
		if _, err := commit.ReadTerms("terms.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestParseShare_IsExactAndBounded(t *testing.T) {
	for text, want := range map[string]int64{"28%": 2800, "0.28": 2800, " 0.4 ": 4000, "0.01%": 1, "99.99 %": 9999, "1%": 100} {
		if got, err := commit.ParseShare(text, 1, commit.One-1); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{"100%": "is not from 0.01% to 99.99%", "28": "is not from", "0": "is not from",
		"-5%": "is not from", "1.5": "is not from", "NaN": "is not a share", "1e300": "is not a share", "": "is not a share",
		"0.28345": "is finer than", "99999999999999999999999": "is not from"} {
		if got, err := commit.ParseShare(text, 1, commit.One-1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
