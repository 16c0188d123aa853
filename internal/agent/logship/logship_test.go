package logship

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"
)

func TestMask_DoesNotDependOnChunks(t *testing.T) {
	secrets := map[string]string{"A": "hunter2!", "B": "hunt", "C": "rrrr", "PEM": "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----\n"}
	m := NewMasker(secrets)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"hunter2!", "hunter", "hunt", "er2!", "rrr", "r", "abcdefghijklmnop", "plain text\n", "*"})).Draw(rt, "parts")
		text := []byte(strings.Join(parts, ""))
		want := m.Mask(text)
		path := filepath.Join(dir, "log")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		// The shipper's own chunk at each offset as the file grows: what it would send.
		s := &Shipper{path: path, mask: m}
		offset := int64(rapid.IntRange(0, len(text)).Draw(rt, "offset"))
		got, _, err := s.chunk(f, offset, -1, true)
		if err != nil || !bytes.Equal(got, want[offset:]) {
			rt.Fatalf("from %d: %q, want %q (%v)", offset, got, want[offset:], err)
		}
		// A prefix of the output that is not final: no byte is sent that the rest would mask.
		cut := rapid.IntRange(0, len(text)).Draw(rt, "cut")
		if err := os.Truncate(path, int64(cut)); err != nil {
			rt.Fatal(err)
		}
		got, _, err = s.chunk(f, 0, -1, false)
		if err != nil || !bytes.HasPrefix(want, got) {
			rt.Fatalf("of the first %d: %q goes out, want a part of %q (%v)", cut, got, want, err)
		}
	})
}

func TestMask_HidesFormsOfSecret(t *testing.T) {
	m := NewMasker(map[string]string{"K": "a b\"c/d", "short": "ab", "nl": "token-value\n"})
	got := string(m.Mask([]byte(`a b"c/d|a b\"c/d|a+b%22c%2Fd|ab|token-value|`)))
	if want := `*******|********|***********|ab|***********|`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
