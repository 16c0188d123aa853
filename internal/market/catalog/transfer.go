package catalog

import (
	"cmp"
	_ "embed" // the prices are part of the program
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

//go:embed transfer.csv
var transferRows string

// What is paid besides machines, by gigabytes of 1e9 bytes. In an overlay it stands
// in the place of the machine, without region and capacity.
const (
	StorageMonth   = "storage-gb-month"   // kept in the provider's object store for a month of 730 hours
	TransferRegion = "transfer-gb-region" // to another region of the provider, on the same continent
	TransferOut    = "transfer-gb-out"    // to anywhere else
)

var notMachines = []string{StorageMonth, TransferRegion, TransferOut}

// TransferRate is what a provider takes for keeping or moving a gigabyte.
type TransferRate struct {
	Provider string
	What     string
	Price    money.Rate // of a gigabyte, not of an hour
	Currency money.Currency
	Source   string
	At       time.Time
}

// TransferRate returns what a provider takes, the user's own price before the one that
// the program has built in, and false where none is known: unknown is not zero.
func (c Catalog) TransferRate(provider, what string) (TransferRate, bool) {
	is := func(x TransferRate) bool { return x.Provider == provider && x.What == what }
	if i := slices.IndexFunc(c.Own, is); i >= 0 {
		return c.Own[i], true
	}
	if i := slices.IndexFunc(builtinRates, is); i >= 0 {
		return builtinRates[i], true
	}
	return TransferRate{}, false
}

var builtinRates = readRates(transferRows)

// readRates reads the embedded table, which a test holds to be sound.
func readRates(text string) []TransferRate {
	rows, err := table(text)
	if err != nil {
		panic("catalog: " + err.Error())
	}
	var list []TransferRate
	for _, r := range rows {
		x, skip := transferRate(r, r["source"], time.Time{})
		if skip.Why != "" {
			panic("catalog: transfer.csv: " + skip.Why + " " + skip.Detail)
		}
		if x.At, err = ParseTime(r["date"]); err != nil {
			panic("catalog: transfer.csv: " + err.Error())
		}
		list = append(list, x)
	}
	return list
}

// transferRate reads a row, or says why not. Nothing may be free here as well: some stores are.
func transferRate(r map[string]string, source string, at time.Time) (TransferRate, Skip) {
	if !slices.Contains(notMachines, cmp.Or(r["what"], r["machine"])) {
		return TransferRate{}, Skip{Why: BadRow, Detail: "it is none of " + strings.Join(notMachines, ", ")}
	}
	rate, why := ParsePrice(r["price"])
	if why != "" && why != ZeroPrice {
		return TransferRate{}, Skip{Why: why, Detail: r["price"]}
	}
	currency, ok := ParseCurrency(cmp.Or(r["currency"], string(money.USD)))
	if !ok {
		return TransferRate{}, Skip{Why: BadCurrency, Detail: r["currency"]}
	}
	if r["at"] != "" {
		t, err := ParseTime(r["at"])
		if err != nil {
			return TransferRate{}, Skip{Why: BadRow, Detail: err.Error()}
		}
		at = t
	}
	return TransferRate{Provider: r["provider"], What: cmp.Or(r["what"], r["machine"]), Price: rate, Currency: currency,
		Source: source, At: at}, Skip{}
}

// Continent is where a region lies as far as its name says, and "" where it does not.
// What a provider takes between two regions is known for one continent only.
func Continent(region string) string {
	r := strings.ToLower(region)
	for _, c := range []struct{ name, words string }{
		{"north america", "us- northamerica- ca- canada centralus eastus westus northcentralus southcentralus"},
		{"europe", "eu- europe uksouth ukwest france germany sweden switzerland norway poland italy"},
		{"asia", "ap- asia japan korea india singapore"}, {"south america", "sa- southamerica brazil"},
		{"australia", "australia"},
	} {
		for _, w := range strings.Fields(c.words) {
			if strings.HasSuffix(w, "-") && strings.HasPrefix(r, w) || !strings.HasSuffix(w, "-") && strings.Contains(r, w) {
				return c.name
			}
		}
	}
	return ""
}

// Store returns the provider in whose object store a path lies, and "" where the
// path does not say.
func Store(path string) string {
	scheme, _, ok := strings.Cut(strings.ToLower(path), "://")
	switch {
	case !ok:
		return ""
	case scheme == "s3":
		return "aws"
	case scheme == "gs":
		return "gcp"
	case slices.Contains([]string{"az", "azblob", "abfs", "abfss", "wasb", "wasbs"}, scheme) ||
		strings.Contains(path, ".blob.core.windows.net"):
		return "azure"
	}
	return ""
}
