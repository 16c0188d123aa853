package show_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
)

func TestBill_FitsATerminal(t *testing.T) {
	for _, name := range []string{"aws-cur-2.csv", "faults.csv", "azure-mca-german.csv"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "work", "bill", "reader", "testdata", name))
		must.Do(t, err)
		r, err := reader.New(name, bytes.NewReader(b), bill.Default())
		must.Do(t, err)
		s := bill.Summary{File: name + "\x1b[2J", Kind: r.Kind(), Lacks: r.Lacks()}
		var first []bill.Problem
		for {
			row, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if s.Add(row); row.Problem != nil {
				first = append(first, *row.Problem)
			}
		}
		s.Finish()
		text := bills.Bill(&s, first, show.Place{Width: 80, Now: now})
		golden.Check(t, "bill-"+strings.TrimSuffix(name, ".csv")+".80.txt", text)
		for l := range strings.Lines(text) {
			if len([]rune(strings.TrimSuffix(l, "\n"))) > 80 || strings.Contains(l, "\x1b") {
				t.Errorf("%s: %q", name, l)
			}
		}
	}
}
