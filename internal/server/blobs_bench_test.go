package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/listener"
	"scrimp/internal/test/must"
)

// listens serves on a socket or on loopback as a server's own listeners do, and returns the address.
func (w *world) listens(t testing.TB, network string) string {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, address)
	must.Do(t, err)
	h := listener.Server(w.h, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(l) }()
	t.Cleanup(func() {
		_ = h.Close()
		<-done
	})
	if network == "unix" {
		return "unix://" + address
	}
	return "http://" + l.Addr().String()
}

// agentOf pulls the task of an attempt and returns its agent's client for the server at url.
func (w *world) agentOf(t testing.TB, url, attempt string) *wire.HTTP {
	t.Helper()
	w.take(attempt)
	a, err := wire.Dial(url, func() string { return w.gate.Tickets.For(auth.AttemptTicket, attempt) })
	must.Do(t, err)
	t.Cleanup(a.Close)
	return a
}

// BenchmarkServerStore publishes a new checkpoint through the server's store, reads it back to verify it and
// restores it elsewhere. In turn it copies the same files with cp and syncs the copy, and does the same with a store
// in a folder on the same disk. Figures are from the best round each, because other users of the host only ever
// lengthen a time. Ratios are of throughput: above 1 scrimp is faster than cp and sync. Processor seconds are per
// GiB, the lowest of all rounds: agent and server together, cp with its sync, and a plain read with SHA-256. floor
// is the ratio for a copy with cp followed by a hash.
//
//	go test -run - -bench ServerStore -benchtime 10x ./internal/server
func BenchmarkServerStore(b *testing.B) {
	for _, network := range []string{"unix", "tcp"} {
		for _, c := range []struct {
			files int
			size  int64
		}{{1, 256 << 20}, {1, 1 << 30}, {2_000, 16 << 10}} {
			b.Run(fmt.Sprintf("%s/files=%d/MiB=%d", network, c.files, int64(c.files)*c.size>>20), func(b *testing.B) {
				benchStore(b, network, c.files, c.size)
			})
		}
	}
}

func benchStore(b *testing.B, network string, files int, size int64) {
	top := b.TempDir() // on a disk, not in memory
	w := newWorldOf(b, &rents{}, func(o *Options) { o.Dir = filepath.Join(top, "data") })
	store := gocloud.NewBucket(w.agentOf(b, w.listens(b, network), w.rent("a")).Store())
	folder, err := blob.Open(b.Context(), "file://"+filepath.Join(top, "folder"))
	must.Do(b, err)
	defer func() { _ = folder.Close() }()
	dir := filepath.Join(top, "c")
	fill(b, dir, files, size)
	var publish, restore, near, nearRestore, copied, plain, hashed spans
	for n := 0; b.Loop(); n++ {
		p, r := benchRound(b, store, dir, fmt.Sprint(n), files, size)
		np, nr := benchRound(b, folder, dir, fmt.Sprint(n), files, size)
		near, nearRestore = append(near, np), append(nearRestore, nr)
		cp, alone := copyAndSync(b, dir, filepath.Join(top, "copy"))
		publish, restore = append(publish, p), append(restore, r)
		copied, plain, hashed = append(copied, cp), append(plain, alone), append(hashed, hashAll(b, dir))
		drop(b, filepath.Join(top, "data", "blobs", "jobs", "a"))
		drop(b, filepath.Join(top, "folder", "jobs"))
	}
	mb := float64(files) * float64(size) / 1e6
	cp := copied.wall()
	b.ReportMetric(mb/publish.wall(), "publish-MB/s")
	b.ReportMetric(mb/restore.wall(), "restore-MB/s")
	b.ReportMetric(mb/cp, "cp-MB/s")
	b.ReportMetric(cp/publish.wall(), "publish-ratio")
	b.ReportMetric(cp/restore.wall(), "restore-ratio")
	b.ReportMetric(cp/(cp+hashed.wall()), "floor-ratio")
	b.ReportMetric(near.wall()/publish.wall(), "publish-to-folder")
	b.ReportMetric(nearRestore.wall()/restore.wall(), "restore-to-folder")
	b.ReportMetric(plain.wall()/restore.wall(), "restore-to-cp-without-sync")
	for name, s := range map[string]spans{"publish": publish, "restore": restore, "cp": copied, "hash": hashed} {
		b.ReportMetric(s.processor()/mb*1e3*1.073741824, name+"-processor-s/GiB")
	}
	b.ReportMetric(0, "ns/op")
}

