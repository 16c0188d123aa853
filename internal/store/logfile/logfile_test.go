package logfile

import (
	"os"
	"path/filepath"
	"testing"
)

// A reader that follows output and is up to date polls again and again, so a poll must allocate no memory.
func TestReadLog_AllocatesNothingAtTheEnd(t *testing.T) {
	t.Parallel()
	s := Files{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendLog(t.Context(), "a.1", 0, []byte("some text")); err != nil {
		t.Fatal(err)
	}
	for offset, want := range map[int64]string{0: "some text", 5: "text", 9: "", 20: ""} {
		b, err := s.ReadLog(t.Context(), "a.1", offset, 1<<20)
		if err != nil || string(b) != want || cap(b) > 64 {
			t.Errorf("from %d: %q with room for %d bytes, %v", offset, b, cap(b), err)
		}
	}
}
