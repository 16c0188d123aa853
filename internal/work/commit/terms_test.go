package commit_test

import (
	"strings"
	"testing"

	"scrimp/internal/work/commit"
)

const list = "on_demand: {price: 4, source: list}\nterms:\n"

func TestReadTerms_SpreadsTheUpfront(t *testing.T) {
	got, err := commit.ReadTerms("terms.yaml", []byte(list+
		"  - {name: a, kind: reserved, years: 1, upfront: 8760, hourly: 1.88, source: list}\n"+
		"  - {name: b, kind: savings-plan, years: 3, hourly: 2, source: list}\n"))
	if err != nil || len(got.Offers) != 2 || got.Offers[0].Price != 7200 || got.Offers[1].Price != 5000 || got.Currency != "USD" {
		t.Fatalf("%+v, %v", got, err)
	}
	all, upfront := got.Offers[0].Owed(10) // 10 × (8,760 + 1.88 × 8,760)
	if all.FloatString(2) != "252288.00" || upfront.FloatString(2) != "87600.00" {
		t.Errorf("owed %s, %s of it at once", all.FloatString(2), upfront.FloatString(2))
	}
	if all, _ := got.Offers[1].Owed(1); all.FloatString(2) != "52560.00" {
		t.Errorf("owed %s", all.FloatString(2))
	}
}

// Each bad file is refused with file, line, field and fix; no price is without a source.
func TestReadTerms_NamesWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"terms: []": "`on_demand` has no price above zero",
		"on_demand: {price: 0, source: x}\nterms: []":                                        "`on_demand` has no price above zero",
		"on_demand: {price: 4}\nterms: []":                                                   "`on_demand.source` is missing: write where the price is from",
		"on_demand: {price: 1e300, source: x}":                                               "`on_demand.price` is \"1e300\"",
		list + "  []":                                                                        "`terms` are 0",
		list + "  - {name: a, kind: reserved, hourly: 2}":                                    "terms.yaml:3: `terms[0].source` is missing",
		list + "  - {name: a, kind: gift, hourly: 2, source: x}":                             "`terms[0].kind` is \"gift\": write one of reserved",
		list + "  - {name: a, kind: reserved, hourly: 4, source: x}":                         "`terms[0]` costs 100% of on-demand",
		list + "  - {name: a, kind: reserved, hourly: 500, source: x}":                       "`terms[0]` costs more than 100 times of on-demand",
		list + "  - {name: a, kind: reserved, hourly: 0, source: x}":                         "`terms[0]` costs 0% of on-demand",
		list + "  - {name: a, kind: reserved, source: x}":                                    "`terms[0]` has no price",
		list + "  - {name: a, kind: reserved, years: 2, hourly: 2, source: x}":               "`terms[0].years` is 2: write 1 or 3",
		list + "  - {name: a, kind: reserved, hourly: -2, source: x}":                        "`terms[0].hourly` is \"-2\"",
		"currency: dollars\n" + list + "  - {name: a, kind: reserved, hourly: 2, source: x}": "`currency` is \"dollars\"",
		list + strings.Repeat("  - {name: a, kind: reserved, hourly: 2, source: x}\n", 2):    "has the name \"a\" of another",
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
		"-5%": "is not from", "1.5": "is not from", "NaN": "is no share", "1e300": "is no share", "": "is no share",
		"0.28345": "is finer than", "99999999999999999999999": "is not from"} {
		if got, err := commit.ParseShare(text, 1, commit.One-1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
