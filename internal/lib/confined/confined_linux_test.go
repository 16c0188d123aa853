package confined_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"scrimp/internal/test/must"
)

// The reader reads nothing outside while a program replaces files and folders by links. A reader that uses paths would
// follow some: the program is fast enough.
func TestOpen_NeverReadsOutside(t *testing.T) {
	t.Parallel()
	f, outside := folders(t)
	links := []string{f.Path + "-link", filepath.Join(f.Within, "sub-link")}
	must.Do(t, errors.Join(os.Symlink(outside, links[0]), os.Symlink(filepath.Join(outside, "sub"), links[1])))
	own, err := os.Open(f.Path) // otherwise files outside would be moved in
	must.Do(t, err)
	defer own.Close()
	dir := int(own.Fd())
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, f.Path, unix.AT_FDCWD, links[0], unix.RENAME_EXCHANGE)
			_ = unix.Renameat2(dir, "sub", unix.AT_FDCWD, links[1], unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { over.Store(true); <-done }()
	led, mine := 0, 0
	for led < 50 || mine < 50 {
		for _, s := range seen(f) {
			if strings.HasSuffix(s, "secret") {
				t.Fatalf("read is %s", s)
			}
			mine++
		}
		if b, _ := os.ReadFile(filepath.Join(f.Path, "sub", "file")); string(b) == "secret" {
			led++
		}
	}
}
