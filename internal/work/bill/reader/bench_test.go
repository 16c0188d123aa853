package reader_test

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
)

// BenchmarkRead reads rows of FOCUS 1.3, each with a different cost and machine.
func BenchmarkRead(b *testing.B) {
	text := strings.SplitN(plain(b, "testdata/focus-1.3.csv"), "\n", 3)
	n := 0
	in := &endless{text: text[0] + "\n", most: 1 << 62, row: func(i int) string {
		return strings.NewReplacer("vm-0001", fmt.Sprint("vm-", i), "12.345678901234", fmt.Sprintf("%d.%012d", i%90, i*7919)).
			Replace(text[1]) + "\n"
	}}
	r, err := reader.New("x", in, bill.Default())
	must.Do(b, err)
	s := bill.Summary{}
	for b.Loop() {
		row, err := r.Next()
		must.Do(b, err)
		s.Add(row)
		n += len(row.Lines)
	}
	if n != b.N || s.Problems > 0 {
		b.Fatalf("%d lines of %d", n, b.N)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
