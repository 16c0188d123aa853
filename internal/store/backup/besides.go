package backup

import (
	"archive/tar"
	"io"
	"strings"
)

// besides reads a member that comes after the log and the facts: output, measurements, bills, or the sum at the end.
func (b *reader) besides(m *tar.Header) error {
	if attempt, ok := strings.CutPrefix(m.Name, "output/"); ok {
		return b.output(attempt, m.Size)
	}
	if series, ok := strings.CutPrefix(m.Name, "series/"); ok {
		return b.series(series)
	}
	if bill, ok := strings.CutPrefix(m.Name, "bills/"); ok {
		return b.bill(m, bill)
	}
	if m.Name == "sum.json" {
		return b.readSum()
	}
	return damaged(m.Name+" has no place there", nil)
}

func (b *reader) output(attempt string, size int64) error {
	b.d.output(attempt, size)
	for at := int64(0); ; {
		chunk := make([]byte, min(1<<20, size-at))
		if len(chunk) == 0 {
			return b.t.output(attempt, at, nil) // empty output counts, too
		}
		if _, err := io.ReadFull(b.members, chunk); err != nil {
			return damaged("the output of "+attempt+" is cut short", err)
		}
		b.d.h.Write(chunk)
		if err := b.t.output(attempt, at, chunk); err != nil {
			return err
		}
		at += int64(len(chunk))
	}
}

func (b *reader) series(attempt string) error {
	all, err := io.ReadAll(b.members)
	if err != nil {
		return damaged("the measurements of "+attempt+" cannot be read", err)
	}
	b.d.series(attempt, all)
	return b.t.series(attempt, all)
}
