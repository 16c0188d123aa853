package backup_test

import (
	"bytes"
	"compress/gzip"
	"testing"

	"scrimp/internal/store/backup"
	"scrimp/internal/store/sqlite"
)

// Check reads any bytes or calls them damaged, and never takes a changed backup for the original.
func FuzzCheck(f *testing.F) {
	s, err := sqlite.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	var whole, plain bytes.Buffer
	want, err := backup.Write(f.Context(), s, &whole)
	if err != nil {
		f.Fatal(err)
	}
	_ = s.Close()
	z, err := gzip.NewReader(bytes.NewReader(whole.Bytes()))
	if err == nil {
		_, err = plain.ReadFrom(z)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	f.Add(plain.Bytes()[:plain.Len()/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(text)
		_ = w.Close()
		if got, err := backup.Check(&packed); err == nil && got.End > want.End && len(text) < 512 {
			t.Errorf("%q is a backup of %d events", text, got.End)
		}
	})
}
