//go:build local

package bill

import (
	"strings"
	"testing"
)

func TestShow_NamesBuildThatReadsParquet(t *testing.T) {
	if _, text, err := shows(t, "x.parquet", []byte("PAR1abcd")); err == nil || text != "" ||
		!strings.Contains(err.Error(), "x.parquet: it is Parquet") || !strings.Contains(err.Error(), "scrimp-full") {
		t.Errorf("%v: %s", err, text)
	}
}
