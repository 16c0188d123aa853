package datastream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// Shards of the benchmarks.
const shards, shardSize = 12, 32 << 20

// BenchmarkView_Rate reads shards straight from a store and through a view with an empty cache, one after the other, and
// reports the view's rate as a share of the store's own, and the processor time for a byte, which other programs on the
// machine hardly change. The store is a file server on the same machine, which shares
// its processors: without a limit, it sends from memory.
func BenchmarkView_Rate(b *testing.B) {
	dir := fast.Dir(b)
	for i := range shards {
		must.Do(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.tar", i)), pattern(i, shardSize), 0o600))
	}
	for _, c := range []struct {
		name                string
		machine, connection int // bytes a second; 0: no limit
	}{
		{"without a limit", 0, 0},
		{"1000 MB per second", 1e9, 0},
		{"500 MB per second", 500e6, 0},
		{"100 MB per second and connection", 1e9, 100e6},
	} {
		b.Run(c.name, func(b *testing.B) {
			address := shop(b, dir, c.machine, c.connection)
			rate(b, func() datacache.Source {
				src, err := datacache.OpenFolder(dir)
				must.Do(b, err)
				return &web{src, address}
			})
		})
	}
}

// rate measures the rate of a source of shards with and without a view.
func rate(b *testing.B, open func() datacache.Source) {
	drain := func(r io.ReadCloser) {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 1<<20))
		must.Do(b, err)
		must.Do(b, r.Close())
		if n != shardSize {
			b.Fatalf("%d bytes", n)
		}
	}
	var own, view, ownCPU, viewCPU time.Duration
	for b.Loop() {
		src := open()
		files, err := datacache.Files(b.Context(), src)
		must.Do(b, err)
		begin, cpu := time.Now(), processor(b)
		for _, f := range files {
			r, err := src.Open(b.Context(), f, 0)
			must.Do(b, err)
			drain(r)
		}
		end := time.Now()
		own, ownCPU = own+end.Sub(begin), ownCPU+processor(b)-cpu
		must.Do(b, src.Close())

		dir := fast.Dir(b)
		cache, err := datacache.Open(dir, "boot", ample, time.Now)
		must.Do(b, err)
		begin, cpu = time.Now(), processor(b)
		v, err := Serve(b.Context(), cache, open(), nil, slog.New(slog.DiscardHandler))
		must.Do(b, err)
		for _, f := range files {
			a, err := http.Get(v.URL + f.Name)
			must.Do(b, err)
			drain(a.Body)
		}
		end = time.Now()
		view, viewCPU = view+end.Sub(begin), viewCPU+processor(b)-cpu
		_, err = v.Close()
		must.Do(b, err)
		must.Do(b, cache.Close())
		must.Do(b, os.RemoveAll(dir)) // it is memory
	}
	mb := func(d time.Duration) float64 { return float64(b.N) * shards * shardSize / 1e6 / d.Seconds() }
	b.ReportMetric(mb(own), "store_MB/s")
	b.ReportMetric(mb(view), "view_MB/s")
	b.ReportMetric(mb(view)/mb(own), "ratio")
	bytes := float64(b.N) * shards * shardSize
	b.ReportMetric(float64(ownCPU)/bytes, "store_cpu_ns/B")
	b.ReportMetric(float64(viewCPU)/bytes, "view_cpu_ns/B")
}

// processor returns the processor time of this process, which is the store, the view and the program that reads.
func processor(b *testing.B) time.Duration {
	var r syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// web is a folder that a file server serves.
type web struct {
	datacache.Source
	address string
}

func (w *web) Open(ctx context.Context, f datacache.File, offset int64) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.address+f.Name, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusPartialContent {
		return nil, errors.Join(errors.New(a.Status), a.Body.Close())
	}
	return a.Body, nil
}

// shop serves a folder at a rate.
func shop(b *testing.B, dir string, machine, connection int) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(b, err)
	all := &limit{rate: machine}
	files := http.FileServer(http.Dir(dir))
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if machine > 0 {
			w = &limited{w, []*limit{all, {rate: connection}}}
		}
		files.ServeHTTP(w, r)
	})}
	go func() { _ = s.Serve(l) }() // until it is closed
	b.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String() + "/"
}

// limit is a rate in bytes a second; 0: none.
type limit struct {
	mu   sync.Mutex
	rate int
	free time.Time // until then, bytes that were sent take up the line
}

func (l *limit) wait(bytes int64) {
	if l.rate == 0 {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(bytes) / float64(l.rate) * 1e9))
	left := l.free.Sub(now)
	l.mu.Unlock()
	_ = wait.For(context.Background(), left) // it never ends
}

type limited struct {
	http.ResponseWriter
	limits []*limit
}

func (l *limited) ReadFrom(r io.Reader) (sent int64, err error) {
	const step = 1 << 20
	part := r.(*io.LimitedReader)
	for part.N > 0 {
		n := min(step, part.N)
		for _, l := range l.limits {
			l.wait(n)
		}
		got, err := io.Copy(l.ResponseWriter, &io.LimitedReader{R: part.R, N: n})
		sent, part.N = sent+got, part.N-got
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}
