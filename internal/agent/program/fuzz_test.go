package program

import (
	"os"
	"testing"
)

// A process may choose any name: parseStat still reads the rest of the line correctly or rejects it.
func FuzzStat(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/stat")
	f.Add(own)
	f.Add([]byte("7 (a) S 1 (b) Z 2 2 2) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 5 6"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, line []byte) {
		if p, ok := parseStat(line); ok && p.zombie && len(line) < 22 {
			t.Errorf("%q is %+v", line, p)
		}
	})
}
