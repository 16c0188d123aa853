package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"scrimp/internal/store/backup"
)

// holes returns the header of a GNU sparse file of the given size that consists of holes only.
func holes(name string, size int64) []byte {
	h := make([]byte, 512)
	for at, text := range map[int]string{0: name, 100: "0000600", 124: "00000000000", 136: "00000000000", 148: "        ", 156: "S",
		257: "ustar  ", 386: fmt.Sprintf("%011o", size), 398: "00000000000", 483: fmt.Sprintf("%011o", size)} {
		copy(h[at:], text)
	}
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// A sparse member reads as endless zeros, and a JSON member is held in memory: the reader stops at the limits of a
// real backup.
func TestCheck_RefusesASparseMember(t *testing.T) {
	var large bytes.Buffer
	if err := tar.NewWriter(&large).WriteHeader(&tar.Header{Name: "head.json", Mode: 0o600, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	sparse := holes("head.json", 1<<32)
	if m, err := tar.NewReader(bytes.NewReader(sparse)).Next(); err != nil || m.Size != 1<<32 {
		t.Fatalf("%+v, %v", m, err)
	}
	for what, head := range map[string][]byte{"large": large.Bytes(), "sparse": sparse} {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		_, _ = z.Write(head)
		_, _ = z.Write(make([]byte, 64<<20))
		_ = z.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := backup.Check(&packed)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, backup.ErrDamaged) || made > 16<<20 {
			t.Errorf("%s: %v, and %d bytes are made of it", what, err, made)
		}
	}
}
