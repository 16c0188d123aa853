package record

import (
	"errors"
	"io"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

// A row whose text goes on over many lines is given up: the lines that were read for it are rows again, and no more of
// them are held than a row may have.
func TestCells_HoldFewLinesForAnOpenQuote(t *testing.T) {
	const rows, width = 3000, 1000
	limits := bill.Default()
	text := "a,b\n\"" + strings.Repeat(strings.Repeat("x", width-3)+",y\n", rows)
	source, header, err := Open(strings.NewReader(text), limits)
	if err != nil || len(header) != 2 {
		t.Fatal(header, err)
	}
	c := source.(*Cells)
	faults, read := 0, 0
	for {
		r, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		if read++; r.Fault != "" {
			faults++
		}
		held := 0
		for _, l := range append(c.back[:len(c.back):len(c.back)], c.spanned...) {
			held += len(l.text)
		}
		if held > 2*limits.Record+2*width {
			t.Fatalf("row %d: %d bytes are held", read, held)
		}
	}
	if faults != 1 || read != rows {
		t.Errorf("%d faults in %d rows", faults, read)
	}
}
