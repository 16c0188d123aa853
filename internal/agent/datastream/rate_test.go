//go:build !local

package datastream

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/content/blob"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// BenchmarkView_Rate reads shards of a bucket straight from its store and through a view with an empty cache, one after
// the other, and reports the view's rate as a share of the store's own.
func BenchmarkView_Rate(b *testing.B) {
	address, _ := blobtest.S3(b)
	host, query, _ := strings.Cut(address, "?")
	const shards, size = 12, 32 << 20
	store, err := blob.Open(b.Context(), address)
	must.Do(b, err)
	for i := range shards {
		must.Do(b, store.WriteAll(b.Context(), fmt.Sprintf("corpus/%02d.tar", i), pattern(i, size), nil))
	}
	must.Do(b, store.Close())
	open := func() datacache.Source {
		src, err := datacache.OpenSource(b.Context(), host+"/corpus?"+query, "")
		must.Do(b, err)
		return src
	}
	drain := func(r io.ReadCloser) {
		n, err := io.Copy(struct{ io.Writer }{io.Discard}, r)
		must.Do(b, err)
		must.Do(b, r.Close())
		if n != size {
			b.Fatalf("%d bytes", n)
		}
	}
	var own, view time.Duration
	for i := 0; b.Loop(); i++ {
		src := open()
		files, err := datacache.Files(b.Context(), src)
		must.Do(b, err)
		begin := time.Now()
		for _, f := range files {
			r, err := src.Open(b.Context(), f, 0)
			must.Do(b, err)
			drain(r)
		}
		own += time.Since(begin)
		must.Do(b, src.Close())

		cache, err := datacache.Open(filepath.Join(fast.Dir(b), fmt.Sprint(i)), "boot", ample, time.Now)
		must.Do(b, err)
		begin = time.Now()
		v, err := Serve(b.Context(), cache, open(), nil, slog.New(slog.DiscardHandler))
		must.Do(b, err)
		for _, f := range files {
			a, err := http.Get(v.URL + f.Name)
			must.Do(b, err)
			drain(a.Body)
		}
		view += time.Since(begin)
		_, err = v.Close()
		must.Do(b, err)
		must.Do(b, cache.Close())
	}
	mb := func(d time.Duration) float64 { return float64(b.N) * shards * size / 1e6 / d.Seconds() }
	b.ReportMetric(mb(own), "store_MB/s")
	b.ReportMetric(mb(view), "view_MB/s")
	b.ReportMetric(mb(view)/mb(own), "ratio")
}