// span is a duration with the processor time used in it.
type span struct{ wall, processor time.Duration }

// begin starts a span; the returned function ends it.
func begin() func() span {
	at, used := time.Now(), processorTime(syscall.RUSAGE_SELF)
	return func() span { return span{time.Since(at), processorTime(syscall.RUSAGE_SELF) - used} }
}

// processorTime returns the processor time of this process, or of its waited-for children.
func processorTime(whose int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(whose, &u) // both values are valid
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// spans holds the spans of all rounds; the smallest counts.
type spans []span

func (s spans) wall() float64 {
	return slices.MinFunc(s, func(a, b span) int { return cmp.Compare(a.wall, b.wall) }).wall.Seconds()
}

func (s spans) processor() float64 {
	return slices.MinFunc(s, func(a, b span) int { return cmp.Compare(a.processor, b.processor) }).processor.Seconds()
}

// hashAll reads and hashes the files one after another.
func hashAll(b *testing.B, dir string) span {
	b.Helper()
	end := begin()
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(onlyWriter{sha256.New()}, f, make([]byte, 256<<10))
		return errors.Join(err, f.Close())
	})
	must.Do(b, err)
	return end()
}

type onlyWriter struct{ io.Writer }

// benchRound publishes dir under a prefix of its own, and restores it.
func benchRound(b *testing.B, bucket *gocloud.Bucket, dir, round string, files int,
	size int64) (publish, restore span) {
	b.Helper()
	s := checkpoint.Open(bucket, artifacts.OwnKeys("a")+round)
	ctx := context.Background()
	writer, err := s.Claim(ctx, 1, "a.1")
	must.Do(b, err)
	end := begin()
	_, stats, err := writer.Publish(ctx, dir, format.Meta{Job: "a", Step: 1})
	publish = end()
	if err != nil || stats.Uploaded != int64(files)*size {
		b.Fatalf("stored %d bytes, so something else was measured: %v", stats.Uploaded, err)
	}
	to := dir + "-restored"
	end = begin()
	r, err := s.Restore(ctx, 0, to)
	restore = end()
	if err != nil || r.Manifest == nil || r.Manifest.Bytes != int64(files)*size {
		b.Fatal(r, err)
	}
	drop(b, to)
	return publish, restore
}

// fill creates files of random content, last modified an hour ago.
func fill(b *testing.B, dir string, files int, size int64) {
	b.Helper()
	must.Do(b, os.MkdirAll(dir, 0o755))
	r := rand.NewChaCha8(sha256.Sum256([]byte(dir)))
	old := time.Now().Add(-time.Hour)
	data := make([]byte, min(size, 64<<20))
	for i := range files {
		at := filepath.Join(dir, fmt.Sprintf("shard%05d", i))
		f, err := os.Create(at)
		for left := size; left > 0 && err == nil; left -= int64(len(data)) {
			_, _ = r.Read(data) // Read never fails
			_, err = f.Write(data)
		}
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = os.Chtimes(at, old, old)
		}
		must.Do(b, err)
	}
	if out, err := exec.Command("sync").CombinedOutput(); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
}

// copyAndSync measures cp with a sync of the copy, and cp alone.
func copyAndSync(b *testing.B, from, to string) (all, alone span) {
	b.Helper()
	at, used := time.Now(), processorTime(syscall.RUSAGE_CHILDREN)
	end := func() span { return span{time.Since(at), processorTime(syscall.RUSAGE_CHILDREN) - used} }
	out, err := exec.Command("cp", "-r", from, to).CombinedOutput()
	alone = end()
	if err == nil {
		out, err = exec.Command("sh", "-c", `find "$0" -print0 | xargs -0 sync`, to).CombinedOutput()
	}
	all = end()
	if err != nil {
		b.Fatalf("%s: %v", out, err)
	}
	drop(b, to)
	return all, alone
}

func drop(b *testing.B, dir string) {
	b.Helper()
	must.Do(b, os.RemoveAll(dir))
}
