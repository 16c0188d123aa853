package lines

import (
	"encoding/csv"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReader_EndsAtALineWithoutEnd(t *testing.T) {
	if _, err := csv.NewReader(Reader(endless{})).Read(); err == nil || !strings.Contains(err.Error(), "not a table") {
		t.Errorf("%v", err)
	}
}

func TestReader_ReturnsTheInputUnchanged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		longest, text := 0, ""
		for range rng.IntN(6) {
			n := rng.IntN(Most / 2)
			if rng.IntN(4) == 0 {
				n = Most + rng.IntN(3) - 1
			}
			longest, text = max(longest, n), text+strings.Repeat("a", n)+"\n"
		}
		in := io.Reader(strings.NewReader(text))
		if rng.IntN(2) == 0 {
			in = iotest.HalfReader(in)
		}
		got, err := io.ReadAll(Reader(in))
		if (err != nil) != (longest > Most) || err == nil && string(got) != text {
			t.Fatalf("lines of at most %d bytes: %d of %d bytes, %v", longest, len(got), len(text), err)
		}
	}
}
