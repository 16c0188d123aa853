//go:build !local

package export

import (
	"bytes"
	"encoding/csv"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"scrimp/internal/decide/focus"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// A Parquet file has every row with every value, exactly.
func TestExport_ParquetHasEveryRow(t *testing.T) {
	lane.Component(t, "whole")
	text := rows(300)
	want, _ := csv.NewReader(strings.NewReader(text)).ReadAll()
	path := filepath.Join(t.TempDir(), "a.parquet")
	if out, err := runs(t, whole(text), "-o", path); err != nil || !strings.HasPrefix(out, "Wrote "+path) {
		t.Fatal(out, err)
	}
	b, err := os.ReadFile(path)
	must.Do(t, err)
	checkParquet(t, b, want)
}

func TestExport_LeavesNoHalfParquetFile(t *testing.T) {
	lane.Component(t, "whole")
	leavesNoHalfFile(t, "a.parquet")
}

func checkParquet(t *testing.T, b []byte, want [][]string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	must.Do(t, err)
	if f.NumRows() != int64(len(want)-1) {
		t.Fatalf("there are %d rows, want %d", f.NumRows(), len(want)-1)
	}
	place := map[string]int{}
	for i, path := range f.Schema().Columns() {
		place[path[0]] = i
	}
	read := parquet.NewReader(f)
	kinds := map[string]focus.Kind{}
	for _, c := range focus.Columns(focus.V14) {
		kinds[c.Name] = c.Kind
	}
	room := make([]parquet.Row, 1)
	for n, record := range want[1:] {
		if _, err := read.ReadRows(room); err != nil && n < len(want)-2 {
			t.Fatal(err)
		}
		for i, name := range want[0] {
			v := room[0][place[name]]
			got := ""
			switch {
			case v.IsNull():
			case kinds[name] == focus.Decimal:
				n := new(big.Int).SetBytes(v.ByteArray())
				if n.Bit(127) == 1 {
					n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
				}
				got = new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)).FloatString(18)
				got = focus.Number(strings.TrimSuffix(strings.TrimRight(got, "0"), "."))
			case kinds[name] == focus.Time:
				got = time.UnixMicro(v.Int64()).UTC().Format(time.RFC3339)
			default:
				got = string(v.ByteArray())
			}
			if got != record[i] {
				t.Fatalf("row %d: %s is %q, want %q", n, name, got, record[i])
			}
		}
	}
}
