package progress

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTail_ReadsEveryLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	tl := &Tail{Path: path, Bars: true}
	var got []string
	take := func(last bool) {
		t.Helper()
		if err := tl.Read(last, func(b []byte) { got = append(got, string(b)) }); err != nil {
			t.Fatal(err)
		}
	}
	take(false)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntw")
	take(false)
	write("o\rthree\r\n")
	take(false)
	write(strings.Repeat("long", maxLine) + "\nfour\nrest")
	take(false)
	take(true)
	if want := []string{"one", "two", "three", "four", "rest"}; !slices.Equal(got, want) {
		t.Errorf("lines %.40q, want %q", got, want)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	write("again\n")
	take(false)
	if got[len(got)-1] != "again" {
		t.Errorf("after a truncation: %q", got[5:])
	}
	_ = f.Close()
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte(`{"step":12,"loss":NaN,"metrics":{"acc":-Infinity,"x":"1e3"}}`))
	f.Add([]byte(`{"NaN":"\"NaN","a\\":Infinity}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _, err := Parse(b)
		if err != nil {
			return
		}
		for name := range s.Metrics {
			if v := s.Metrics[name]; v-v != 0 {
				t.Errorf("metric %q is %v and not marked as broken", name, v)
			}
		}
		if s.Step < 0 || s.Total < 0 {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzTailAgainstSplit(f *testing.F) {
	f.Add("a\nb\r\n\nc", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 1000 {
			t.Skip()
		}
		chance := rand.New(rand.NewPCG(seed, 0))
		tl := &Tail{Bars: true}
		var got []string
		for rest := []byte(text); len(rest) > 0; {
			n := 1 + chance.IntN(len(rest))
			tl.split(slices.Clone(rest[:n]), func(b []byte) { got = append(got, string(b)) })
			rest = rest[n:]
		}
		got = append(got, string(tl.rest))
		want := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
		got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
