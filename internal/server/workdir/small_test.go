package workdir

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/server/workdir/seen"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// smallFiles makes a folder of small files with different contents.
func smallFiles(b testing.TB, n, bytes int) string {
	dir := filepath.Join(fast.Dir(b), "from")
	text := make([]byte, bytes)
	for i := range n {
		at := filepath.Join(dir, fmt.Sprintf("%03d", i/1000))
		if i%1000 == 0 {
			must.Do(b, os.MkdirAll(at, 0o700))
		}
		copy(text, fmt.Sprintf("%09d", i))
		must.Do(b, os.WriteFile(filepath.Join(at, fmt.Sprintf("%06d", i)), text, 0o600))
	}
	return dir
}

// plainHash opens, stats and hashes every file of a folder, one after the other.
func plainHash(b testing.TB, dir string) {
	must.Do(b, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if _, err = f.Stat(); err == nil {
			_, err = io.Copy(sha256.New(), f)
		}
		_ = f.Close()
		return err
	}))
}

// processor returns the processor time of this process, which hardly depends on what else the machine does.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestStore_CopyReadsUnchangedFilesOnce plants another content for a file: a copy that does not read the file takes it.
func TestStore_CopyReadsUnchangedFilesOnce(t *testing.T) {
	from, s := smallFiles(t, 3, 100), openStore(t)
	must.Do(t, s.Copy("first", from, ""))
	all, err := s.Items("first")
	must.Do(t, err)
	at := filepath.Join(from, "000", "000001")
	info, err := os.Lstat(at)
	must.Do(t, err)
	known := seen.Load(filepath.Join(s.Dir, "seen", sumOf([]byte(from))), func() time.Time { return time.Now().Add(time.Hour) })
	other := all[len(all)-1].Sum
	known.Add(info, info, other)
	known.Save()
	sum := func(job string) string {
		items, err := s.Items(job)
		must.Do(t, err)
		return items[len(items)-2].Sum
	}
	must.Do(t, s.Copy("again", from, ""))
	if sum("again") != other {
		t.Error("an unchanged file was read again")
	}
	must.Do(t, os.Chtimes(at, time.Now(), time.Now()))
	must.Do(t, s.Copy("changed", from, ""))
	if sum("changed") != sum("first") {
		t.Error("a changed file was not read again")
	}
}

// BenchmarkStore_Copy copies 100,000 files of 4 KiB to an empty store, and to one that has them. plain is the time that
// hashing them takes without a store; ratio compares with it.
func BenchmarkStore_Copy(b *testing.B) {
	from := smallFiles(b, 100_000, 4096)
	plainHash(b, from)
	begin := time.Now()
	plainHash(b, from)
	plain := time.Since(begin)
	for _, again := range []bool{false, true} {
		b.Run(map[bool]string{false: "new", true: "unchanged"}[again], func(b *testing.B) {
			s := openStore(b)
			if again {
				must.Do(b, s.Copy("first", from, ""))
			}
			used := processor(b)
			for n := 0; b.Loop(); n++ {
				if !again {
					s = openStore(b)
				}
				must.Do(b, s.Copy(fmt.Sprint(n), from, ""))
			}
			b.ReportMetric((processor(b)-used).Seconds()/float64(b.N), "processor-s")
			b.ReportMetric(plain.Seconds(), "plain-s")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/plain.Seconds(), "times-plain")
		})
	}
}
