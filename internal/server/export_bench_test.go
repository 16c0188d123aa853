package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"scrimp/internal/server/auth"
)

// discarded is a response writer that discards the response.
type discarded struct {
	header http.Header
	code   int
	rows   int
	bytes  int64
	most   uint64 // of the heap, sampled at every megabyte
}

func (c *discarded) Header() http.Header { return c.header }

func (c *discarded) WriteHeader(code int) { c.code = code }

func (c *discarded) Write(b []byte) (int, error) {
	before := c.bytes >> 20
	c.rows, c.bytes = c.rows+bytes.Count(b, []byte("\n")), c.bytes+int64(len(b))
	if c.bytes>>20 != before {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.most = max(c.most, m.HeapAlloc)
	}
	return len(b), nil
}

// BenchmarkExport sends the ledger of finished jobs as FOCUS, two rows each. The goal for a million rows is 30 s and
// 500 MB.
//
//	go test ./internal/server -run XXX -bench Export -benchtime 1x -paid-jobs 500000
func BenchmarkExport(b *testing.B) {
	dir := b.TempDir()
	fillPaid(b, dir, *paidJobs)
	w := newWorldOf(b, &firm{}, func(o *Options) { o.Dir, o.Rate = dir, 1e6 })
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		r := httptest.NewRequestWithContext(auth.OnSocket(b.Context()), "GET", "/v1/export/focus?version=1.4", nil)
		r.Header.Set("Authorization", "Bearer "+w.gate.Owner)
		c := &discarded{header: http.Header{}, code: 200}
		began := time.Now()
		w.h.ServeHTTP(c, r)
		if c.code != 200 || c.rows != 2**paidJobs+1 {
			b.Fatalf("%d: %d rows", c.code, c.rows)
		}
		b.ReportMetric(float64(c.rows)/time.Since(began).Seconds(), "rows/s")
		b.ReportMetric((float64(c.most)-float64(before.HeapAlloc))/1e6, "MB")
	}
}
