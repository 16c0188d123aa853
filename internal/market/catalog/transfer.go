package catalog

import (
	"cmp"
	_ "embed" // the prices are part of the program
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market/table"
)

//go:embed transfer.csv
var transferRows string

// Charges besides machines, per gigabyte of 1e9 bytes. In an overlay they replace the machine, without region and
// capacity.
const (
	StorageMonth   = "storage-gb-month"   // stored in the provider's object store for a month of 730 hours
	TransferRegion = "transfer-gb-region" // to another region of the provider, on the same continent
	TransferOut    = "transfer-gb-out"    // to anywhere else
)

var notMachines = []string{StorageMonth, TransferRegion, TransferOut}

// TransferRate is a provider's charge for storing or transferring a gigabyte.
type TransferRate struct {
	Provider string
	What     string
	Price    money.Rate // per gigabyte, not per hour
	Currency money.Currency
	Source   string
	At       time.Time
}

// TransferRate returns a provider's charge: the user's own price, or else the built-in one. It returns false if none is
// known: unknown is not zero.
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

// readRates reads the embedded table; a test verifies that it is valid.
func readRates(text string) []TransferRate {
	rows, err := table.Read(text)
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

// transferRate parses a row, or returns why it is skipped. A price may be zero, because some stores are free.
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

// Continent returns the continent in a region's name, or "" if it has none. Charges between two regions are known only
// within a continent.
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

// Store returns the provider whose object store holds a path, or "" if the path does not tell.
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
