package checkpoint_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/test/must"
)

const benchSize = 256 << 20

// random fills a folder with files of n bytes in all.
func random(tb testing.TB, dir string, files int, n int64) {
	tb.Helper()
	r := rand.NewChaCha8([32]byte{1})
	for i := range files {
		data := make([]byte, n/int64(files))
		_, _ = r.Read(data)
		must.Do(tb, os.WriteFile(filepath.Join(dir, fmt.Sprintf("shard%d", i)), data, 0o600))
	}
	old := time.Now().Add(-time.Hour)
	for i := range files {
		must.Do(tb, os.Chtimes(filepath.Join(dir, fmt.Sprintf("shard%d", i)), old, old))
	}
}

// BenchmarkPublish publishes 256 MiB of new data to a folder store, and in turn copies it with cp and syncs the copy,
// on the same disk. The ratio is the throughput of publish over that of cp and sync: above 1 publish is faster.
//
//	go test -run - -bench Publish -benchtime 5x ./internal/content/checkpoint
func BenchmarkPublish(b *testing.B) {
	for _, files := range []int{1, 8} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			top := b.TempDir() // on a disk, not in memory
			dir := filepath.Join(top, "c")
			must.Do(b, os.Mkdir(dir, 0o755))
			random(b, dir, files, benchSize)
			store := openFolder(b, filepath.Join(top, "store"))
			var ours, theirs, verifying time.Duration
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				theirs += copyAndSync(b, dir, filepath.Join(top, "copy"))
				s := checkpoint.Open(store, fmt.Sprint(i))
				w := claim(b, s, 1)
				b.StartTimer()
				begin := time.Now()
				m, stats := publish(b, w, dir, 1)
				ours += time.Since(begin)
				b.StopTimer()
				if stats.Uploaded != benchSize {
					b.Fatalf("stored %d bytes, so something else was measured", stats.Uploaded)
				}
				begin = time.Now()
				must.Do(b, w.Verify(b.Context(), m))
				verifying += time.Since(begin)
				dropAll(b, filepath.Join(top, "store", fmt.Sprint(i)))
				b.StartTimer()
			}
			b.ReportMetric(mbps(b, ours), "MB/s")
			b.ReportMetric(mbps(b, theirs), "cp-MB/s")
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(mbps(b, verifying), "verify-MB/s")
		})
	}
}

// BenchmarkRestore restores files, verifying every byte, and in turn copies them with cp, both from the page cache.
// The ratio is the throughput of the restore over that of cp: above 1 the restore is faster. Neither waits for the
// disk.
func BenchmarkRestore(b *testing.B) {
	for _, c := range []struct {
		files int
		size  int64 // of all files
	}{{1, benchSize}, {16, 1 << 30}, {2000, 2000 * 16 << 10}} {
		b.Run(fmt.Sprintf("files=%d", c.files), func(b *testing.B) {
			top := b.TempDir()
			dir := filepath.Join(top, "c")
			must.Do(b, os.Mkdir(dir, 0o755))
			random(b, dir, c.files, c.size)
			s := checkpoint.Open(openFolder(b, filepath.Join(top, "store")), "")
			publish(b, claim(b, s, 1), dir, 1)
			var ours, theirs []float64 // seconds
			for b.Loop() {
				b.StopTimer()
				theirs = append(theirs, run(b, "cp", "-r", dir, filepath.Join(top, "copy")).Seconds())
				dropAll(b, filepath.Join(top, "copy"))
				b.StartTimer()
				begin := time.Now()
				r, err := s.Restore(b.Context(), 0, filepath.Join(top, "restored"))
				if err != nil || r.Manifest == nil || r.Manifest.Bytes != c.size {
					b.Fatal(r, err)
				}
				ours = append(ours, time.Since(begin).Seconds())
				b.StopTimer()
				dropAll(b, filepath.Join(top, "restored"))
				b.StartTimer()
			}
			b.ReportMetric(float64(c.size)/1e6/middle(ours), "MB/s")
			b.ReportMetric(float64(c.size)/1e6/middle(theirs), "cp-MB/s")
			b.ReportMetric(middle(theirs)/middle(ours), "ratio")
		})
	}
}

// middle returns the median, which a single pause of a shared machine does not move.
func middle(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// BenchmarkPublishUnchanged publishes 256 MiB in which one part differs.
func BenchmarkPublishUnchanged(b *testing.B) {
	top := b.TempDir()
	dir := filepath.Join(top, "c")
	must.Do(b, os.Mkdir(dir, 0o755))
	random(b, dir, 1, benchSize)
	store := openFolder(b, filepath.Join(top, "store"))
	w := claim(b, checkpoint.Open(store, ""), 1)
	publish(b, w, dir, 1)
	f, err := os.OpenFile(filepath.Join(dir, "shard0"), os.O_RDWR, 0)
	must.Do(b, err)
	defer f.Close()
	for i := 0; b.Loop(); i++ {
		if _, err := f.WriteAt(fmt.Append(nil, "change ", i), 100<<20); err != nil {
			b.Fatal(err)
		}
		settle(b, filepath.Join(dir, "shard0"))
		if _, stats := publish(b, w, dir, 1); stats.Stored != 1 {
			b.Fatalf("stored %d parts", stats.Stored)
		}
	}
	b.ReportMetric(float64(b.N)*benchSize/1e6/b.Elapsed().Seconds(), "MB/s")
}

func mbps(b *testing.B, d time.Duration) float64 { return float64(b.N) * benchSize / 1e6 / d.Seconds() }

func copyAndSync(b *testing.B, from, to string) time.Duration {
	took := run(b, "sh", "-c", `cp -r "$0" "$1" && sync "$1"/* "$1"`, from, to)
	dropAll(b, to)
	return took
}

func run(b *testing.B, name string, args ...string) time.Duration {
	b.Helper()
	begin := time.Now()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
	return time.Since(begin)
}

func dropAll(b *testing.B, dir string) {
	b.Helper()
	must.Do(b, os.RemoveAll(dir))
}
