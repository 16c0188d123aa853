package flow

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"scrimp/internal/server/disk"
	"scrimp/internal/test/must"
)

func ample() (disk.Left, bool) { return disk.Free(1 << 40), true }

// Place makes missing folders, and replaces what a crash has left incomplete.
func TestPlace_ReplacesAnIncompleteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ab", "abcd")
	for _, left := range []string{"", "wh"} {
		if left != "" {
			must.Do(t, os.WriteFile(path, []byte(left), 0o600))
		}
		at, err := Place(path, []byte("whole"), ample)
		must.Do(t, err)
		text, err := os.ReadFile(path)
		must.Do(t, err)
		info, err := os.Stat(path)
		must.Do(t, err)
		if string(text) != "whole" || !info.ModTime().Equal(at) {
			t.Errorf("after %q it is %q of %v, want the time %v", left, text, info.ModTime(), at)
		}
		entries, _ := os.ReadDir(filepath.Dir(path))
		if len(entries) != 1 {
			t.Errorf("it leaves %v", entries)
		}
	}
	none := func() (disk.Left, bool) { return disk.Free(0), true }
	if _, err := Place(path+"x", nil, none); !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
}

type closer struct{ n *atomic.Int64 }

func (c closer) Close() error { c.n.Add(1); return nil }

// A group closes everything that it got, also after an error, and runs at most atOnce functions at once.
func TestGroup_ClosesAllAfterAnError(t *testing.T) {
	var g Group
	var closed, running, most atomic.Int64
	wrong := errors.New("wrong")
	const n = 200
	for i := range n {
		_ = g.Go(closer{&closed}, func() error {
			now := running.Add(1)
			defer running.Add(-1)
			old := most.Load()
			for now > old && !most.CompareAndSwap(old, now) {
				old = most.Load()
			}
			if i == 20 {
				return wrong
			}
			return nil
		})
	}
	if err := g.Wait(); !errors.Is(err, wrong) || closed.Load() != n || most.Load() > atOnce {
		t.Errorf("%v, closed %d of %d, %d at once", err, closed.Load(), n, most.Load())
	}
	if err := g.Go(closer{&closed}, func() error { return nil }); !errors.Is(err, wrong) || closed.Load() != n+1 {
		t.Errorf("after the error it returns %v, and has closed %d", err, closed.Load())
	}
}

func TestReadAll_EndsWithTheReader(t *testing.T) {
	for size, want := range map[int64]string{0: "", 3: "som", 100: "some text"} {
		if got, err := ReadAll(strings.NewReader("some text"), size); err != nil || string(got) != want {
			t.Errorf("%d bytes: %q, %v", size, got, err)
		}
	}
	if _, err := io.ReadAll(&AtMost{From: strings.NewReader("some text"), Left: 3, What: "it"}); err == nil {
		t.Error("more than the limit is read")
	}
}
