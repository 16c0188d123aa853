package catalog_test

import (
	"testing"

	"scrimp/internal/market/catalog"
)

// Every store that scrimp supports has the storage and transfer prices of its provider.
func TestStore_HasPricesOfProvider(t *testing.T) {
	for path, provider := range map[string]string{
		"s3://b?region=r": "aws", "gs://b?prefix=p": "gcp", "azblob://c?account=a": "azure", "file:///srv": "", "/srv": "",
	} {
		if got := catalog.Store(path); got != provider {
			t.Errorf("%s is in %q, not %q", path, got, provider)
		}
	}
	for provider, price := range map[string]string{"aws": "0.023", "gcp": "0.020", "azure": "0.0184"} {
		if x, ok := catalog.Builtin().TransferRate(provider, catalog.StorageMonth); !ok || x.Price != rate(price) {
			t.Errorf("%s takes %v a gigabyte and month, not %s", provider, x.Price, price)
		}
	}
}
